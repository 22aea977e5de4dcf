/* gauss.c: normals by position, and the standard deviations of Gaussian heads.
 *
 * The normals have the bits of rng_normal_at(): rng_normal.h writes every fused operation out and
 * leaves nothing to contract, so this file's flags do not change them; they only let the loops
 * over a chunk of blocks become vector code. */
#include "backend/cpu/simd/simd_math.h"
#include "backend/cpu/simd/table.h"
#include "base/rng_normal.h"

enum { CHUNK = 32 }; /* Philox blocks drawn at once */

/* Blocks [0, CHUNK) that follow `at` along the dims or along the points, word by word. */
static void philox_chunk(rng_key key, rng_at at, int64_t first, bool by_point,
                         uint32_t w[4][CHUNK]) {
    for (int b = 0; b < CHUNK; b++) {
        rng_at here = at;
        if (by_point)
            here.point += (uint32_t)(first + b);
        else
            here.dim += 4 * (uint32_t)(first + b);
        rng_words r = rng_words_at(key, here);
        for (int j = 0; j < 4; j++) w[j][b] = r.w[j];
    }
}

void ISA(cpu_normals)(rng_key key, rng_at at, int64_t count, bool by_point, float *out) {
    const int64_t per_block = by_point ? 1 : 4, blocks = (count + per_block - 1) / per_block;
    uint32_t w[4][CHUNK];
    float z[4][CHUNK];
    for (int64_t first = 0; first < blocks; first += CHUNK) {
        const int64_t here = blocks - first < CHUNK ? blocks - first : CHUNK;
        philox_chunk(key, at, first, by_point, w);
        for (int b = 0; b < CHUNK; b++) rng_box_muller(w[0][b], w[1][b], &z[0][b], &z[1][b]);
        if (!by_point)
            for (int b = 0; b < CHUNK; b++) rng_box_muller(w[2][b], w[3][b], &z[2][b], &z[3][b]);
        for (int64_t b = 0; b < here; b++)
            for (int64_t j = 0; j < per_block; j++) {
                const int64_t i = (first + b) * per_block + j;
                if (i < count) out[i] = z[j][b];
            }
    }
}

/* sigma = floor + scale softplus(raw) or floor + scale sigmoid(raw); slope = d sigma / d raw. */
SIMD_INLINE vf sigma_of(vf raw, bool sigmoid, float floor, float scale, vf *slope) {
    const vf s = vsigmoid(raw);
    *slope = scale * (sigmoid ? s * vsigmoid(-raw) : s);
    return floor + scale * (sigmoid ? s : vsoftplus(raw));
}

void ISA(cpu_sigma)(int64_t n, const float *raw, bool sigmoid, float floor, float scale,
                    float *sigma, float *slope) {
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t live = n - i < VL ? n - i : VL;
        const size_t bytes = (size_t)live * sizeof(float);
        float in[VL] = {0}, out[VL], out_slope[VL];
        memcpy(in, raw + i, bytes);
        vf d;
        vstore(out, sigma_of(vload(in), sigmoid, floor, scale, &d));
        vstore(out_slope, d);
        memcpy(sigma + i, out, bytes);
        if (slope) memcpy(slope + i, out_slope, bytes);
    }
}
