// EMI, one block of threads per point; the modules `_cpu` beside say what the steps are for, kernels.py what is computed.
//
// One Hermitian matrix per point, its upper triangle packed by rows, is all that is large: 8 bytes for each of
// m (m + 1) / 2 elements, in shared memory where that has room (34 KB of 227 for 92 images), so that several points are
// worked on by one multiprocessor. It is the modulus, then minus its inverse, then the weighted coherence less a shift,
// then minus the inverse of that. Where the CPU factorizes and solves, this inverts: as many barriers, and what follows
// are products with a matrix, without any chain of dependent steps. Positive pivots prove what a Cholesky factorization
// proves.
//
// An inversion eliminates four rows at a time: three barriers for each group, so 23 * 3 for 92 images. In between each
// element of the triangle is loaded and stored once for 4 (real) or 16 (complex) fused multiply-adds; two rows that are
// together as long as the matrix is wide go to one warp, so all lanes have work. For 92 images that are some 10^5
// instructions of each of 4 warps, which bound it rather than memory or latency, as the blocks of a multiprocessor fill
// each other's gaps: 0.1 ms of a multiprocessor, below 1 microsecond per point on 132 of them.

#define GROUP 4
#define STEPS 8
#define REAL_STEPS 40
#define CONDITION 1e5
#define SINGLE_CONDITION 5e4
#define TOLERANCE 1e-5
#define BETA_TOLERANCE 2e-5
#define FIRST_SHIFT 0.99
#define FACTORIZATIONS 40
#define NOTHING 1e-20
#define FULL 0xffffffffu
#define NAN_DOUBLE __longlong_as_double(0x7ff8000000000000LL)
#define NAN_FLOAT __int_as_float(0x7fffffff)
#define INF __int_as_float(0x7f800000)

// What a block works with; m is n in whole groups, and what lies beyond n is the identity.
struct Point {
    const float2* coh;  // packed coherence of all images
    int all, n, m;      // images, images with pairs, rows
    float2* a;          // the matrix
    float2* old;        // the rows of a group before elimination, [GROUP][m]
    float2* fresh;      // and after
    float2* vectors;    // [STEPS + 2][m]
    double *alpha, *beta, *ritz, *result;  // tridiagonal matrix; theta, residual and error
    float* partial;     // sums of warps
    int* images;        // numbers of the images with pairs
};

static __device__ __forceinline__ int place(int m, int i, int j) { return i * m - i * (i - 1) / 2 + j - i; }

static __device__ __forceinline__ float2 conjugate(float2 z) { return make_float2(z.x, -z.y); }

// c - conj(a) b
static __device__ __forceinline__ float2 subtract_product(float2 c, float2 a, float2 b, bool is_real) {
    c.x = fmaf(-a.x, b.x, c.x);
    if (!is_real) {
        c.x = fmaf(-a.y, b.y, c.x);
        c.y = fmaf(-a.x, b.y, c.y);
        c.y = fmaf(a.y, b.x, c.y);
    }
    return c;
}

static __device__ __forceinline__ bool is_valid(float2 z) { return z.x * z.x + z.y * z.y < INF; }

// Coherence of images i < j of those that take part, 0 where it is missing.
static __device__ __forceinline__ float2 coherence(const Point& p, int i, int j) {
    const int first = p.images[i], second = p.images[j];
    const float2 z = p.coh[(long long)first * (2 * p.all - first - 1) / 2 + second - first - 1];
    return is_valid(z) ? z : make_float2(0.0f, 0.0f);
}

