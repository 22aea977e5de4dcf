/* gemm.cuh: one block's matrix product C (M x N) = A (M x K) B (K x N), the epilogue given.
 *
 * AT: A is stored as its transpose, (K, M) row by row; BT: B as (N, K). The tile of the block is
 * 128 x BN, 16 warps as 4 x 4, 32 x BN/4 a warp; k goes in chunks of BK through a ring of four
 * stages that does not stop at the end of a tile. Rows beyond M and k beyond K count as zeros;
 * columns of the stored matrices are padded to 16 with zeros, so copies go four floats at a time.
 *
 * Strides in shared memory: BK + 4 for what is read along a row (bank 4 g + t, or 20 g + t), BN + 8
 * or 136 for what is read down a column (bank 8 t + g): all without conflicts. */
#ifndef MNP_CUDA_DEVICE_GEMM_CUH
#define MNP_CUDA_DEVICE_GEMM_CUH

#include "backend/cuda/device/mma.cuh"

enum { BM = 128, BK = TARGET_SHARED < 163 * 1024 ? 16 : 32, STAGES = 4 };

template <bool AT> FN constexpr int a_words() {
    return AT ? BK * (BM + 8) : BM * (BK + 4);
}
template <bool BT, int BN> FN constexpr int b_words() {
    return BT ? BN * (BK + 4) : BK * (BN + 8);
}

struct Product {
    const float *a, *b;
    int lda, ldb;
    int M, N, K;
};

FN int up4(int x) {
    return (x + 3) & ~3;
}

template <bool AT, bool BT, int BN>
FN void load_stage(const Product &p, float *stage, int m0, int n0, int k0) {
    float *sa = stage, *sb = stage + a_words<AT>();
    const int K4 = up4(p.K), M4 = up4(p.M), N4 = up4(p.N);
#pragma unroll
    for (int j = 0; j < BM * BK / 4 / THREADS; j++) {
        const int i = threadIdx.x + j * THREADS;
        if (AT) {
            int k = i / (BM / 4), m = i % (BM / 4) * 4;
            bool ok = k0 + k < p.K && m0 + m < M4;
            copy16(sa + k * (BM + 8) + m, ok ? p.a + (int64_t)(k0 + k) * p.lda + m0 + m : p.a, ok);
        } else {
            int m = i / (BK / 4), k = i % (BK / 4) * 4;
            bool ok = m0 + m < p.M && k0 + k < K4;
            copy16(sa + m * (BK + 4) + k, ok ? p.a + (int64_t)(m0 + m) * p.lda + k0 + k : p.a, ok);
        }
    }
#pragma unroll
    for (int j = 0; j < (BN * BK / 4 + THREADS - 1) / THREADS; j++) {
        const int i = threadIdx.x + j * THREADS;
        if (i >= BN * BK / 4) break;
        if (BT) {
            int n = i / (BK / 4), k = i % (BK / 4) * 4;
            bool ok = n0 + n < p.N && k0 + k < K4;
            copy16(sb + n * (BK + 4) + k, ok ? p.b + (int64_t)(n0 + n) * p.ldb + k0 + k : p.b, ok);
        } else {
            int k = i / (BN / 4), n = i % (BN / 4) * 4;
            bool ok = k0 + k < p.K && n0 + n < N4;
            copy16(sb + k * (BN + 8) + n, ok ? p.b + (int64_t)(k0 + k) * p.ldb + n0 + n : p.b, ok);
        }
    }
}

