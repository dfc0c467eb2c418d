"""Kernels on the CPU do what CUDA's programming guide says, and mistakes that a GPU would not report are found."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import EmulatedModule, EmulationError, cupy_on_cpu, has_compiler

pytestmark = pytest.mark.skipif(not has_compiler(), reason="g++ is not installed")

SOURCE = r"""
#define FULL 0xffffffffu

__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(FULL, v, o);
    return v;
}

extern "C" __global__ void __launch_bounds__(256) total(const float* __restrict__ x, double* out, int n) {
    __shared__ float part[8];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += __ldg(x + i);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

extern "C" __global__ void shuffles(const int* x, int* out, int width) {
    const int i = threadIdx.x, v = x[i];
    out[0 * 32 + i] = __shfl_sync(FULL, v, 5, width);
    out[1 * 32 + i] = __shfl_up_sync(FULL, v, 3, width);
    out[2 * 32 + i] = __shfl_down_sync(FULL, v, 3, width);
    out[3 * 32 + i] = __shfl_xor_sync(FULL, v, 9, width);
}

extern "C" __global__ void votes(const int* x, unsigned* out) {
    const bool p = x[threadIdx.x] > 3;
    out[threadIdx.x] = __ballot_sync(FULL, p);
    out[32 + threadIdx.x] = __any_sync(FULL, p) + 2 * __all_sync(FULL, p);
    out[64 + threadIdx.x] = __match_any_sync(FULL, x[threadIdx.x]);
    out[96 + threadIdx.x] = __reduce_max_sync(FULL, x[threadIdx.x]) + __reduce_add_sync(FULL, (unsigned)p);
    out[128 + threadIdx.x] = __popc(out[threadIdx.x]) * 10000 + __ffs(out[threadIdx.x]) * 100 + __clz(out[threadIdx.x]);
}

// inclusive scan of a block (Hillis and Steele)
extern "C" __global__ void scan(const int* x, int* out, int n) {
    extern __shared__ int buffer[];
    const int i = threadIdx.x;
    buffer[i] = i < n ? x[i] : 0;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        const int left = i >= d ? buffer[i - d] : 0;
        __syncthreads();
        buffer[i] += left;
        __syncthreads();
    }
    if (i < n) out[i] = buffer[i];
}