// Sum over the block, the same in all threads and in every run.
static __device__ float block_sum(const Point& p, float value) {
    for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(FULL, value, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) p.partial[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0;
    for (int warp = 0; warp < blockDim.x / 32; warp++) sum += p.partial[warp];
    return sum;
}

// Run over the upper triangle: rows i and m - 1 - i, together m + 1 long, by one warp.
#define FOR_TRIANGLE(p, i, j)                                                                     \
    for (int pair_ = threadIdx.x / 32; pair_ < (p).m / 2; pair_ += blockDim.x / 32)               \
        for (int t_ = threadIdx.x % 32, i, j; t_ <= (p).m; t_ += 32)                              \
            if (i = t_ < (p).m - pair_ ? pair_ : (p).m - 1 - pair_,                               \
                j = t_ < (p).m - pair_ ? pair_ + t_ : t_ - 1, true)

// Which images have a pair; returns how many, and the place of ref among them, -1 if it has none.
static __device__ int find_images(Point& p, int ref) {
    bool is_missing = false;
    const int n_pairs = p.all * (p.all - 1) / 2;
    for (int k = threadIdx.x; k < n_pairs; k += blockDim.x) is_missing |= !is_valid(p.coh[k]);
    is_missing = __syncthreads_or(is_missing);
    for (int i = threadIdx.x; i < p.all; i += blockDim.x) p.images[i] = is_missing ? -1 : i;
    __syncthreads();
    if (!is_missing) {
        p.n = p.all;
        p.m = (p.n + GROUP - 1) / GROUP * GROUP;
        return ref;
    }
    for (int i = threadIdx.x / 32; i < p.all; i += blockDim.x / 32)
        for (int j = i + 1 + threadIdx.x % 32; j < p.all; j += 32)
            if (is_valid(p.coh[i * (2 * p.all - i - 1) / 2 + j - i - 1])) p.images[i] = i, p.images[j] = j;
    __syncthreads();
    int n = 0, at = -1;
    for (int i = 0; i < p.all; i++)
        if (p.images[i] >= 0) {
            if (i == ref) at = n;
            n++;
        }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0, k = 0; i < p.all; i++)
            if (p.images[i] >= 0) p.images[k++] = i;
    __syncthreads();
    p.n = n;
    p.m = (n + GROUP - 1) / GROUP * GROUP;
    return at;
}

static __device__ void fill_modulus(const Point& p, float scale, float diagonal) {
    FOR_TRIANGLE(p, i, j) {
        float2 value = make_float2(i == j ? (i < p.n ? diagonal : 1.0f) : 0.0f, 0.0f);
        if (i < j && j < p.n) {
            const float2 z = coherence(p, i, j);
            value.x = scale * sqrtf(fmaf(z.x, z.x, z.y * z.y));
        }
        p.a[place(p.m, i, j)] = value;
    }
    __syncthreads();
}

// Invert the diagonal block of a group, in the registers of every thread alike; false if it is not definite.
static __device__ __forceinline__ bool invert_block(float2 b[GROUP][GROUP], bool must_be_definite, bool is_real) {
#pragma unroll
    for (int r = 0; r < GROUP; r++) {
        float pivot = b[r][r].x;
        if (must_be_definite ? !(pivot > 0.0f) : !(fabsf(pivot) > 1e-30f)) return false;
        pivot = 1.0f / pivot;
        b[r][r] = make_float2(1.0f, 0.0f);
#pragma unroll
        for (int t = 0; t < GROUP; t++) b[r][t] = make_float2(b[r][t].x * pivot, b[r][t].y * pivot);
#pragma unroll
        for (int s = 0; s < GROUP; s++)
            if (s != r) {
                const float2 factor = conjugate(b[s][r]);
                b[s][r] = make_float2(0.0f, 0.0f);
#pragma unroll
                for (int t = 0; t < GROUP; t++) b[s][t] = subtract_product(b[s][t], factor, b[r][t], is_real);
            }
    }
    return true;
}

// Replace a matrix by minus its inverse; false if it is not definite. With K a group, P the inverse of its block and
// R = P A[K, :], each other row i becomes A[i, :] - A[i, K] R, the group becomes R, and its block -P.
static __device__ __forceinline__ bool invert(const Point& p, bool must_be_definite, const bool is_real) {
    const int m = p.m;
    for (int k = 0; k < m; k += GROUP) {
        for (int j = threadIdx.x; j < m; j += blockDim.x)
#pragma unroll
            for (int r = 0; r < GROUP; r++)
                p.old[r * m + j] = j < k + r ? conjugate(p.a[place(m, j, k + r)]) : p.a[place(m, k + r, j)];
        __syncthreads();
        float2 block[GROUP][GROUP];
#pragma unroll
        for (int r = 0; r < GROUP; r++)
#pragma unroll
            for (int s = 0; s < GROUP; s++) block[r][s] = p.old[r * m + k + s];
        if (!invert_block(block, must_be_definite, is_real)) {
            __syncthreads();
            return false;
        }
        for (int j = threadIdx.x; j < m; j += blockDim.x)
#pragma unroll
            for (int r = 0; r < GROUP; r++) {
                float2 value = make_float2(0.0f, 0.0f);
#pragma unroll
                for (int s = 0; s < GROUP; s++) {
                    // P is Hermitian: -P[r, s] is what is to be subtracted conj(P[s, r]) times
                    const float2 c = make_float2(-block[s][r].x, -block[s][r].y);
                    value = subtract_product(value, c, p.old[s * m + j], is_real);
                }
                // with I - P in place of R[K], the update below leaves R in the columns K of the rows above, too
#pragma unroll
                for (int s = 0; s < GROUP; s++)
                    if (j == k + s) value = make_float2((r == s ? 1.0f : 0.0f) - block[r][s].x, -block[r][s].y);
                p.fresh[r * m + j] = value;
            }
        __syncthreads();
        FOR_TRIANGLE(p, i, j) {
            float2 value;
            if (i / GROUP == k / GROUP) {
                value = p.fresh[(i - k) * m + j];
                if (j < k + GROUP) value.x -= i == j ? 1.0f : 0.0f;  // I - P becomes -P
            } else {
                value = p.a[place(m, i, j)];
#pragma unroll
                for (int r = 0; r < GROUP; r++)
                    value = subtract_product(value, p.old[r * m + i], p.fresh[r * m + j], is_real);
            }
            p.a[place(m, i, j)] = value;
        }
        __syncthreads();
    }
    return true;
}

