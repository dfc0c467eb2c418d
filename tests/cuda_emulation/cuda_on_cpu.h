// CUDA C kernels on the CPU, to test their logic where there is no GPU. README.md says what holds and what does not.
// One fiber per CUDA thread; the threads of a block take turns between barriers, in a fixed order; block after block.
#pragma once

#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>
#include <math.h>
#include <sys/mman.h>
#include <ucontext.h>

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

namespace cuda_on_cpu {

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };

struct Fiber {
    jmp_buf context;
    ucontext_t start;
    bool started = false;
    State state;
    dim3 index;
    int line;       // of the barrier it waits at
    const char* operation;
    unsigned mask;
    unsigned long long value;     // what it brings to the operation of its warp
    unsigned long long* values;   // what all lanes brought
    unsigned present;             // the lanes that took part
};

constexpr size_t STACK = 256 << 10, PAGE = 4096, CANARY = 256;
static std::vector<Fiber> fibers;
static std::vector<unsigned long long> warp_values;
static unsigned long long vote;
static Fiber* current;
static jmp_buf scheduler;
static char* stacks;
static char* dynamic_shared;
static bool failed;
static std::string message;
static void (*call)(void**);
static void** arguments;

extern "C" {
// the linker marks where the variables in __shared__ memory begin and end; both are 0 where there are none
extern char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
}

__attribute__((noinline)) static void yield() {
    if (_setjmp(current->context) == 0) _longjmp(scheduler, 1);
}

__attribute__((noinline, format(printf, 1, 2))) static void set_message(const char* format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    failed = true;
    message = text;
}

static std::string name_of(const Fiber& f) {
    char text[160];
    snprintf(text, sizeof text, "thread (%u, %u, %u) of block (%u, %u, %u)", f.index.x, f.index.y, f.index.z,
             blockIdx.x, blockIdx.y, blockIdx.z);
    return text;
}

static std::string place_of(const Fiber& f) {
    if (f.state == DONE) return "has left the kernel";
    char mask[40] = "";
    if (f.state == AT_WARP_BARRIER) snprintf(mask, sizeof mask, " with the mask 0x%08x", f.mask);
    return std::string("waits at ") + f.operation + " in line " + std::to_string(f.line) + mask;
}

// ends the launch from inside a thread
[[noreturn]] __attribute__((noinline)) static void stop(const std::string& why, int line) {
    set_message("%s, line %d: %s", name_of(*current).c_str(), line, why.c_str());
    _longjmp(scheduler, 1);
}

static void enter() {
    for (;;) {
        call(arguments);
        current->state = DONE;
        yield();
    }
}

static void resume(Fiber& fiber) {
    current = &fiber;
    threadIdx = fiber.index;
    if (_setjmp(scheduler) == 0) {
        if (fiber.started) _longjmp(fiber.context, 1);
        fiber.started = true;
        setcontext(&fiber.start);
    }
}

__attribute__((noinline)) static void block_barrier(const char* operation, int line) {
    current->state = AT_BLOCK_BARRIER;
    current->operation = operation;
    current->line = line;
    yield();
}

__attribute__((noinline)) static unsigned long long block_vote(const char* operation, unsigned long long value, int line) {
    current->value = value;
    block_barrier(operation, line);
    return vote;
}

static unsigned lane() { return (current - fibers.data()) % 32; }

// every lane of the mask brings a value and sees those of all
__attribute__((noinline)) static void warp_barrier(const char* operation, unsigned mask, unsigned long long value, int line) {
    if (!(mask >> lane() & 1)) stop(std::string(operation) + " with a mask that lacks the calling lane", line);
    current->state = AT_WARP_BARRIER;
    current->operation = operation;
    current->line = line;
    current->mask = mask;
    current->value = value;
    yield();
}

template <class T> static T value_of(unsigned source) {
    T result;
    unsigned long long bits = ~0ull;  // a lane that is not there has no value: nan, or -1
    if (current->present >> source & 1) bits = current->values[source];
    memcpy(&result, &bits, sizeof(T));
    return result;
}

