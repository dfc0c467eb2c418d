// Coherence of points over their homogeneous pixels (SHP): one block of threads for one point.
//
// A thread sums the products of TILE by TILE images in registers. The samples come through shared memory, `depth` of
// them at a time, scaled to unit power of each image: an SHP is read from the cache of the device and not gathered
// in its memory. All sums of a pair are taken in one order, so results do not depend on how points are cut into calls.
//
// Written for NVRTC: no headers.

#define TILE 4
#define TINY 1e-60  // a sample of less power is missing

struct Scene {
    const float2* samples;  // (nlines, width, n_images)
    int nlines, width, n_images;
};

__device__ __forceinline__ double power_of(float2 sample) {
    const double re = sample.x, im = sample.y;
    const double power = re * re + im * im;
    return power >= TINY && isfinite(power) ? power : 0.0;
}

// Lists the SHPs inside the scene, in the order of the window; returns how many.
__device__ int list_pixels(const Scene scene, const int* point, const unsigned char* is_shp, int az_win, int r_win,
                           unsigned* words, int* pixels) {
    const int n_cells = az_win * r_win;
    for (int start = 0; start < n_cells; start += blockDim.x) {
        const int cell = start + threadIdx.x;
        const int line = point[0] + cell / r_win - az_win / 2, pixel = point[1] + cell % r_win - r_win / 2;
        const bool is_used = cell < n_cells && line >= 0 && line < scene.nlines && pixel >= 0 && pixel < scene.width
                             && is_shp[cell];
        const unsigned word = __ballot_sync(0xffffffffu, is_used);
        if (threadIdx.x % 32 == 0 && cell < n_cells) words[cell / 32] = word;
    }
    __syncthreads();
    int n = 0;
    for (int word = 0; word < (n_cells + 31) / 32; word++) n += __popc(words[word]);
    for (int cell = threadIdx.x; cell < n_cells; cell += blockDim.x) {
        const unsigned own = words[cell / 32], bit = 1u << cell % 32;
        if (!(own & bit)) continue;
        int rank = __popc(own & (bit - 1));
        for (int word = 0; word < cell / 32; word++) rank += __popc(words[word]);
        const int line = point[0] + cell / r_win - az_win / 2, pixel = point[1] + cell % r_win - r_win / 2;
        pixels[rank] = line * scene.width + pixel;
    }
    __syncthreads();
    return n;
}

// Finds the factor to unit power and the number of valid samples of each image; returns the number of pixels that have
// a valid sample. `sums` and `counts` hold one number for each thread or image, `seen` one for each pixel.
__device__ int measure_images(const Scene scene, const int* pixels, int n, float* scale, int* valid, double* sums,
                              int* counts, int* seen) {
    const int n_images = scene.n_images, parts = max(int(blockDim.x) / n_images, 1);
    for (int pixel = threadIdx.x; pixel < n; pixel += blockDim.x) seen[pixel] = 0;
    __syncthreads();
    for (int item = threadIdx.x; item < n_images * parts; item += blockDim.x) {
        const int image = item % n_images;
        double sum = 0;
        int count = 0;
        for (int pixel = item / n_images; pixel < n; pixel += parts) {
            const double power = power_of(scene.samples[(long long)pixels[pixel] * n_images + image]);
            sum += power;
            if (power > 0) {
                count++;
                seen[pixel] = 1;  // all threads write the same
            }
        }
        sums[item] = sum;
        counts[item] = count;
    }
    __syncthreads();
    for (int image = threadIdx.x; image < n_images; image += blockDim.x) {
        double sum = 0;
        int count = 0;
        for (int part = 0; part < parts; part++) {
            sum += sums[part * n_images + image];
            count += counts[part * n_images + image];
        }
        scale[image] = sum > 0 ? float(1 / sqrt(sum)) : 0.0f;
        valid[image] = count;
    }
    int n_seen = 0;
    for (int start = 0; start < n; start += blockDim.x) {
        const int pixel = start + threadIdx.x;
        n_seen += __syncthreads_count(pixel < n && seen[pixel]);
    }
    return n_seen;
}

