// Series of amplitudes, (nlines, n_images, stride) float32: pixels side by side, so that a warp reads 32 in one go.

#define TINY 1e-30f        // an amplitude below this is a missing sample
#define LARGEST 3.402823466e+38f
#define INF __int_as_float(0x7f800000)  // stands for missing samples: behind all amplitudes when sorted

// One thread per pixel puts the amplitudes of some images, (nlines, width, n_new), into its series. Bound by memory.
extern "C" __global__ void add_images(const float2* images, const double* gain, int first, int n_new, float* series,
                                      int* n_valid, long long n_pixels, int width, int n_images, int stride) {
    const long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t >= n_pixels) return;
    float* own = series + (t / width * n_images + first) * stride + t % width;
    int count = 0;
    for (int image = 0; image < n_new; image++) {
        const float2 sample = images[t * n_new + image];
        const double re = sample.x, im = sample.y;
        const double amplitude = sqrt(re * re + im * im);  // the squares are exact: rounded once, as on the CPU
        const bool is_valid = amplitude >= (double)TINY && amplitude < (double)INF;
        const double scaled = amplitude * gain[first + image];
        own[(long long)image * stride] = !is_valid ? INF : scaled < (double)LARGEST ? (float)scaled : LARGEST;
        count += is_valid;
    }
    n_valid[t] += count;
}

// Batcher's merge exchange, as in _cpu.py. One thread sorts one pixel in its column of shared memory: no barriers, no
// conflicts of banks, and no branch that depends on values. About 1000 exchanges of 92 images; each is two loads and two
// stores, so the bandwidth of shared memory bounds it: 4 cycles of a multiprocessor for 32 pixels, 0.6 ns per pixel on
// 132 of them.
extern "C" __global__ void sort_series(float* series, long long n_columns, int n_images, int stride, int top) {
    extern __shared__ float columns[];
    const long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t >= n_columns) return;
    float* own = series + t / stride * n_images * stride + t % stride;
    float* a = columns + threadIdx.x;
    const int step = blockDim.x;
    for (int i = 0; i < n_images; i++) a[i * step] = own[(long long)i * stride];
    for (int p = top; p > 0; p >>= 1) {
        int q = top, r = 0, d = p;
        for (;;) {
            for (int i = 0; i < n_images - d; i++)
                if ((i & p) == r) {
                    const float x = a[i * step], y = a[(i + d) * step];
                    a[i * step] = fminf(x, y);
                    a[(i + d) * step] = fmaxf(x, y);
                }
            if (q == p) break;
            d = q - p;
            q >>= 1;
            r = p;
        }
    }
    for (int i = 0; i < n_images; i++) own[(long long)i * stride] = a[i * step];
}

// One warp per window: p values of at least alpha, which nan is not, and their number.
extern "C" __global__ void select_shp(const float* pvalue, float alpha, bool* is_shp, int* shp_num, long long n_windows,
                                      int n_cells) {
    const long long window = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (window >= n_windows) return;
    int count = 0;
    for (int first = 0; first < n_cells; first += 32) {
        const int cell = first + lane;
        const bool is_same = cell < n_cells && pvalue[window * n_cells + cell] >= alpha;
        if (cell < n_cells) is_shp[window * n_cells + cell] = is_same;
        count += __popc(__ballot_sync(0xffffffffu, is_same));
    }
    if (lane == 0) shp_num[window] = count;
}