template <class T> static unsigned long long bits_of(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "a shuffle moves 4 or 8 bytes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T> static T shuffle(const char* operation, unsigned mask, T value, int argument, int width, int line) {
    if (width < 1 || width > 32 || (width & (width - 1))) stop(std::string(operation) + ": width is no power of 2 up to 32", line);
    warp_barrier(operation, mask, bits_of(value), line);
    const int own = lane(), base = own & ~(width - 1), end = base + width;
    int source = own;
    switch (operation[7]) {
        case 's': source = base + (argument & (width - 1)); break;
        case 'u': source = own - argument >= base ? own - argument : own; break;
        case 'd': source = own + argument < end ? own + argument : own; break;
        default: source = (own ^ argument) < end ? own ^ argument : own;
    }
    return value_of<T>(source);
}

static unsigned ballot(const char* operation, unsigned mask, bool predicate, int line) {
    warp_barrier(operation, mask, predicate, line);
    unsigned bits = 0;
    for (int i = 0; i < 32; i++)
        if (current->present >> i & 1 && current->values[i]) bits |= 1u << i;
    return bits;
}

static bool all(const char* operation, unsigned mask, bool predicate, int line) {
    const unsigned bits = ballot(operation, mask, predicate, line);
    return bits == current->present;
}

template <class T> static unsigned match_any(const char* operation, unsigned mask, T value, int line) {
    warp_barrier(operation, mask, bits_of(value), line);
    unsigned bits = 0;
    for (int i = 0; i < 32; i++)
        if (current->present >> i & 1 && current->values[i] == bits_of(value)) bits |= 1u << i;
    return bits;
}

template <class T, class Join> static T reduce(const char* operation, unsigned mask, T value, Join join, int line) {
    static_assert(sizeof(T) == 4 && std::is_integral<T>::value, "__reduce_*_sync takes int or unsigned");
    warp_barrier(operation, mask, bits_of(value), line);
    bool first = true;
    T result = value;
    for (int i = 0; i < 32; i++)
        if (current->present >> i & 1) {
            result = first ? value_of<T>(i) : join(result, value_of<T>(i));
            first = false;
        }
    return result;
}

// lets the lanes of a warp go on whose operation is complete
static bool release_warp(size_t begin) {
    const size_t end = std::min(begin + 32, fibers.size());
    bool progress = false;
    for (size_t leader = begin; leader < end; leader++) {
        Fiber& first = fibers[leader];
        if (first.state != AT_WARP_BARRIER) continue;
        unsigned present = 0;
        bool complete = true;
        for (size_t i = begin; i < end; i++) {
            const Fiber& f = fibers[i];
            if (!(first.mask >> (i - begin) & 1) || f.state == DONE) continue;
            complete &= f.state == AT_WARP_BARRIER && f.line == first.line && f.mask == first.mask && !strcmp(f.operation, first.operation);
            present |= 1u << (i - begin);
        }
        if (!complete) continue;
        unsigned long long* values = &warp_values[leader * 32];
        for (size_t i = begin; i < end; i++)
            if (present >> (i - begin) & 1) values[i - begin] = fibers[i].value;
        for (size_t i = begin; i < end; i++)
            if (present >> (i - begin) & 1) {
                fibers[i].values = values;
                fibers[i].present = present;
                fibers[i].state = READY;
            }
        progress = true;
    }
    return progress;
}

static void describe_deadlock() {
    for (size_t i = 0; i < fibers.size(); i++) {
        const Fiber& f = fibers[i];
        if (f.state != AT_WARP_BARRIER) continue;
        for (size_t j = i - i % 32; j < std::min(i - i % 32 + 32, fibers.size()); j++) {
            const Fiber& other = fibers[j];
            if (!(f.mask >> (j % 32) & 1) || other.state == DONE) continue;
            if (other.state != AT_WARP_BARRIER || other.line != f.line || other.mask != f.mask || strcmp(other.operation, f.operation)) {
                set_message("a warp is divided: %s %s, but %s %s", name_of(f).c_str(), place_of(f).c_str(),
                            name_of(other).c_str(), place_of(other).c_str());
                return;
            }
        }
    }
    for (size_t i = 0; i < fibers.size(); i++)
        for (size_t j = i + 1; j < fibers.size(); j++)
            if (fibers[i].state != fibers[j].state || fibers[i].line != fibers[j].line) {
                set_message("a block is divided: %s %s, but %s %s", name_of(fibers[i]).c_str(), place_of(fibers[i]).c_str(),
                            name_of(fibers[j]).c_str(), place_of(fibers[j]).c_str());
                return;
            }
}

