/* warp.cpp: what the lanes of a warp do together (emulator.h): shuffles, votes, ldmatrix, and the
 * products of the tensor cores. */
#include <string.h>

#include "emulator.h"

void emulated_nothing(void *const[32], unsigned) {}

void emulated_shuffle(void *const what[32], unsigned mask) {
    uint64_t value[32];
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1u) value[l] = ((emulated_exchange *)what[l])->value;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1u)) continue;
        emulated_exchange *x = (emulated_exchange *)what[l];
        if (!(mask >> x->from & 1u))
            emulated_fail({"shuffle", 0}, "it asks a lane that is not in the mask");
        x->value = value[x->from];
    }
}

void emulated_ballot(void *const what[32], unsigned mask) {
    unsigned all = 0;
    for (int l = 0; l < 32; l++)
        if ((mask >> l & 1u) && ((emulated_vote *)what[l])->yes) all |= 1u << l;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1u) ((emulated_vote *)what[l])->all = all;
}

void emulated_load_matrices(void *const what[32], unsigned) {
    for (int l = 0; l < 32; l++)
        for (int piece = 0; piece < 4; piece++) {
            const emulated_rows *of = (const emulated_rows *)what[piece * 8 + l / 4];
            ((emulated_rows *)what[l])->w[piece] = ((const uint32_t *)of->row)[l % 4];
        }
}

void emulated_load_transposed(void *const what[32], unsigned) {
    for (int l = 0; l < 32; l++)
        for (int piece = 0; piece < 4; piece++) {
            const int row = piece * 8 + l % 4 * 2;
            const uint16_t *lo = (const uint16_t *)((const emulated_rows *)what[row])->row;
            const uint16_t *hi = (const uint16_t *)((const emulated_rows *)what[row + 1])->row;
            ((emulated_rows *)what[l])->w[piece] = lo[l / 4] | (uint32_t)hi[l / 4] << 16;
        }
}

void emulated_store_transposed(void *const what[32], unsigned) {
    for (int l = 0; l < 32; l++)
        for (int piece = 0; piece < 4; piece++) {
            const uint32_t w = ((const emulated_rows *)what[l])->w[piece];
            const int row = piece * 8 + l % 4 * 2;
            ((uint16_t *)((const emulated_rows *)what[row])->row)[l / 4] = (uint16_t)w;
            ((uint16_t *)((const emulated_rows *)what[row + 1])->row)[l / 4] = (uint16_t)(w >> 16);
        }
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static float tf32_of(uint32_t u) { /* the unit reads 19 bits */
    return float_of(u & 0xffffe000u);
}

typedef float quad __attribute__((vector_size(16)));

/* d = a b + c, a (16, K), b (K, 8); a lane holds of c and d (g, 2t), (g, 2t+1), (g+8, 2t),
 * (g+8, 2t+1), as device/mma.cuh says. Most of the emulator's time is spent here. */
template <int K>
static void multiply(void *const what[32], const float (&a)[16][K], const float (&b)[K][8]) {
    alignas(16) float c[16][8];
    for (int l = 0; l < 32; l++) {
        const float *from = ((const emulated_product *)what[l])->c;
        memcpy(&c[l / 4][l % 4 * 2], from, 8);
        memcpy(&c[l / 4 + 8][l % 4 * 2], from + 2, 8);
    }
    for (int r = 0; r < 16; r++) {
        quad left = *(quad *)c[r], right = *(quad *)(c[r] + 4);
        for (int k = 0; k < K; k++) {
            left += a[r][k] * *(const quad *)b[k];
            right += a[r][k] * *(const quad *)(b[k] + 4);
        }
        *(quad *)c[r] = left, *(quad *)(c[r] + 4) = right;
    }
    for (int l = 0; l < 32; l++) {
        float *to = ((const emulated_product *)what[l])->d;
        memcpy(to, &c[l / 4][l % 4 * 2], 8);
        memcpy(to + 2, &c[l / 4 + 8][l % 4 * 2], 8);
    }
}

void emulated_mma_tf32(void *const what[32], unsigned) {
    alignas(16) float a[16][8], b[8][8];
    for (int g = 0; g < 8; g++)
        for (int t = 0; t < 4; t++) {
            const emulated_product *p = (const emulated_product *)what[g * 4 + t];
            a[g][t] = tf32_of(p->a[0]), a[g + 8][t] = tf32_of(p->a[1]);
            a[g][t + 4] = tf32_of(p->a[2]), a[g + 8][t + 4] = tf32_of(p->a[3]);
            b[t][g] = tf32_of(p->b[0]), b[t + 4][g] = tf32_of(p->b[1]);
        }
    multiply(what, a, b);
}

static float of_bf16(uint32_t u) {
    return float_of(u << 16);
}
static float of_half(uint32_t u) {
    const uint16_t bits = (uint16_t)u;
    _Float16 h;
    memcpy(&h, &bits, sizeof h);
    return (float)h;
}

/* Pairs of 16-bit numbers. */
template <class OF> static void multiply_pairs(void *const what[32], OF of) {
    alignas(16) float a[16][16], b[16][8];
    for (int l = 0; l < 32; l++) {
        const emulated_product *p = (const emulated_product *)what[l];
        const int g = l / 4, k = l % 4 * 2;
        for (int half = 0; half < 2; half++) {
            const int at = k + half * 8;
            for (int down = 0; down < 2; down++) {
                const uint32_t pair = p->a[half * 2 + down];
                a[g + down * 8][at] = of(pair & 0xffffu), a[g + down * 8][at + 1] = of(pair >> 16);
            }
            b[at][g] = of(p->b[half] & 0xffffu), b[at + 1][g] = of(p->b[half] >> 16);
        }
    }
    multiply(what, a, b);
}
void emulated_mma_bf16(void *const what[32], unsigned) {
    multiply_pairs(what, of_bf16);
}
void emulated_mma_half(void *const what[32], unsigned) {
    multiply_pairs(what, of_half);
}

/* Columns 8 octet .. + 7 of 16 rows. */
template <class OF>
static void read_octet(uint32_t at, uint32_t pitch, int octet, OF of, float (&to)[16][8]) {
    for (uint32_t r = 0; r < 16; r++) {
        const void *row = emulated_shared(at + (uint32_t)octet * pitch + 16 * r, 16);
        for (int i = 0; i < 8; i++) to[r][i] = of(((const uint16_t *)row)[i]);
    }
}

template <class OF> static void multiply_rows(void *const what[32], OF of) {
    const emulated_rows_product *p = (const emulated_rows_product *)what[0];
    alignas(16) float a[16][16], b[16][8];
    for (int down = 0; down < 2; down++) {
        read_octet(p->a, p->a_pitch, down, of, b);
        for (int i = 0; i < 16 * 8; i++) a[down * 8 + i % 8][i / 8] = b[i / 8][i % 8];
    }
    for (int j = 0; j < p->J; j++) {
        emulated_product each[32];
        void *all[32];
        read_octet(p->b, p->b_pitch, j, of, b);
        for (int l = 0; l < 32; l++) {
            float *c = ((const emulated_rows_product *)what[l])->c + 4 * j;
            each[l] = {c, nullptr, nullptr, c};
            all[l] = &each[l];
        }
        multiply(all, a, b);
    }
}
void emulated_rows_half(void *const what[32], unsigned) {
    multiply_rows(what, of_half);
}
void emulated_rows_bf16(void *const what[32], unsigned) {
    multiply_rows(what, of_bf16);
}