// Brings samples of some pixels to shared memory: of 4 images, the first two lie in one half and the others in the
// other, so that neighboring threads read neighboring words. With GAPS, power and presence instead of the samples.
template <bool GAPS>
__device__ void load_samples(const Scene scene, const int* pixels, int n, const float* scale, int n_tiles,
                             float2* shared) {
    const int padded = TILE * n_tiles;
    for (int item = threadIdx.x; item < n * padded; item += blockDim.x) {
        const int row = item / padded, image = item % padded;
        float2 sample = make_float2(0.0f, 0.0f);
        if (image < scene.n_images) {
            const float2 read = scene.samples[(long long)pixels[row] * scene.n_images + image];
            if (power_of(read) > 0) sample = make_float2(read.x * scale[image], read.y * scale[image]);
            if (GAPS) {
                const float power = sample.x * sample.x + sample.y * sample.y;
                sample = make_float2(power, power > 0 ? 1.0f : 0.0f);
            }
        }
        shared[row * padded + image / 2 % 2 * 2 * n_tiles + image / TILE * 2 + image % 2] = sample;
    }
}

__device__ __forceinline__ void read_tile(const float4* row, int n_tiles, int tile, float2* images) {
    const float4 low = row[tile], high = row[n_tiles + tile];
    images[0] = make_float2(low.x, low.y);
    images[1] = make_float2(low.z, low.w);
    images[2] = make_float2(high.x, high.y);
    images[3] = make_float2(high.z, high.w);
}

