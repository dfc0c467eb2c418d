// The Kolmogorov-Smirnov test of each pixel with its window. The compiler is given AZ_HALF_WIN and R_HALF_WIN, and the
// size of a block that tests: ROWS lines of LANES pixels.
//
// The test is symmetric, so a pixel is tested against the half of its window behind it, cell 0 the one to its right, and
// the other half is read from the bits of the pixels there. Series are sorted: (nlines, n_images, stride) float32, inf
// for missing samples.

#define R_WIN (2 * R_HALF_WIN + 1)
#define CELLS ((2 * AZ_HALF_WIN + 1) * R_WIN)
#define HALF (CELLS / 2)  // cells behind the center, which is cell number HALF of the window
#define WORDS ((HALF + 31) / 32)
#define TILE_ROWS (ROWS + AZ_HALF_WIN)
#define TILE_COLUMNS (LANES + 2 * R_HALF_WIN)
#define TILE (TILE_ROWS * TILE_COLUMNS)
#define INF __int_as_float(0x7f800000)

// The largest |n_y i - n_x j| of two sorted samples, or the first one found above stop.
__device__ int ks_distance(const float* x, int n_x, const float* y, int n_y, int stride, int stop) {
    int i = 0, j = 0, largest = 0;
    while (i < n_x && j < n_y && largest <= stop) {
        const float value = fminf(x[(long long)i * stride], y[(long long)j * stride]);
        while (i < n_x && x[(long long)i * stride] == value) i++;
        while (j < n_y && y[(long long)j * stride] == value) j++;
        largest = max(largest, abs(i * n_y - j * n_x));
    }
    return largest;
}

// Sets the bits of homogeneous pixels in the half window of each pixel, in words (WORDS, nlines, width).
//
// For n samples of both, D <= k / n exactly if x[j-k] <= y[j] <= x[j+k] for all j, where what lies beyond the ends holds
// (mark_different in _cpu.py has the proof). So images go by one after another: each is loaded once into a tile of shared
// memory, for all pixels of the block and their halo, and per image a thread loads two bounds of its own and compares them
// with all cells of its half window. Shared memory holds `planes` images only, however many there are, and the outcome of
// all cells stays in registers as bits. A cell costs one load from shared memory (32 lanes a cycle of a multiprocessor),
// two comparisons and one bit operation (64 lanes a cycle), so these three bound it: 60 cells x 92 images x 3 / 64 cycles
// are 1.1 ns per pixel on 132 multiprocessors at 1.75 GHz. Global memory gives each series about twice, which is less.
//
// Where two pixels have unequal numbers of samples, the bits so found mean nothing: their series are merged, which takes
// many times longer, for this pair alone.
extern "C" __global__ void __launch_bounds__(LANES * ROWS)
    mark_homogeneous(const float* series, const int* n_valid, const int* limit, unsigned* words, int nlines, int width,
                     int n_images, int stride, int fewest, int planes) {
    extern __shared__ float tile[];
    const int thread = threadIdx.y * LANES + threadIdx.x;
    const int tiles_across = (width + LANES - 1) / LANES;
    const int line_0 = blockIdx.x / tiles_across * ROWS, pixel_0 = blockIdx.x % tiles_across * LANES;
    const int line = line_0 + threadIdx.y, pixel = pixel_0 + threadIdx.x;
    const bool is_inside = line < nlines && pixel < width;
    const int n = is_inside ? n_valid[(long long)line * width + pixel] : 0;
    const int k = n ? limit[n * (n_images + 1) + n] / n : 0;
    const float* own = series + (long long)line * n_images * stride + pixel;

    unsigned differs[WORDS + 1] = {};  // one more than needed: a window of one pixel has no word
    for (int first = 0; first < n_images; first += planes) {
        const int count = min(planes, n_images - first);
        __syncthreads();
        for (int t = thread; t < count * TILE; t += LANES * ROWS) {
            const int plane = t / TILE, row = t % TILE / TILE_COLUMNS, column = t % TILE % TILE_COLUMNS;
            const int from_line = line_0 + row, from_pixel = pixel_0 - R_HALF_WIN + column;
            const bool is_there = from_line < nlines && from_pixel >= 0 && from_pixel < width;
            tile[t] = is_there ? series[((long long)from_line * n_images + first + plane) * stride + from_pixel] : INF;
        }
        __syncthreads();
        if (!is_inside) continue;
#pragma unroll 1
        for (int plane = 0; plane < count; plane++) {
            const int j = first + plane;
            const float low = j >= k ? own[(long long)(j - k) * stride] : 0;
            const float high = j + k < n_images ? own[(long long)(j + k) * stride] : INF;
            const float* center = tile + plane * TILE + threadIdx.y * TILE_COLUMNS + threadIdx.x + R_HALF_WIN;
#pragma unroll
            for (int cell = 0; cell < HALF; cell++) {
                const int az = (HALF + 1 + cell) / R_WIN - AZ_HALF_WIN, r = (HALF + 1 + cell) % R_WIN - R_HALF_WIN;
                const float y = center[az * TILE_COLUMNS + r];
                differs[cell / 32] |= (unsigned)(y < low || y > high) << cell % 32;
            }
        }
    }
    if (!is_inside) return;

#pragma unroll
    for (int word = 0; word < WORDS; word++) {  // unrolled, since registers have no index
        unsigned bits = 0;
#pragma unroll 1
        for (int bit = 0; bit < 32 && word * 32 + bit < HALF; bit++) {
            const int cell = HALF + 1 + word * 32 + bit;
            const int other_line = line + cell / R_WIN - AZ_HALF_WIN, other_pixel = pixel + cell % R_WIN - R_HALF_WIN;
            if (n < fewest || other_line >= nlines || other_pixel < 0 || other_pixel >= width) continue;
            const int other_n = n_valid[(long long)other_line * width + other_pixel];
            if (other_n < fewest) continue;
            bool is_same = !(differs[word] >> bit & 1);
            if (other_n != n) {
                const float* other = series + (long long)other_line * n_images * stride + other_pixel;
                const int stop = limit[n * (n_images + 1) + other_n];
                is_same = ks_distance(own, n, other, other_n, stride, stop) <= stop;
            }
            bits |= (unsigned)is_same << bit;
        }
        words[((long long)word * nlines + line) * width + pixel] = bits;
    }
}

