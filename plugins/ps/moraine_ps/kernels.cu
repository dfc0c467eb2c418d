// Amplitude dispersion and temporal coherence of pixels: one thread per pixel.
// Missing samples: nan, infinite, or of an amplitude below TINY.

#define TINY 1e-30f
#define LARGEST 3.402823466e38f
#define PLANES 8  // images of one launch of add_images

// Amplitude of a sample, 0 where it is missing. A power of two keeps the squares normal numbers in float32.
__device__ __forceinline__ float amplitude_of(float2 z, float* scaled_modulus, float* scale) {
    const float larger = fmaxf(fabsf(z.x), fabsf(z.y));
    const bool is_large = larger > 1e15f, is_small = larger < 1e-12f;
    const float s = is_large ? 8.271806125530277e-25f : is_small ? 1.152921504606847e18f : 1.0f;        // 2^-80, 2^60
    const float inverse = is_large ? 1.2089258196146292e24f : is_small ? 8.673617379884035e-19f : 1.0f;  // 2^80, 2^-60
    const float x = z.x * s, y = z.y * s;
    *scaled_modulus = sqrtf(x * x + y * y);
    *scale = s;
    const float amplitude = *scaled_modulus * inverse;
    return amplitude >= TINY && amplitude <= LARGEST ? amplitude : 0.0f;  // nan is neither
}

__device__ __forceinline__ float amplitude_of(float2 z) {
    float modulus, scale;
    return amplitude_of(z, &modulus, &scale);
}

// Sample with modulus 1, 0 where it is missing.
__device__ __forceinline__ float2 phasor_of(float2 z) {
    float modulus, scale;
    if (amplitude_of(z, &modulus, &scale) == 0) return make_float2(0, 0);
    return make_float2(z.x * scale / modulus, z.y * scale / modulus);
}

// Running count of a pixel's amplitudes, the first one, and sum and sum of squares of deviations from it. Rounded after
// each operation as on the CPU.
struct Sums {
    int count;
    double shift, total, squares;
};

__device__ __forceinline__ void add(float2 sample, double gain, Sums* sums) {
    const float amplitude = amplitude_of(sample);
    if (amplitude == 0) return;
    const double value = __dmul_rn(amplitude, gain);
    if (sums->count == 0) sums->shift = value;
    sums->count++;
    const double deviation = __dsub_rn(value, sums->shift);
    sums->total = __dadd_rn(sums->total, deviation);
    sums->squares = __dadd_rn(sums->squares, __dmul_rn(deviation, deviation));
}

__device__ __forceinline__ float dispersion_of(Sums sums, int fewest) {
    if (sums.count < fewest) return __int_as_float(0x7fc00000);
    const double offset = sums.total / sums.count;
    const double variance = __dsub_rn(sums.squares / sums.count, __dmul_rn(offset, offset));
    return (float)(sqrt(variance > 0 ? variance : 0) / (sums.shift + offset));
}

// a whole stack, its images side by side or one after another
extern "C" __global__ void amp_disp(
    const float2* __restrict__ rslc, long long n_pixels, int n_images, long long pixel_step, long long image_step,
    int fewest, float* __restrict__ out) {
    const long long pixel = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= n_pixels) return;
    const float2* samples = rslc + pixel * pixel_step;
    Sums sums = {0, 0, 0, 0};
#pragma unroll 8
    for (int image = 0; image < n_images; image++) add(samples[image * image_step], 1.0, &sums);
    out[pixel] = dispersion_of(sums, fewest);
}

// up to PLANES images at a time, so that the sums are read and written once for all of them
extern "C" __global__ void add_images(
    const float2* p0, const float2* p1, const float2* p2, const float2* p3, const float2* p4, const float2* p5,
    const float2* p6, const float2* p7, const double* __restrict__ gain, int n_planes, long long n_pixels,
    int* __restrict__ count, double* __restrict__ shift, double* __restrict__ total, double* __restrict__ squares) {
    const long long pixel = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= n_pixels) return;
    const float2* planes[PLANES] = {p0, p1, p2, p3, p4, p5, p6, p7};
    float2 samples[PLANES];
#pragma unroll
    for (int i = 0; i < PLANES; i++)
        if (i < n_planes) samples[i] = planes[i][pixel];
    Sums sums = {count[pixel], shift[pixel], total[pixel], squares[pixel]};
#pragma unroll
    for (int i = 0; i < PLANES; i++)
        if (i < n_planes) add(samples[i], gain[i], &sums);
    count[pixel] = sums.count, shift[pixel] = sums.shift, total[pixel] = sums.total, squares[pixel] = sums.squares;
}

extern "C" __global__ void dispersion(
    const int* __restrict__ count, const double* __restrict__ shift, const double* __restrict__ total,
    const double* __restrict__ squares, long long n_pixels, int fewest, float* __restrict__ out) {
    const long long pixel = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= n_pixels) return;
    const Sums sums = {count[pixel], shift[pixel], total[pixel], squares[pixel]};
    out[pixel] = dispersion_of(sums, fewest);
}

// sum and number of valid amplitudes, one value per block of 256 threads
extern "C" __global__ void amplitude_sums(
    const float2* __restrict__ image, long long n_pixels, double* __restrict__ totals, long long* __restrict__ counts) {
    __shared__ double total_of_warp[8];
    __shared__ int count_of_warp[8];
    double total = 0;
    int count = 0;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n_pixels;
         i += (long long)gridDim.x * blockDim.x) {
        const double x = image[i].x, y = image[i].y;
        const double amplitude = sqrt(x * x + y * y);
        if (amplitude >= (double)TINY && isfinite(amplitude)) total += amplitude, count++;
    }
    for (int step = 16; step; step >>= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, step);
        count += __shfl_xor_sync(0xffffffffu, count, step);
    }
    if (threadIdx.x % 32 == 0) total_of_warp[threadIdx.x / 32] = total, count_of_warp[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 8; warp++) total += total_of_warp[warp], count += count_of_warp[warp];
        totals[blockIdx.x] = total, counts[blockIdx.x] = count;
    }
}

extern "C" __global__ void phasors(const float2* __restrict__ image, long long n_pixels, float2* __restrict__ out) {
    const long long pixel = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel < n_pixels) out[pixel] = phasor_of(image[pixel]);
}

extern "C" __global__ void add_pair(
    const float2* __restrict__ intf, const float2* __restrict__ ref, const float2* __restrict__ sec, long long n_pixels,
    double2* __restrict__ sums, int* __restrict__ count) {
    const long long pixel = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= n_pixels) return;
    const float2 u = phasor_of(intf[pixel]), a = ref[pixel], b = sec[pixel];
    const float re = u.x * a.x + u.y * a.y, im = u.y * a.x - u.x * a.y;
    const float x = re * b.x - im * b.y, y = re * b.y + im * b.x;
    if (x * x + y * y > 0.5f) {
        double2 sum = sums[pixel];
        sum.x += x, sum.y += y;
        sums[pixel] = sum;
        count[pixel]++;
    }
}

extern "C" __global__ void coherence(
    const double2* __restrict__ sums, const int* __restrict__ count, long long n_pixels, int fewest,
    float* __restrict__ out) {
    const long long pixel = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= n_pixels) return;
    const double2 sum = sums[pixel];
    const int n = count[pixel];
    const double modulus = sqrt(sum.x * sum.x + sum.y * sum.y);
    out[pixel] = n >= fewest ? fminf((float)(modulus / n), 1.0f) : __int_as_float(0x7fc00000);  // rounding may pass 1
}