extern "C" __global__ void transpose(const float2* in, float2* out, int rows, int columns) {
    __shared__ float2 tile[8][9];
    const int c = blockIdx.x * 8 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (c < columns && r < rows) tile[threadIdx.y][threadIdx.x] = in[r * columns + c];
    __syncthreads();
    const int row = blockIdx.x * 8 + threadIdx.y, column = blockIdx.y * 8 + threadIdx.x;
    if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void connect(const int* edges, int n_edges, int* parent) {
    for (int e = threadIdx.x; e < n_edges; e += blockDim.x) {
        int a = edges[2 * e], b = edges[2 * e + 1];
        for (;;) {
            while (parent[a] != a) a = parent[a];
            while (parent[b] != b) b = parent[b];
            if (a == b) break;
            if (a < b) { const int t = a; a = b; b = t; }
            if (atomicCAS(parent + a, a, b) == a) break;
        }
    }
}

extern "C" __global__ void count(const int* x, int* out) {
    const int n = __syncthreads_count(x[threadIdx.x] > 0);
    const int any = __syncthreads_or(x[threadIdx.x] > 90), all = __syncthreads_and(x[threadIdx.x] >= 0);
    out[threadIdx.x] = n + 1000 * any + 2000 * all;
}

template <int N> __global__ void polynomial(float* x) {
    float y = 0;
#pragma unroll
    for (int i = 0; i < N; i++) y = y * x[threadIdx.x] + 1;
    x[threadIdx.x] = y;
}

extern "C" __global__ void early(float* out, int n) {
    if (threadIdx.x >= n) return;
    out[threadIdx.x] = __shfl_sync(FULL, 1.0f * threadIdx.x, threadIdx.x + 1);
}

extern "C" __global__ void unwritten(float* out) {
    __shared__ float fixed[2];
    extern __shared__ float given[];
    out[0] = fixed[1], out[1] = given[1];
    fixed[1] = given[1] = 3;
}

extern "C" __global__ void neighbor(int* out, bool wait) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (wait) __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

extern "C" __global__ void left_behind(int* out) {
    if (threadIdx.x < 5) __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void two_barriers(int* out) {
    if (threadIdx.x < 5)
        __syncthreads();
    else
        __syncthreads();
}

extern "C" __global__ void divided_warp(int* out) {
    if (threadIdx.x < 5)
        out[threadIdx.x] = __shfl_sync(FULL, 1, 0);
    else
        __syncwarp();
}

extern "C" __global__ void foreign_mask(int* out) { out[threadIdx.x] = __any_sync(0xfffffffeu, 1); }

extern "C" __global__ void beyond(int* out, int index) { out[index] = 7; }

extern "C" __global__ void beyond_shared(int index) {
    extern __shared__ unsigned char bytes[];
    bytes[index] = 1;
}

extern "C" __global__ void scalars(double* out, int a, float b, double c, unsigned char d, long long e) {
    out[0] = a, out[1] = b, out[2] = c, out[3] = d, out[4] = e;
}

extern "C" __global__ void stuck(int* out) { if (threadIdx.x == 3) __trap(); }
"""


@pytest.fixture(scope="module", params=[False, True], ids=["forward", "backward"])
def module(request):
    return EmulatedModule(SOURCE, reversed_threads=request.param)


@pytest.mark.parametrize("block", [32, 96, 256])
def test_a_reduction_over_warps_and_blocks(module, block):
    x = np.random.default_rng(1).integers(-9, 9, 5000).astype(np.float32)
    out = np.zeros(1)
    module["total"]((3,), (block,), (x, out, np.int32(x.size)))
    assert out[0] == x.sum()


@pytest.mark.parametrize("width", [1, 4, 16, 32])
def test_shuffles_are_those_of_the_guide(module, width):
    x = np.random.default_rng(2).integers(0, 1000, 32).astype(np.int32)
    out = np.zeros((4, 32), np.int32)
    module["shuffles"]((1,), (32,), (x, out, np.int32(width)))
    for lane in range(32):
        base = lane // width * width
        assert out[0, lane] == x[base + 5 % width]
        assert out[1, lane] == x[lane - 3 if lane - 3 >= base else lane]
        assert out[2, lane] == x[lane + 3 if lane + 3 < base + width else lane]
        assert out[3, lane] == x[lane ^ 9 if (lane ^ 9) < base + width else lane]


def test_votes_of_a_warp(module):
    x = np.random.default_rng(3).integers(0, 7, 32).astype(np.int32)
    out = np.zeros((5, 32), np.uint32)
    module["votes"]((1,), (32,), (x, out))
    bits = sum(int(value > 3) << lane for lane, value in enumerate(x))
    assert set(out[0]) == {bits}
    assert set(out[1]) == {1}
    for lane in range(32):
        assert out[2, lane] == sum(int(value == x[lane]) << other for other, value in enumerate(x))
    assert set(out[3]) == {x.max() + (x > 3).sum()}
    first, last = (bits & -bits).bit_length(), 32 - bits.bit_length()
    assert set(out[4]) == {bits.bit_count() * 10000 + first * 100 + last}


def test_a_scan_in_dynamic_shared_memory(module):
    x = np.random.default_rng(4).integers(0, 50, 100).astype(np.int32)
    out = np.zeros_like(x)
    module["scan"]((1,), (128,), (x, out, np.int32(100)), shared_mem=4 * 128)
    np.testing.assert_array_equal(out, np.cumsum(x))


def test_a_transposition_in_shared_memory_over_blocks_of_two_axes(module):
    rng = np.random.default_rng(5)
    image = (rng.normal(size=(13, 21)) + 1j * rng.normal(size=(13, 21))).astype(np.complex64)
    out = np.zeros((21, 13), np.complex64)
    module["transpose"]((3, 2), (8, 8), (image, out, np.int32(13), np.int32(21)))
    np.testing.assert_array_equal(out, image.T)


def test_a_union_find_with_compare_and_swap(module):
    edges = np.array([(5, 2), (2, 0), (7, 8), (9, 8), (3, 4)], np.int32)
    parent = np.arange(10, dtype=np.int32)
    module["connect"]((1,), (32,), (edges, np.int32(5), parent))
    roots = []
    for start in range(10):
        node = start
        while parent[node] != node:
            node = parent[node]
        roots.append(int(node))
    assert roots == [0, 1, 0, 3, 3, 0, 6, 7, 7, 7]


def test_barriers_that_vote(module):
    x = np.array([1, 0, 2, 0, 5] + [0] * 40, np.int32)
    out = np.zeros(45, np.int32)
    module["count"]((1,), (45,), (x, out))
    assert set(out) == {3 + 2000}


def test_templates_by_name_expression():
    x = np.arange(32, dtype=np.float32)
    expected = x * x + x + 1
    EmulatedModule(SOURCE, name_expressions=("polynomial<3>",))["polynomial<3>"]((1,), (32,), (x,))
    np.testing.assert_array_equal(x, expected)


def test_macros_come_from_options():
    code = 'extern "C" __global__ void number(int* out) { out[0] = N; }'
    out = np.zeros(1, np.int32)
    EmulatedModule(code, options=("--std=c++11", "-DN=17"))["number"]((1,), (1,), (out,))
    assert out[0] == 17


def test_a_lane_that_left_has_no_value_to_give(module):
    out = np.zeros(32, np.float32)
    module["early"]((1,), (32,), (out, np.int32(4)))
    np.testing.assert_array_equal(out[:4], [1, 2, 3, np.nan])


def test_memory_that_nobody_wrote_is_nan_in_each_block(module):
    out = np.zeros(2, np.float32)
    module["unwritten"]((3,), (1,), (out,), shared_mem=8)
    assert np.isnan(out).all()


def test_a_missing_barrier_shows_when_threads_take_turns_backward(module):
    found = []
    for wait in (True, False):
        out = np.zeros(64, np.int32)
        module["neighbor"]((1,), (64,), (out, np.bool_(wait)))
        found.append(out)
    np.testing.assert_array_equal(found[0], np.arange(64)[::-1])
    assert (found[1] == -1).any()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("left_behind", r"block is divided.*waits at __syncthreads in line \d+, but .*has left the kernel"),
        ("two_barriers", r"block is divided: thread \(0, 0, 0\).*in line \d+, but thread \(5, 0, 0\).*in line \d+"),
        ("divided_warp", r"warp is divided: .*__shfl_sync.* but .*__syncwarp"),
        ("foreign_mask", r"thread \(0, 0, 0\).*__any_sync with a mask that lacks the calling lane"),
        ("stuck", r"thread \(3, 0, 0\) of block \(0, 0, 0\), line \d+: __trap"),
    ],
)
def test_threads_that_disagree_are_named(module, name, sentence):
    with pytest.raises(EmulationError, match=sentence):
        module[name]((2,), (32,), (np.zeros(32, np.int32),))
    out = np.zeros(1)
    module["total"]((1,), (32,), (np.ones(3, np.float32), out, np.int32(3)))
    assert out[0] == 3, "a launch that failed leaves no trace in the next"


@pytest.mark.parametrize("index", [-1, 4])
def test_a_write_beside_an_array_is_found(module, index):
    with pytest.raises(EmulationError, match=f"wrote byte {4 * index} of an array of 16 bytes"):
        module["beyond"]((1,), (1,), (np.zeros(4, np.int32), np.int32(index)))


def test_a_write_beside_dynamic_shared_memory_is_found(module):
    with pytest.raises(EmulationError, match="wrote byte 10 of dynamic shared memory, which has 10"):
        module["beyond_shared"]((1,), (1,), (np.int32(10),), shared_mem=10)


def test_scalars_keep_their_values(module):
    out = np.zeros(5)
    module["scalars"]((1,), (1,), (out, -3, np.float32(0.5), 0.1, np.uint8(200), np.int64(2**40)))
    np.testing.assert_array_equal(out, [-3, 0.5, 0.1, 200, 2**40])


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((np.zeros(32, np.int64), np.int32(0)), "argument 0 points to int32; found an array of int64"),
        ((np.zeros(32, np.float32), np.int32(0)), "argument 0 points to int32; found an array of float32"),
        ((np.zeros((8, 2), np.int32)[:, 0], np.int32(0)), "not contiguous"),
        ((5, np.int32(0)), "argument 0 is a pointer; found int"),
        ((np.zeros(32, np.int32), np.int64(0)), "argument 1 is int32; found int64"),
        ((np.zeros(32, np.int32), 2**31), "argument 1 is int32; 2147483648 does not fit"),
        ((np.zeros(32, np.int32), 1.0), "argument 1 is int32; found float 1.0"),
        ((np.zeros(32, np.int32),), "has 2 parameters; it was called with 1"),
    ],
)
def test_arguments_that_are_not_those_of_the_kernel(module, args, sentence):
    with pytest.raises(EmulationError, match=sentence):
        module["beyond"]((1,), (1,), args)


def test_a_python_float_does_not_fit_a_float_parameter(module):
    with pytest.raises(EmulationError, match="argument 2 is float32; found float"):
        module["scalars"]((1,), (1,), (np.zeros(5), 1, 0.5, 0.1, np.uint8(2), 3))


@pytest.mark.parametrize(
    ("grid", "block", "shared", "sentence"),
    [
        ((1,), (1025,), 0, "at most 1024 threads"),
        ((0,), (32,), 0, "no size may be below 1"),
        ((1, 65536), (32,), 0, "65535"),
        ((1,), (32,), 48 * 1024 + 1, "max_dynamic_shared_size_bytes"),
    ],
)
def test_sizes_that_no_gpu_takes(module, grid, block, shared, sentence):
    with pytest.raises(EmulationError, match=sentence):
        module["beyond"](grid, block, (np.zeros(4, np.int32), np.int32(0)), shared_mem=shared)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("uint32_t a = 1; out[0] = a;", "does not know 'uint32_t'"),
        ("out[0] = std::sqrt(1.0f);", "does not know 'std::sqrt'"),
        ("out[0] = INFINITY > 1;", "does not compile.*INFINITY"),
        ("out[0] = undeclared;", "kernel:2:.*undeclared"),
    ],
)
def test_what_nvrtc_does_not_know_is_refused(body, sentence):
    code = f'// std::comment\nextern "C" __global__ void k(int* out) {{ {body} }}'
    with pytest.raises(EmulationError, match=f"(?s){sentence}"):
        EmulatedModule(code)


def test_the_stand_in_for_cupy_has_arrays_of_its_own():
    cupy = cupy_on_cpu()
    x = cupy.zeros(40, dtype=np.float32)
    assert isinstance(x, cupy.ndarray)
    assert isinstance(cupy.asarray(np.ones(3)), cupy.ndarray)
    assert not isinstance(np.ones(3), cupy.ndarray)
    assert type(x.get()) is np.ndarray
    kernel = cupy.RawKernel('extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1; }', "one")
    kernel((1,), (40,), (x,))
    assert isinstance(x, cupy.ndarray)
    assert float(x.sum()) == 40