// y = inverse x, from minus the inverse.
static __device__ __forceinline__ void multiply(const Point& p, const float2* x, float2* y, const bool is_real) {
    for (int i = threadIdx.x; i < p.m; i += blockDim.x) {
        float2 sum = make_float2(0.0f, 0.0f);
        for (int j = 0; j < i; j++) sum = subtract_product(sum, p.a[place(p.m, j, i)], x[j], is_real);
        for (int j = i; j < p.m; j++) sum = subtract_product(sum, conjugate(p.a[place(p.m, i, j)]), x[j], is_real);
        y[i] = sum;
    }
    __syncthreads();
}

// Largest eigenvalue of the tridiagonal matrix of k steps, to result[0], and how far beta[k - 1] lets it be off, to
// result[1]; its eigenvector. One thread; see eigenvalues/_cpu.py.
static __device__ void largest_ritz(const Point& p, int k) {
    const double *alpha = p.alpha, *beta = p.beta;
    double theta = alpha[0], scale = 0;
    for (int i = 0; i < k; i++) {
        const double beside = (i > 0 ? beta[i - 1] : 0) + (i < k - 1 ? beta[i] : 0);
        theta = fmax(theta, alpha[i] + beside);
        scale = fmax(scale, fabs(alpha[i]) + beside);
    }
    for (int iteration = 0; iteration < 50; iteration++) {
        double inverse = 0, slope = 0, bend = 0, first = 0, second = 0;
        for (int i = k - 1; i >= 0; i--) {
            const double ratio = i < k - 1 ? beta[i] * beta[i] * inverse : 0;
            const double change = ratio * inverse;
            bend = change * (bend - 2 * slope * slope * inverse);
            slope = 1 + change * slope;
            inverse = 1 / fmax(theta - alpha[i] - ratio, 1e-14 * scale);
            first += slope * inverse;
            second += slope * inverse * (slope * inverse) - bend * inverse;
        }
        const double step = k / (first + sqrt(fmax((k - 1) * (k * second - first * first), 0.0)));
        theta -= step;
        if (step < 1e-7 * scale) break;
    }
    p.ritz[k - 1] = 1;
    double pivot = theta - alpha[k - 1], square = 1;
    for (int i = k - 1; i > 0; i--) {
        pivot = fmax(pivot, 1e-14 * scale);
        p.ritz[i - 1] = p.ritz[i] * pivot / beta[i - 1];
        square += p.ritz[i - 1] * p.ritz[i - 1];
        pivot = theta - alpha[i - 1] - beta[i - 1] * beta[i - 1] / pivot;
    }
    for (int i = 0; i < k; i++) p.ritz[i] /= sqrt(square);
    double rest = -theta * theta;
    for (int i = 0; i < k; i++) rest += alpha[i] * alpha[i] + (i < k - 1 ? 2 * beta[i] * beta[i] : 0);
    const double following = sqrt(fmax(rest, 0.0)), residual = beta[k - 1] * p.ritz[k - 1];
    p.result[0] = theta;
    p.result[1] = residual;
    p.result[2] = residual / fmax(theta - following, 0.05 * theta) * fmin(following / theta, 1.0);
}

