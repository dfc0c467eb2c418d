// Temporal coherence of distributed scatterers: one warp per point, its lanes over the image pairs.

#define ALL 0xffffffffu
#define SCALE 1099511627776.0f  // 2^40, exact: squares of 1e-30 are then normal numbers
#define LOWEST 1.2089258e-36f   // (2^40 1e-30)^2
#define HIGHEST 3e38f

__device__ __forceinline__ float warp_sum(float value) {
    for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(ALL, value, step);
    return value;
}

// connected components by breadth-first search; lane i holds the bits of images 32 i to 32 i + 31
__device__ int components(const unsigned* adjacency, int nimages, int words, int lane) {
    const int last = nimages - 32 * lane;
    unsigned unseen = lane >= words ? 0 : last >= 32 ? ALL : (1u << last) - 1;
    int count = 0;
    while (__any_sync(ALL, unseen != 0)) {
        int word = __ffs(__ballot_sync(ALL, unseen != 0)) - 1;
        unsigned bits = __shfl_sync(ALL, unseen, word);
        unsigned frontier = lane == word ? bits & (0u - bits) : 0;  // the first image that is not yet seen
        unseen &= ~frontier;
        count++;
        unsigned waiting = 1u << word;
        while (waiting && __any_sync(ALL, unseen != 0)) {
            word = __ffs(waiting) - 1;
            bits = __shfl_sync(ALL, frontier, word);
            if (lane == word) frontier &= frontier - 1;
            const int image = 32 * word + __ffs(bits) - 1;
            const unsigned reached = lane < words ? adjacency[image * words + lane] & unseen : 0;
            unseen &= ~reached;
            frontier |= reached;
            waiting = __ballot_sync(ALL, frontier != 0);
        }
    }
    return count;
}

extern "C" __global__ void ds_temp_coh(
    const float2* __restrict__ coh, const float2* __restrict__ ph, const double* __restrict__ looks,
    const unsigned* __restrict__ pairs, double log_p, int n_points, int nimages, int n_pairs,
    float* __restrict__ t_coh, float* __restrict__ t_coh_w, float* __restrict__ eff_n_pairs,
    short* __restrict__ n_components) {
    extern __shared__ float2 memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const long long point = (long long)blockIdx.x * warps + warp;
    if (point >= n_points) return;
    const int words = (nimages + 31) / 32;
    float2* u = memory + warp * nimages;
    unsigned* adjacency = (unsigned*)(memory + warps * nimages) + warp * nimages * words;
    const float nan = __int_as_float(0x7fc00000);

    for (int image = lane; image < nimages; image += 32) {
        const float2 z = ph[point * nimages + image];
        const double modulus = sqrt((double)z.x * z.x + (double)z.y * z.y);
        const bool is_there = modulus >= 1e-30 && modulus < 1e300;  // nan is not
        u[image] = is_there ? make_float2(z.x / modulus, z.y / modulus) : make_float2(nan, nan);
    }
    for (int i = lane; i < nimages * words; i += 32) adjacency[i] = 0;
    __syncwarp();

    const double L = looks[point];
    const bool is_weighted = L > 1 && L < 1e300;
    const float floor = is_weighted ? (float)(1208925819614629174706176.0 / L) : 0;  // 2^80 / L
    const float gain = is_weighted ? (float)(1 / ((1 - 1 / L) * 1208925819614629174706176.0)) : 0;
    const float threshold =
        is_weighted ? fmaxf((float)(-expm1(log_p / (L - 1)) * 1208925819614629174706176.0), LOWEST) : HIGHEST;

    float re = 0, im = 0, weighted_re = 0, weighted_im = 0, weights = 0, squares = 0;
    int valid = 0;
    const float2* row = coh + point * n_pairs;
#pragma unroll 4
    for (int pair = lane; pair < n_pairs; pair += 32) {
        const unsigned both = __ldg(pairs + pair);
        const int ref = both & 0xffff, sec = both >> 16;
        const float2 z = row[pair], a = u[ref], b = u[sec];
        const float zx = z.x * SCALE, zy = z.y * SCALE;
        // as on the CPU to the last bit: no fused multiply-add
        const float square = __fadd_rn(__fmul_rn(zx, zx), __fmul_rn(zy, zy));
        const float inverse = rsqrtf(square);
        const float px = (a.x * b.x + a.y * b.y) * inverse, py = (a.x * b.y - a.y * b.x) * inverse;
        const float x = zx * px - zy * py, y = zx * py + zy * px;
        if (square >= LOWEST && square <= HIGHEST && x == x) {
            const float w = fminf(fmaxf((square - floor) * gain, 0.0f), 1.0f);
            valid++;
            re += x, im += y;
            weighted_re += w * x, weighted_im += w * y;
            weights += w, squares += w * w;
            if (square > threshold) atomicOr(adjacency + sec * words + ref / 32, 1u << ref % 32);
        }
    }
    re = warp_sum(re), im = warp_sum(im);
    weighted_re = warp_sum(weighted_re), weighted_im = warp_sum(weighted_im);
    weights = warp_sum(weights), squares = warp_sum(squares);
    const float n_valid = warp_sum((float)valid);
    __syncwarp();

    int count = nimages;
    if (is_weighted) {
        // so far image `sec` knows `ref`: let them know each other, 32 x 32 images at a time
        for (int line = 0; line < words; line++)
            for (int column = 0; column <= line; column++) {
                const int own = 32 * line + lane;
                const unsigned lower = own < nimages ? adjacency[own * words + column] : 0;
                const int other = 32 * column + lane;
                const unsigned upper = other < nimages ? adjacency[other * words + line] : 0;
                unsigned lower_turned = 0, upper_turned = 0;
                for (int bit = 0; bit < 32; bit++) {
                    const unsigned from_lower = __ballot_sync(ALL, lower >> bit & 1);
                    const unsigned from_upper = __ballot_sync(ALL, upper >> bit & 1);
                    if (lane == bit) lower_turned = from_lower, upper_turned = from_upper;
                }
                if (other < nimages) adjacency[other * words + line] = upper | lower_turned;
                __syncwarp();
                if (own < nimages) adjacency[own * words + column] |= lower | upper_turned;
                __syncwarp();
            }
        count = components(adjacency, nimages, words, lane);
    }
    if (lane == 0) {
        const bool has_weight = is_weighted && weights > 0;
        // rounding may pass 1
        t_coh[point] = n_valid > 0 ? fminf(sqrtf(re * re + im * im) / n_valid, 1.0f) : nan;
        t_coh_w[point] =
            has_weight ? fminf(sqrtf(weighted_re * weighted_re + weighted_im * weighted_im) / weights, 1.0f) : nan;
        eff_n_pairs[point] = has_weight ? weights * weights / squares : 0;
        n_components[point] = (short)count;
    }
}