// The steps of both kernels. `tiles` are the tiles (row, column) of the matrix with pairs, `pair_of[i][j]` the number of
// a pair or -1; steps are how far apart pairs and points are in `out`. Shared memory: samples float2[depth][padded], which first holds what is measured; scale float[n_images];
// valid int[n_images]; pixels and seen int[n_cells]; words unsigned[n_cells / 32].
template <bool GAPS>
__device__ void coherence_of_point(const Scene scene, const int* gix, const unsigned char* is_shp, int az_win, int r_win,
                                   const int* tiles, int n_used_tiles, const int* pair_of, bool strict, int depth,
                                   int buffer, float2* memory, unsigned char* has_gaps, float2* out, int pair_step,
                                   int point_step) {
    const int point = blockIdx.x, n_cells = az_win * r_win, n_images = scene.n_images;
    const int n_tiles = (n_images + TILE - 1) / TILE;
    if (GAPS && !has_gaps[point]) return;

    float2* samples = memory;
    float* scale = reinterpret_cast<float*>(memory + buffer);
    int* valid = reinterpret_cast<int*>(scale + n_images);
    int* pixels = valid + n_images;
    int* seen = pixels + n_cells;
    unsigned* words = reinterpret_cast<unsigned*>(seen + n_cells);
    double* sums = reinterpret_cast<double*>(memory);
    int* counts = reinterpret_cast<int*>(sums + max(int(blockDim.x), n_images));

    const int n = list_pixels(scene, gix + 2 * point, is_shp + (long long)point * n_cells, az_win, r_win, words, pixels);
    const int n_seen = measure_images(scene, pixels, n, scale, valid, sums, counts, seen);
    if (!GAPS) {
        int incomplete = 0;
        for (int image = 0; image < n_images; image++) incomplete |= valid[image] < n_seen;
        if (threadIdx.x == 0) has_gaps[point] = incomplete;
    }

    const float nan = nanf("");
    for (int start = 0; start < n_used_tiles; start += blockDim.x) {
        const int number = start + threadIdx.x;
        const bool is_used = number < n_used_tiles;
        const int row = is_used ? tiles[2 * number] : 0, column = is_used ? tiles[2 * number + 1] : 0;
        float2 sum[TILE][TILE];  // with GAPS: powers of both images where both are valid
        float common[TILE][TILE];
#pragma unroll
        for (int i = 0; i < TILE; i++)
#pragma unroll
            for (int j = 0; j < TILE; j++) {
                sum[i][j] = make_float2(0.0f, 0.0f);
                if (GAPS) common[i][j] = 0.0f;
            }
        for (int first = 0; first < n; first += depth) {
            const int count = min(depth, n - first);
            __syncthreads();
            load_samples<GAPS>(scene, pixels + first, count, scale, n_tiles, samples);
            __syncthreads();
            if (!is_used) continue;
            const float4* shared = reinterpret_cast<const float4*>(samples);
            for (int sample = 0; sample < count; sample++, shared += 2 * n_tiles) {
                float2 a[TILE], b[TILE];
                read_tile(shared, n_tiles, row, a);
                read_tile(shared, n_tiles, column, b);
#pragma unroll
                for (int i = 0; i < TILE; i++)
#pragma unroll
                    for (int j = 0; j < TILE; j++)
                        if (GAPS) {
                            sum[i][j].x += a[i].x * b[j].y;
                            sum[i][j].y += a[i].y * b[j].x;
                            common[i][j] += a[i].y * b[j].y;
                        } else {
                            sum[i][j].x += a[i].x * b[j].x;
                            sum[i][j].x += a[i].y * b[j].y;
                            sum[i][j].y += a[i].y * b[j].x;
                            sum[i][j].y -= a[i].x * b[j].y;
                        }
            }
        }
        if (!is_used) continue;
#pragma unroll
        for (int i = 0; i < TILE; i++)
#pragma unroll
            for (int j = 0; j < TILE; j++) {
                const int ref = TILE * row + i, sec = TILE * column + j;
                const int pair = ref < n_images && sec < n_images ? pair_of[ref * n_images + sec] : -1;
                if (pair < 0) continue;
                float2* place = out + (long long)pair * pair_step + (long long)point * point_step;
                const bool is_whole = valid[ref] == n_seen && valid[sec] == n_seen;
                if (!GAPS) {
                    const bool is_known = n_seen > 0 && (is_whole || !strict);
                    *place = is_known ? sum[i][j] : make_float2(nan, nan);
                } else if (!is_whole) {
                    const float factor = common[i][j] < 2 ? nan : rsqrtf(sum[i][j].x) * rsqrtf(sum[i][j].y);
                    *place = make_float2(place->x * factor, place->y * factor);
                }
            }
    }
}

#define PARAMETERS                                                                                                    \
    const float2 *samples, const int nlines, const int width, const int n_images, const int *gix,                     \
        const unsigned char *is_shp, const int az_win, const int r_win, const int *tiles, const int n_used_tiles,     \
        const int *pair_of, const int strict, const int depth, const int buffer, unsigned char *has_gaps,             \
        float2 *out, const int pair_step, const int point_step

extern "C" __global__ void __launch_bounds__(512) coherence(PARAMETERS) {
    extern __shared__ float4 memory[];
    coherence_of_point<false>({samples, nlines, width, n_images}, gix, is_shp, az_win, r_win, tiles, n_used_tiles,
                              pair_of, strict, depth, buffer, reinterpret_cast<float2*>(memory), has_gaps, out,
                              pair_step, point_step);
}

// Corrects what `coherence` has written for points with missing samples.
extern "C" __global__ void __launch_bounds__(512) coherence_of_gaps(PARAMETERS) {
    extern __shared__ float4 memory[];
    coherence_of_point<true>({samples, nlines, width, n_images}, gix, is_shp, az_win, r_win, tiles, n_used_tiles,
                             pair_of, strict, depth, buffer, reinterpret_cast<float2*>(memory), has_gaps, out,
                             pair_step, point_step);
}