// Lanczos iteration with the inverse from the first vector, which has length 1. For the modulus (is_real) until the
// eigenvalue is good; else until the vector is, which then replaces the first one. Returns the largest eigenvalue.
static __device__ __forceinline__ double iterate(const Point& p, const bool is_real) {
    const int m = p.m, most = is_real ? REAL_STEPS : STEPS;
    int k = 0;
    for (;; k++) {
        // an eigenvalue needs no more than the last three vectors
        const float2* before = p.vectors + (is_real ? (k + 2) % 3 : k - 1) * m;
        const float2* q = p.vectors + (is_real ? k % 3 : k) * m;
        float2* next = p.vectors + (is_real ? (k + 1) % 3 : k + 1) * m;
        multiply(p, q, next, is_real);
        float sum = 0;
        for (int i = threadIdx.x; i < m; i += blockDim.x) sum += q[i].x * next[i].x + q[i].y * next[i].y;
        const float overlap = block_sum(p, sum), last = k > 0 ? (float)p.beta[k - 1] : 0.0f;
        sum = 0;
        for (int i = threadIdx.x; i < m; i += blockDim.x) {
            float2 rest = make_float2(fmaf(-overlap, q[i].x, next[i].x), fmaf(-overlap, q[i].y, next[i].y));
            if (k > 0) rest = make_float2(fmaf(-last, before[i].x, rest.x), fmaf(-last, before[i].y, rest.y));
            next[i] = rest;
            sum += rest.x * rest.x + rest.y * rest.y;
        }
        const float length = sqrtf(block_sum(p, sum));
        bool is_last = k + 1 == most || length <= 1e-6f * overlap;
        const bool is_check = is_last || (is_real ? k % 4 == 3 : k > 1);
        if (threadIdx.x == 0) {
            p.alpha[k] = overlap;
            p.beta[k] = length;
            if (is_check) largest_ritz(p, k + 1);
        }
        if (length > 0.0f)
            for (int i = threadIdx.x; i < m; i += blockDim.x)
                next[i] = make_float2(next[i].x / length, next[i].y / length);
        __syncthreads();
        if (is_check) {
            const double theta = p.result[0];
            is_last |= is_real ? p.result[1] < fmin(BETA_TOLERANCE / 2 * theta, 1e-3) * theta : p.result[2] < TOLERANCE;
        }
        if (is_last) break;
    }
    const double theta = p.result[0];
    if (!is_real) {
        const float beyond = p.result[1] / theta;
        float sum = 0;
        for (int i = threadIdx.x; i < m; i += blockDim.x) {
            float2 value = p.vectors[(k + 1) * m + i];
            value = make_float2(beyond * value.x, beyond * value.y);
            for (int s = 0; s <= k; s++) {
                const float part = p.ritz[s];
                const float2 q = p.vectors[s * m + i];
                value = make_float2(fmaf(part, q.x, value.x), fmaf(part, q.y, value.y));
            }
            p.vectors[i] = value;
            sum += value.x * value.x + value.y * value.y;
        }
        const float length = sqrtf(block_sum(p, sum));
        for (int i = threadIdx.x; i < m; i += blockDim.x)
            p.vectors[i] = make_float2(p.vectors[i].x / length, p.vectors[i].y / length);
    }
    __syncthreads();
    return theta;
}

// Smallest eigenvalue of the regularized modulus, from minus its inverse.
static __device__ double smallest_eigenvalue(const Point& p, unsigned seed) {
    float sum = 0;
    for (int i = threadIdx.x; i < p.m; i += blockDim.x) {
        unsigned bits = (seed * 2654435761u + i) * 2246822519u;
        bits = (bits ^ bits >> 15) * 3266489917u;
        const float value = i < p.n ? (bits ^ bits >> 16) / 2147483648.0f - 0.5f : 0.0f;
        p.vectors[i] = make_float2(value, 0.0f);
        sum += value * value;
    }
    const float length = sqrtf(block_sum(p, sum));
    for (int i = threadIdx.x; i < p.m; i += blockDim.x) p.vectors[i].x /= length;
    __syncthreads();
    return 1 / iterate(p, true);
}

// Largest eigenvalue of the modulus, to a few digits; the matrix is overwritten.
static __device__ double largest_eigenvalue(const Point& p) {
    fill_modulus(p, -1.0f, -1.0f);
    float2 *x = p.vectors, *y = p.vectors + p.m;
    for (int i = threadIdx.x; i < p.m; i += blockDim.x) x[i] = make_float2(i < p.n ? 1.0f : 0.0f, 0.0f);
    float before = p.n, norm = 0;
    for (int step = 0; step < 3; step++) {
        __syncthreads();
        multiply(p, x, y, true);
        float sum = 0;
        for (int i = threadIdx.x; i < p.n; i += blockDim.x) sum += y[i].x * y[i].x;
        const float square = block_sum(p, sum);
        norm = sqrtf(square / before);
        for (int i = threadIdx.x; i < p.n; i += blockDim.x) x[i].x = y[i].x / sqrtf(square);
        before = 1;
    }
    __syncthreads();
    return norm;
}