static bool release_block() {
    unsigned long long any = 0, every = 1, count = 0;
    for (const Fiber& f : fibers) {
        if (f.state != AT_BLOCK_BARRIER || f.line != fibers[0].line || strcmp(f.operation, fibers[0].operation)) return false;
        any |= f.value != 0;
        every &= f.value != 0;
        count += f.value != 0;
    }
    const char kind = strlen(fibers[0].operation) > 14 ? fibers[0].operation[14] : 0;  // behind "__syncthreads_"
    vote = kind == 'o' ? any : kind == 'a' ? every : count;
    for (Fiber& f : fibers) f.state = READY;
    return true;
}

static void run_block(size_t shared_bytes, bool reversed) {
    // memory that nobody has written holds nan and -1
    if (__start_cuda_shared) memset(__start_cuda_shared, 0xFF, __stop_cuda_shared - __start_cuda_shared);
    memset(dynamic_shared, 0xFF, shared_bytes + CANARY);
    for (Fiber& f : fibers) f.state = READY;
    const size_t n = fibers.size();
    for (;;) {
        size_t done = 0;
        for (size_t i = 0; i < n; i++) {
            Fiber& f = fibers[reversed ? n - 1 - i : i];
            if (f.state == READY) resume(f);
            if (failed) return;
            done += f.state == DONE;
        }
        if (done == n) break;
        bool progress = false;
        for (size_t begin = 0; begin < n; begin += 32) progress |= release_warp(begin);
        if (!progress && !release_block()) return describe_deadlock();
    }
    for (size_t i = 0; i < CANARY; i++)
        if (dynamic_shared[shared_bytes + i] != char(0xFF)) {
            set_message("block (%u, %u, %u) wrote byte %zu of dynamic shared memory, which has %zu", blockIdx.x, blockIdx.y, blockIdx.z, shared_bytes + i, shared_bytes);
            return;
        }
}

static const char* launch(void (*kernel)(void**), void** args, const unsigned* grid, const unsigned* block, size_t shared_bytes, bool reversed) {
    call = kernel;
    arguments = args;
    failed = false;
    message.clear();
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    const size_t n = size_t(block[0]) * block[1] * block[2];
    fibers = std::vector<Fiber>(n);
    warp_values.assign(n * 32, 0);
    std::vector<char> memory(shared_bytes + CANARY + 256);
    dynamic_shared = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256);
    const size_t area = n * (STACK + PAGE);
    stacks = static_cast<char*>(mmap(nullptr, area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (stacks == MAP_FAILED) return "no memory for the stacks of the threads";
    for (size_t i = 0; i < n; i++) {
        Fiber& f = fibers[i];
        char* bottom = stacks + i * (STACK + PAGE);
        mprotect(bottom, PAGE, PROT_NONE);  // a stack that overflows must not run into the next
        getcontext(&f.start);
        f.start.uc_stack.ss_sp = bottom + PAGE;
        f.start.uc_stack.ss_size = STACK;
        f.start.uc_link = nullptr;
        makecontext(&f.start, enter, 0);
        f.index = {unsigned(i % block[0]), unsigned(i / block[0] % block[1]), unsigned(i / block[0] / block[1])};
    }
    for (unsigned z = 0; z < grid[2] && !failed; z++)
        for (unsigned y = 0; y < grid[1] && !failed; y++)
            for (unsigned x = 0; x < grid[0] && !failed; x++) {
                blockIdx = {x, y, z};
                run_block(shared_bytes, reversed);
            }
    munmap(stacks, area);
    return failed ? message.c_str() : nullptr;
}

// what Python needs to know of a parameter: * where it is a pointer, c where to constants; f, i, u or v (other); bytes
template <class T> static std::string describe() {
    using V = std::remove_cv_t<T>;
    const char kind = std::is_floating_point<V>::value ? 'f' : !std::is_integral<V>::value ? 'v' : std::is_signed<V>::value ? 'i' : 'u';
    return kind + std::to_string(sizeof(V));
}
template <> inline std::string describe<void>() { return "v1"; }
template <> inline std::string describe<const void>() { return "v1"; }

template <class T> static std::string describe_parameter() {
    if constexpr (std::is_pointer<T>::value) {
        using E = std::remove_pointer_t<T>;
        return std::string(std::is_const<E>::value ? "c*" : "*") + describe<E>() + " ";
    } else {
        return describe<T>() + " ";
    }
}

template <class... A> static std::string describe_kernel(void (*)(A...)) { return (std::string() + ... + describe_parameter<A>()); }

template <class... A, size_t... I> static void apply(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<A>*>(args[I])...);
}
template <class... A> static void apply(void (*kernel)(A...), void** args) { apply(kernel, args, std::index_sequence_for<A...>()); }

}  // namespace cuda_on_cpu