// One warp per window: writes a byte per cell, 32 side by side, and their number. Bound by what it writes.
extern "C" __global__ void write_windows(const unsigned* words, const int* n_valid, int fewest, bool* is_shp,
                                         int* shp_num, int nlines, int width) {
    const long long window = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    const long long n_windows = (long long)nlines * width;
    if (window >= n_windows) return;
    const int line = window / width, pixel = window % width;
    int count = 0;
    for (int first = 0; first < CELLS; first += 32) {
        const int cell = first + lane;
        bool is_same = false;
        if (cell == HALF) is_same = n_valid[window] >= fewest;
        if (cell > HALF && cell < CELLS) {
            const int bit = cell - HALF - 1;
            is_same = words[bit / 32 * n_windows + window] >> bit % 32 & 1;
        }
        if (cell < HALF) {
            const int other_line = line + cell / R_WIN - AZ_HALF_WIN, other_pixel = pixel + cell % R_WIN - R_HALF_WIN;
            const int bit = HALF - 1 - cell;
            if (other_line >= 0 && other_pixel >= 0 && other_pixel < width)
                is_same = words[(bit / 32 * (long long)nlines + other_line) * width + other_pixel] >> bit % 32 & 1;
        }
        if (cell < CELLS) is_shp[window * CELLS + cell] = is_same;
        count += __popc(__ballot_sync(0xffffffffu, is_same));
    }
    if (lane == 0) shp_num[window] = count;
}

// As ks.significance.
__device__ double significance(int distance, int n_x, int n_y) {
    const double s = sqrt((double)(n_x * n_y) / (n_x + n_y)), pi = 3.141592653589793;
    const double x = (s + 0.12 + 0.11 / s) * distance / (n_x * n_y);
    if (x < 0.05) return 1;
    double total = 0;
    if (x < 1.18) {
        for (int i = 0; i < 4; i++) {
            const double term = (2 * i + 1) * pi / x;
            total += exp(-(term * term) / 8);
        }
        return 1 - sqrt(2 * pi) / x * total;
    }
    for (int i = 1; i <= 4; i++) total += (i % 2 ? 2 : -2) * exp(-2 * (i * x) * (i * x));
    return total;
}

// One thread per pixel and cell of its half window, cell after cell, merges two series and writes their p value into both
// windows; nothing else writes there. pvalue comes in as nan.
extern "C" __global__ void write_pvalues(const float* series, const int* n_valid, float* pvalue, int nlines, int width,
                                         int n_images, int stride, int fewest) {
    const long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long n_windows = (long long)nlines * width;
    if (t >= n_windows * (HALF + 1)) return;
    const long long window = t % n_windows;
    const int cell = HALF + t / n_windows;
    const int n = n_valid[window];
    if (n < fewest) return;
    if (cell == HALF) {
        pvalue[window * CELLS + cell] = 1;
        return;
    }
    const int line = window / width, pixel = window % width;
    const int other_line = line + cell / R_WIN - AZ_HALF_WIN, other_pixel = pixel + cell % R_WIN - R_HALF_WIN;
    if (other_line >= nlines || other_pixel < 0 || other_pixel >= width) return;
    const long long other_window = (long long)other_line * width + other_pixel;
    const int other_n = n_valid[other_window];
    if (other_n < fewest) return;
    const float* own = series + (long long)line * n_images * stride + pixel;
    const float* other = series + (long long)other_line * n_images * stride + other_pixel;
    const float p = significance(ks_distance(own, n, other, other_n, stride, n * other_n), n, other_n);
    pvalue[window * CELLS + cell] = p;
    pvalue[other_window * CELLS + CELLS - 1 - cell] = p;
}