static __device__ double adaptive_beta(double smallest, double largest) {
    const double below = fmax(0.0, -smallest);
    const double conditioned = (largest / CONDITION - smallest) / ((1 - smallest) + (largest - 1) / CONDITION);
    return fmax(fmax(2 * below / (1 + 2 * below), conditioned), 0.0);
}

static __device__ __noinline__ bool invert_regularized(const Point& p, double beta, bool must_be_definite) {
    fill_modulus(p, 1 - beta, 1.0f);
    return invert(p, must_be_definite, true);
}

// Leave minus the inverse of the regularized modulus; return the regularization, nan if there is none.
static __device__ double invert_modulus(const Point& p, bool regularize, double beta_min) {
    if (!regularize) return invert_regularized(p, 0, false) ? 0 : NAN_DOUBLE;
    const double ratio = beta_min / (1 - beta_min);
    fill_modulus(p, 1.0f, 1 - fmax(-ratio / 2, (p.n + ratio) / SINGLE_CONDITION - ratio));
    if (invert(p, true, true) && invert_regularized(p, beta_min, true)) return beta_min;
    double beta = 1 - 0.8 * (1 - beta_min), stable = 1;
    int estimates = 0;
    for (int attempt = 0; attempt < 50; attempt++) {
        if (!invert_regularized(p, beta, true)) {
            beta = stable == 1 ? 1 - 0.8 * (1 - beta) : (beta + stable) / 2;
            continue;
        }
        estimates++;
        const double smallest = (smallest_eigenvalue(p, estimates) - beta) / (1 - beta);
        const double largest = fabs(smallest) < 2 * p.n / CONDITION ? largest_eigenvalue(p) : p.n;
        stable = beta;
        beta = fmax(adaptive_beta(smallest, largest), beta_min);
        bool is_sure = estimates > 2;
        if (!is_sure && stable < 8 * beta) {
            fill_modulus(p, 1.0f, 1 - (smallest - BETA_TOLERANCE));
            is_sure = invert(p, true, true);
        }
        if (is_sure && invert_regularized(p, beta, true)) return beta;
    }
    return invert_regularized(p, stable, true) ? stable : NAN_DOUBLE;
}

// The column of the image that the others explain best, weighted by coherence, as the first vector.
static __device__ void start_vector(const Point& p) {
    int best = 0;
    for (int i = 1; i < p.n; i++)
        if (p.a[place(p.m, i, i)].x < p.a[place(p.m, best, best)].x) best = i;
    float sum = 0;
    for (int i = threadIdx.x; i < p.m; i += blockDim.x) {
        float2 z = make_float2(i == best ? 1.0f : 0.0f, 0.0f);
        if (i < best) z = coherence(p, i, best);
        if (i > best && i < p.n) z = conjugate(coherence(p, best, i));
        const float modulus = sqrtf(z.x * z.x + z.y * z.y);
        p.vectors[i] = make_float2(z.x * modulus, z.y * modulus);
        sum += p.vectors[i].x * p.vectors[i].x + p.vectors[i].y * p.vectors[i].y;
    }
    const float length = sqrtf(block_sum(p, sum));
    for (int i = threadIdx.x; i < p.m; i += blockDim.x)
        p.vectors[i] = make_float2(p.vectors[i].x / length, p.vectors[i].y / length);
    __syncthreads();
}

// Turn minus the weights into weights o coherence, less a shift on the diagonal.
static __device__ void fill_shifted(const Point& p, double beta, double shift) {
    const float scale = beta - 1;
    FOR_TRIANGLE(p, i, j) {
        const float weight = p.a[place(p.m, i, j)].x;
        float2 value = make_float2(i == j ? -weight - (float)shift : 0.0f, 0.0f);
        if (i < j && j < p.n) {
            const float2 z = coherence(p, i, j);
            value = make_float2(scale * weight * z.x, scale * weight * z.y);
        }
        p.a[place(p.m, i, j)] = value;
    }
    __syncthreads();
}