// ---- the language

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static __attribute__((section("cuda_shared")))
#define __forceinline__ inline __attribute__((always_inline))
#undef __noinline__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// NVRTC has none of these
#undef NAN
#undef INFINITY
#undef HUGE_VAL
#undef HUGE_VALF
#undef M_PI
#undef M_PI_2

#define CUDA_VECTOR(type, name, alignment2, alignment4)                                          \
    struct __align__(alignment2) name##2 { type x, y; };                                          \
    struct name##3 { type x, y, z; };                                                            \
    struct __align__(alignment4) name##4 { type x, y, z, w; };                                    \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                      \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }           \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
CUDA_VECTOR(float, float, 8, 16)
CUDA_VECTOR(double, double, 16, 16)
CUDA_VECTOR(signed char, char, 2, 4)
CUDA_VECTOR(unsigned char, uchar, 2, 4)
CUDA_VECTOR(short, short, 4, 8)
CUDA_VECTOR(unsigned short, ushort, 4, 8)
CUDA_VECTOR(int, int, 8, 16)
CUDA_VECTOR(unsigned, uint, 8, 16)
CUDA_VECTOR(long long, longlong, 16, 16)
CUDA_VECTOR(unsigned long long, ulonglong, 16, 16)
#undef CUDA_VECTOR

#define __syncthreads() cuda_on_cpu::block_barrier("__syncthreads", __LINE__)
#define __syncthreads_or(predicate) int(cuda_on_cpu::block_vote("__syncthreads_or", !!(predicate), __LINE__))
#define __syncthreads_and(predicate) int(cuda_on_cpu::block_vote("__syncthreads_and", !!(predicate), __LINE__))
#define __syncthreads_count(predicate) int(cuda_on_cpu::block_vote("__syncthreads_count", !!(predicate), __LINE__))

#define CUDA_FIRST(first, ...) first
#define CUDA_WARP_MASK(...) CUDA_FIRST(__VA_ARGS__ __VA_OPT__(,) 0xffffffffu)
#define __syncwarp(...) cuda_on_cpu::warp_barrier("__syncwarp", CUDA_WARP_MASK(__VA_ARGS__), 0, __LINE__)

namespace cuda_on_cpu {
// the line of the caller comes first, so that the width can be left out
template <class T> static T shfl_sync(int line, unsigned mask, T value, int source, int width = 32) { return shuffle("__shfl_sync", mask, value, source, width, line); }
template <class T> static T shfl_up_sync(int line, unsigned mask, T value, unsigned delta, int width = 32) { return shuffle("__shfl_up_sync", mask, value, int(delta), width, line); }
template <class T> static T shfl_down_sync(int line, unsigned mask, T value, unsigned delta, int width = 32) { return shuffle("__shfl_down_sync", mask, value, int(delta), width, line); }
template <class T> static T shfl_xor_sync(int line, unsigned mask, T value, int other, int width = 32) { return shuffle("__shfl_xor_sync", mask, value, other, width, line); }
}  // namespace cuda_on_cpu
#define __shfl_sync(...) cuda_on_cpu::shfl_sync(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) cuda_on_cpu::shfl_up_sync(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) cuda_on_cpu::shfl_down_sync(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) cuda_on_cpu::shfl_xor_sync(__LINE__, __VA_ARGS__)
#define __ballot_sync(mask, predicate) cuda_on_cpu::ballot("__ballot_sync", mask, predicate, __LINE__)
#define __any_sync(mask, predicate) int(cuda_on_cpu::ballot("__any_sync", mask, predicate, __LINE__) != 0)
#define __all_sync(mask, predicate) int(cuda_on_cpu::all("__all_sync", mask, predicate, __LINE__))
#define __match_any_sync(mask, value) cuda_on_cpu::match_any("__match_any_sync", mask, value, __LINE__)
#define CUDA_REDUCE(name, mask, value, expression) \
    cuda_on_cpu::reduce(name, mask, value, [](auto a, auto b) { return expression; }, __LINE__)