template <int MATH, bool AT, bool BT, int BN>
FN void multiply_stage(const float *stage, float (*c)[BN / 32][4], int wm, int wn) {
    const float *sa = stage, *sb = stage + a_words<AT>();
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
        FragA<MATH> fa[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float a[2][4];
            int m = wm * 32 + i * 16 + g;
#pragma unroll
            for (int s = 0; s < 2; s++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    int row = m + (j & 1) * 8, col = k + s * 8 + t + (j >> 1) * 4;
                    a[s][j] = AT ? sa[col * (BM + 8) + row] : sa[row * (BK + 4) + col];
                }
            make_a<MATH>(fa[i], a);
        }
#pragma unroll
        for (int nt = 0; nt < BN / 32; nt++) {
            float b[2][2];
            FragB<MATH> fb;
            int n = wn * (BN / 4) + nt * 8 + g;
#pragma unroll
            for (int s = 0; s < 2; s++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    int row = k + s * 8 + t + j * 4;
                    b[s][j] = BT ? sb[n * (BK + 4) + row] : sb[row * (BN + 8) + n];
                }
            make_b<MATH>(fb, b);
            mma<MATH>(c[0][nt], fa[0], fb);
            mma<MATH>(c[1][nt], fa[1], fb);
        }
    }
}

/* epilogue(row, col, v0, v1): the numbers at columns col and col + 1, for row < M and col < the
 * epilogue's own bound. */
template <int MATH, bool AT, bool BT, int BN, class Epilogue>
FN void gemm_tiles(const Product &p, const Epilogue &epilogue) {
    constexpr int stage_words = a_words<AT>() + b_words<BT, BN>();
    static_assert(STAGES * stage_words <= WORK_WORDS, "the stages do not fit");
    float *stages = work();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int wm = warp / 4, wn = warp % 4;
    const int chunks = p.K > 0 ? (p.K + BK - 1) / BK : 1;
    const int tiles_n = (p.N + BN - 1) / BN, tiles = (p.M + BM - 1) / BM * tiles_n;
    const int total = tiles * chunks;
    float c[2][BN / 32][4] = {};
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < total) {
            int tile = s / chunks;
            load_stage<AT, BT, BN>(p, stages + s * stage_words, tile / tiles_n * BM,
                                   tile % tiles_n * BN, s % chunks * BK);
        }
        copy_commit();
    }
    for (int it = 0; it < total; it++) {
        copy_wait<STAGES - 2>();
        __syncthreads();
        int next = it + STAGES - 1;
        if (next < total) {
            int tile = next / chunks;
            load_stage<AT, BT, BN>(p, stages + next % STAGES * stage_words, tile / tiles_n * BM,
                                   tile % tiles_n * BN, next % chunks * BK);
        }
        copy_commit();
        const int tile = it / chunks, m0 = tile / tiles_n * BM, n0 = tile % tiles_n * BN;
        const bool live = m0 + wm * 32 < p.M && n0 + wn * (BN / 4) < p.N;
        if (live) multiply_stage<MATH, AT, BT, BN>(stages + it % STAGES * stage_words, c, wm, wn);
        if (it % chunks != chunks - 1) continue;
        if (live || n0 + wn * (BN / 4) < epilogue.bound()) {
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int nt = 0; nt < BN / 32; nt++) {
                    int row = m0 + wm * 32 + i * 16 + g, col = n0 + wn * (BN / 4) + nt * 8 + 2 * t;
                    if (col >= epilogue.bound()) continue;
                    if (row < p.M) epilogue(row, col, c[i][nt][0], c[i][nt][1]);
                    if (row + 8 < p.M) epilogue(row + 8, col, c[i][nt][2], c[i][nt][3]);
                }
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int nt = 0; nt < BN / 32; nt++)
#pragma unroll
                for (int j = 0; j < 4; j++) c[i][nt][j] = 0.0f;
    }
    copy_wait<0>();
    __syncthreads(); /* the ring may be filled again */
}

template <int MATH, bool AT, bool BT, class Epilogue>
static __device__ __noinline__ void gemm_math(Product p, Epilogue epilogue) {
    gemm_tiles<MATH, AT, BT, 128>(p, epilogue);
}

template <bool AT, bool BT, class Epilogue>
FN void gemm(int math, const Product &p, const Epilogue &epilogue) {
    if (math == DEV_TF32)
        gemm_math<DEV_TF32, AT, BT>(p, epilogue);
    else if (math == DEV_BF16)
        gemm_math<DEV_BF16, AT, BT>(p, epilogue);
    else
        gemm_math<DEV_FP32, AT, BT>(p, epilogue);
}

#endif