// From minus the weights: leave the eigenvector of the smallest eigenvalue of weights o coherence as the first vector,
// and return the eigenvalue. Each inversion but the first has to make the weights anew; hardly any point has a second.
static __device__ double find_eigenvector(const Point& p, bool regularize, double beta) {
    start_vector(p);
    double shift = FIRST_SHIFT, step = 0.02, proven = 0, quality = NAN_DOUBLE;
    int used = 0;
    for (int attempt = 0; attempt < FACTORIZATIONS; attempt++) {
        if (attempt > 0 && !invert_regularized(p, beta, regularize)) return NAN_DOUBLE;
        fill_shifted(p, beta, shift);
        if (!invert(p, true, false)) {
            if (used > 0) {
                shift = (shift + proven) / 2;
            } else {
                shift -= step;
                step *= 4;
            }
            continue;
        }
        const double theta = iterate(p, false), residual = p.result[1];
        const bool is_good = p.result[2] < TOLERANCE;
        quality = shift + 1 / theta;
        proven = shift;
        used++;
        __syncthreads();
        if (is_good || used == 6) break;
        shift += 0.9 / (theta + residual);
    }
    return quality;
}

static __device__ float2 phasor(const Point& p, int k, int ref) {
    if (k == ref) return make_float2(1.0f, 0.0f);
    double a = p.vectors[k].x, b = p.vectors[k].y, c = p.vectors[ref].x, d = p.vectors[ref].y;
    if (fmin(a * a + b * b, c * c + d * d) < NOTHING * NOTHING) {
        const float2 z = k < ref ? coherence(p, k, ref) : conjugate(coherence(p, ref, k));
        a = z.x, b = z.y, c = 1, d = 0;
    }
    const double re = a * c + b * d, im = b * c - a * d, length = sqrt(re * re + im * im);
    return length > 0 ? make_float2(re / length, im / length) : make_float2(1.0f, 0.0f);
}

// Lay the parts of a point out in memory of 8-byte words, those of _gpu.shared_words; the matrix may be elsewhere.
static __device__ void use_memory(Point& p, double* memory, int n_images, float2* matrix) {
    const int rows = (n_images + GROUP - 1) / GROUP * GROUP;
    p.all = n_images;
    p.alpha = memory;
    p.beta = p.alpha + REAL_STEPS;
    p.ritz = p.beta + REAL_STEPS;
    p.result = p.ritz + REAL_STEPS;
    p.partial = (float*)(p.result + 3);
    p.images = (int*)(p.partial + 32);
    p.old = (float2*)(p.images + rows);
    p.fresh = p.old + GROUP * rows;
    p.vectors = p.fresh + GROUP * rows;
    p.a = matrix ? matrix : p.vectors + (STEPS + 2) * rows;
}

// Link the phases of a point whose p.coh is set: phasors of all images to ph. Returns the smallest eigenvalue, nan where
// there is no result. All threads of a block have to call it; coherence may lie in shared memory.
static __device__ double link(Point& p, int ref, bool regularize, double beta_min, float2* ph, double* beta) {
    const int at = find_images(p, ref);
    double value = NAN_DOUBLE;
    *beta = at < 0 ? NAN_DOUBLE : invert_modulus(p, regularize, beta_min);
    if (*beta == *beta) value = find_eigenvector(p, regularize, *beta);
    if (value != value) *beta = NAN_DOUBLE;
    for (int i = threadIdx.x; i < p.all; i += blockDim.x) ph[i] = make_float2(NAN_FLOAT, NAN_FLOAT);
    __syncthreads();
    if (value == value)
        for (int k = threadIdx.x; k < p.n; k += blockDim.x) ph[p.images[k]] = phasor(p, k, at);
    __syncthreads();
    return value;
}

// Packed coherence, (n_points, n_pairs), to phasors, (n_points, n_images). `spill` holds the matrices of the blocks
// where shared memory has no room for them, and is null otherwise.
extern "C" __global__ void __launch_bounds__(256) link_points(const float2* coh, int ref, bool regularize,
                                                             double beta_min, float2* ph, double* quality,
                                                             double* regularization, long long n_points, int n_images,
                                                             float2* spill) {
    extern __shared__ double memory[];
    const int rows = (n_images + GROUP - 1) / GROUP * GROUP;
    Point p;
    use_memory(p, memory, n_images, spill ? spill + (long long)blockIdx.x * (rows * (rows + 1) / 2) : spill);
    for (long long point = blockIdx.x; point < n_points; point += gridDim.x) {
        p.coh = coh + point * (n_images * (n_images - 1) / 2);
        double beta;
        const double value = link(p, ref, regularize, beta_min, ph + point * n_images, &beta);
        if (threadIdx.x == 0) {
            quality[point] = value;
            regularization[point] = beta;
        }
    }
}