#define __reduce_add_sync(mask, value) CUDA_REDUCE("__reduce_add_sync", mask, value, a + b)
#define __reduce_min_sync(mask, value) CUDA_REDUCE("__reduce_min_sync", mask, value, a < b ? a : b)
#define __reduce_max_sync(mask, value) CUDA_REDUCE("__reduce_max_sync", mask, value, a > b ? a : b)
#define __reduce_and_sync(mask, value) CUDA_REDUCE("__reduce_and_sync", mask, value, a & b)
#define __reduce_or_sync(mask, value) CUDA_REDUCE("__reduce_or_sync", mask, value, a | b)
#define __reduce_xor_sync(mask, value) CUDA_REDUCE("__reduce_xor_sync", mask, value, a ^ b)
#define __trap() cuda_on_cpu::stop("__trap()", __LINE__)

static inline void __threadfence() {}
static inline void __threadfence_block() {}

// ---- atomics: threads take turns, so a plain operation is one; the type of what is added follows the address

template <class T> struct cuda_same { using type = T; };
#define CUDA_ATOMIC(name, expression)                                          \
    template <class T> static inline T name(T* address, typename cuda_same<T>::type value) { \
        const T old = *address;                                                \
        *address = expression;                                                 \
        return old;                                                            \
    }
CUDA_ATOMIC(atomicAdd, old + value)
CUDA_ATOMIC(atomicSub, old - value)
CUDA_ATOMIC(atomicMax, old < value ? value : old)
CUDA_ATOMIC(atomicMin, value < old ? value : old)
CUDA_ATOMIC(atomicOr, old | value)
CUDA_ATOMIC(atomicAnd, old & value)
CUDA_ATOMIC(atomicXor, old ^ value)
CUDA_ATOMIC(atomicExch, value)
CUDA_ATOMIC(atomicInc, old >= value ? T(0) : T(old + 1))
#undef CUDA_ATOMIC
template <class T> static inline T atomicCAS(T* address, typename cuda_same<T>::type compare, typename cuda_same<T>::type value) {
    const T old = *address;
    if (old == compare) *address = value;
    return old;
}

// ---- functions

template <class T> static inline T __ldg(const T* address) { return *address; }
template <class T> static inline T __ldcs(const T* address) { return *address; }
template <class T> static inline T __ldca(const T* address) { return *address; }
template <class T> static inline T __ldcg(const T* address) { return *address; }
template <class T> static inline void __stcs(T* address, T value) { *address = value; }
template <class T> static inline void __stcg(T* address, T value) { *address = value; }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
    return r;
}
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }

template <class To, class From> static inline To cuda_bits(From x) {
    To y;
    static_assert(sizeof x == sizeof y, "");
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline int __float_as_int(float x) { return cuda_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return cuda_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return cuda_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return cuda_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return cuda_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return cuda_bits<double>(x); }
static inline int __float2int_rn(float x) { return int(nearbyintf(x)); }
static inline int __float2int_rz(float x) { return int(x); }
static inline int __float2int_rd(float x) { return int(floorf(x)); }
static inline int __double2int_rn(double x) { return int(nearbyint(x)); }
static inline float __int2float_rn(int x) { return float(x); }

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, s, c) sincosf(x, s, c)
static inline void sincospif(float x, float* s, float* c) { *s = float(sin(M_PIl * x)), *c = float(cos(M_PIl * x)); }
static inline float sinpif(float x) { return float(sin(M_PIl * x)); }
static inline float cospif(float x) { return float(cos(M_PIl * x)); }

template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b) { return a < b ? decltype(a + b)(b) : decltype(a + b)(a); }
template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b) { return b < a ? decltype(a + b)(b) : decltype(a + b)(a); }
