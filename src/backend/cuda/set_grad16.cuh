/* set_grad16.cuh: the set encoder's reverse pass on numbers of 16 bits, in tf32 and bf16: types,
 * places in shared memory, copies between them and memory. In tf32 they are halves, which have the
 * digits that the unit reads of a float, and gradients are multiplied by KEPT_SCALE from the
 * pooling on (SCALE); in bf16 bfloat16. Sums are floats.
 *
 * Weight gradients of wq, w1 and w0 are not formed here: their G, rows of 16 bits, are left in
 * SETG_KEPT (fused.h).
 *
 * Everything lies by octets, in shared memory as in global memory: eight columns of 192 rows, 16
 * bytes a row, one row behind the other. So a column of octets is one copy of the copy engine,
 * eight rows as the tensor cores read them are 128 bytes that meet every bank once, and so is an 8
 * x 8 tile of what they give. Nothing that comes or goes passes through registers or keeps a warp
 * waiting for the queue of loads. Of a gradient's floats an octet's row has 32 bytes.
 *
 *   place   words   pooling, w1               attention            wq and w0
 *   Q, K, V 18432   (q1 coming)               q, k, v, then        dq, dk, dv; then q, k, v again
 *                                             dq, dk, dv
 *   G        6144   (a1 coming)               g                    (a0 coming)
 *   DQ      12288   x2, P, B, w1              dq, floats
 *   DH       6144   dh                        (gradient of pre     dh
 *   WQ, W0   8192   (both coming)             coming)              wq, w0
 *   DB       1024                             sums of dbq          wy and y
 *   rest            vectors, sums             lse and delta        sums of db */
#ifndef MNP_CUDA_SET_GRAD16_CUH
#define MNP_CUDA_SET_GRAD16_CUH

#include "backend/cuda/rows.cuh"
#include "backend/cuda/set_grad_pool.cuh"

namespace set_grad_part {

enum { ROWS_WORDS = 8 * SET_OCTET }; /* of a matrix of 64 columns */
enum { PLACE_Q = 0, PLACE_K = ROWS_WORDS, PLACE_V = 2 * ROWS_WORDS, PLACE_G = 3 * ROWS_WORDS };
enum { PLACE_DQ = 4 * ROWS_WORDS, PLACE_DH = PLACE_DQ + 2 * ROWS_WORDS };
enum { PLACE_WQ = PLACE_DH + ROWS_WORDS, PLACE_W0 = PLACE_WQ + 64 * 96 };
enum { PLACE_DB = PLACE_W0 + 64 * 32, DB_PARTS = FUSED_POINTS / 32 };
enum { PLACE_WY = PLACE_DB, PLACE_Y = PLACE_WY + 192, JOINT = 192 + FUSED_POINTS };
static_assert(PLACE_DB + DB_PARTS * 192 <= 4 * (int)ROOM_WORDS, "the rest begins there");
/* In the place of dq: x2, P (192, 16), B (64, 16) as a weight, w1. */
enum { PLACE_X2 = PLACE_DQ, PLACE_P = PLACE_X2 + ROWS_WORDS, PLACE_B = PLACE_P + 2 * SET_OCTET };
enum { PLACE_W1 = PLACE_B + 64 * 8 };
static_assert(PLACE_W1 + 64 * 32 <= (int)PLACE_DH, "w1 does not fit");
/* In the places of dh and wq: the gradient of pre so far, 24 octets of 128 rows. */
enum { POINTS_OCTET = FUSED_POINTS * 4, PLACE_OLD = PLACE_DH };
static_assert(PLACE_OLD + 24 * POINTS_OCTET <= (int)PLACE_W0, "the gradient of pre does not fit");

template <int MATH> constexpr float SCALE = MATH == DEV_TF32 ? (float)KEPT_SCALE : 1.0f;

template <int MATH> FN uint32_t pack(float lo, float hi) {
    return MATH == DEV_BF16 ? pack_bf16(lo, hi) : pack_half(lo, hi);
}
template <int MATH> FN float2 unpack(uint32_t w) {
    if constexpr (MATH == DEV_BF16)
        return make_float2(__uint_as_float(w << 16), __uint_as_float(w & 0xffff0000u));
    else
        return unpack_half(w);
}
/* Eight numbers, 16 bytes */
template <int MATH> FN float4 pack8(float4 a, float4 b) {
    return make_float4(__uint_as_float(pack<MATH>(a.x, a.y)), __uint_as_float(pack<MATH>(a.z, a.w)),
                       __uint_as_float(pack<MATH>(b.x, b.y)),
                       __uint_as_float(pack<MATH>(b.z, b.w)));
}

FN uint32_t half_to_bf16(uint32_t w) {
    const float2 v = unpack_half(w);
    return pack_bf16(v.x, v.y);
}

/* d = a b + c: 16 x 8 over 16 values of k */
template <int MATH>
FN void multiply16(float (&d)[4], const uint32_t *a, const uint32_t *b, const float *c) {
    if constexpr (MATH == DEV_BF16)
        first_bf16(d, a, b, c);
    else
        first_half(d, a, b, c);
}

/* A number that all lanes of a warp have: the compiler does not see it, and takes a branch by it
 * for one that takes the warp apart. */
FN int uniform(int x) {
    return __shfl_sync(~0u, x, 0);
}

/* Where a lane reads 16 rows and two octets: rows by l / 8 % 2, octets by l / 16. In words. */
FN int octet_piece() {
    const int lane = threadIdx.x % 32;
    return lane % 16 * 4 + lane / 16 * SET_OCTET;
}

/* A weight of so many columns lies in blocks of 32 rows by octets (halves.h): the 16 rows of a head
 * as right operand, of two tiles: rows by 8 (l / 16) + l % 8, octets by l / 8 % 2; octets follow
 * each other. In words. */
enum { WEIGHT_OCTET = 32 * 4 };
FN int weight_piece(int head, int columns) {
    const int lane = threadIdx.x % 32;
    return head / 2 * (columns / 8 * WEIGHT_OCTET) + head % 2 * 64 +
           (lane / 16 * 8 + lane % 8) * 4 + lane / 8 % 2 * WEIGHT_OCTET;
}

/* ---- copies ---------------------------------------------------------------------------------- */

enum { ARRIVAL_X2, ARRIVAL_W, ARRIVAL_Q, ARRIVAL_A0, ARRIVAL_OLD };

/* Every warp has an octet of a matrix of 64 columns, one side of it. */
struct Share {
    int octet, rows;
    bool some;
    MEMBER Share() {
        octet = threadIdx.x / 32 % 8, some = threadIdx.x >= HALF_THREADS;
        rows = some ? frame().m : frame().n;
    }
    MEMBER int at() const { return octet * SET_OCTET + (some ? SOME_ROW * 4 : 0); }
};

/* Who asks waits until the copy engine takes it, so x2, which is wanted first, is asked for by all
 * warps, the rest of what the first half reads by four that have little else to do: q, k, v and a1
 * by one of them each, a lane an octet of a side, and weights. q1 and x2 have octets of as many
 * rows as the side. */
FN void ask_x2() {
    const Share s;
    if (threadIdx.x == 0) expect_words(ARRIVAL_X2, (frame().n + frame().m) * 32);
    if (threadIdx.x % 32 == 0 && s.rows > 0)
        bulk_load(shared_at(work() + PLACE_X2 + s.at()),
                  fused_at((s.some ? SETG_SOME : SETG_ALL) + SIDE_X2) + s.octet * s.rows * 4,
                  s.rows * 16, arrival_at(ARRIVAL_X2));
}
FN void ask_weight(int slot, int place, int words) {
    bulk_load(shared_at(work() + place), fused_at(slot), words * 4, arrival_at(ARRIVAL_W));
}
FN void ask_first() {
    const int lane = threadIdx.x % 32, matrix = threadIdx.x / 32 % 4, octet = lane % 8;
    const bool some = lane >= 8;
    const int rows = some ? frame().m : frame().n;
    if (threadIdx.x % 128 == 0) {
        expect_words(ARRIVAL_W, 64 * (32 + 32 + 96));
        expect_words(ARRIVAL_Q, (frame().n + frame().m) * (96 + 32));
    }
    if (lane == 16 && matrix == 0) ask_weight(SETG_W1, PLACE_W1, 64 * 32);
    if (lane == 16 && matrix == 1) ask_weight(SETG_WQ, PLACE_WQ, 64 * 96);
    if (lane == 16 && matrix == 2) ask_weight(SETG_W0, PLACE_W0, 64 * 32);
    if (lane < 16 && rows > 0) {
        const float *from =
            fused_at((some ? SETG_SOME : SETG_ALL) + (matrix < 3 ? SIDE_Q1 : SIDE_A1)) +
            (matrix < 3 ? (matrix * 8 + octet) * rows * 4 : octet * SET_OCTET);
        const int to = matrix * ROWS_WORDS + octet * SET_OCTET + (some ? SOME_ROW * 4 : 0);
        bulk_load(shared_at(work() + to), from, rows * 16, arrival_at(ARRIVAL_Q));
    }
}

FN void ask_a0() {
    const Share s;
    if (threadIdx.x == 0) expect_words(ARRIVAL_A0, (frame().n + frame().m) * 32);
    if (threadIdx.x % 32 == 4 && s.rows > 0)
        bulk_load(shared_at(work() + PLACE_G + s.at()),
                  fused_at(s.some ? SETG_SOME + SIDE_A0 : SETG_ALL + SIDE_A0) + s.octet * SET_OCTET,
                  s.rows * 16, arrival_at(ARRIVAL_A0));
}

/* The gradient of pre, where it is kept as halves: an octet of all rows each of 24 lanes, two of
 * some warps. What it is so far comes; what it has become goes. */
FN int own_octet() {
    const int octet = threadIdx.x / 32 + threadIdx.x % 32 * WARPS;
    return octet < 24 ? octet : -1;
}
FN void ask_old() {
    const int octet = own_octet(), n = frame().n;
    if (!fused_at(SETG_GPREH) || !fused_adds(SETG_GPRE)) return;
    if (threadIdx.x == 0) expect_words(ARRIVAL_OLD, n * 96);
    if (octet >= 0)
        bulk_load(shared_at(work() + PLACE_OLD + octet * POINTS_OCTET),
                  fused_at(SETG_GPREH) + octet * POINTS_OCTET, n * 16, arrival_at(ARRIVAL_OLD));
}
FN void send_new() {
    const int octet = own_octet();
    if (octet >= 0)
        bulk_store(fused_at(SETG_GPREH) + octet * POINTS_OCTET,
                   shared_at(work() + PLACE_OLD + octet * POINTS_OCTET), frame().n * 16);
    bulk_commit();
}

/* Rows of G to memory: `panels` matrices of 64 columns. Behind a bulk_fence() of all and a barrier;
 * the place may be written to again behind sent_rows() and another. */
FN void send_rows(int kept, int place, int panels) {
    const int lane = threadIdx.x % 32;
    const Share s;
    if (lane >= panels || s.rows == 0) return;
    const int at = lane * ROWS_WORDS + s.at();
    bulk_store(fused_at(SETG_KEPT) + kept + at, shared_at(work() + place + at), s.rows * 16);
    bulk_commit();
}
FN void sent_rows() {
    if (threadIdx.x % 32 < 3) bulk_wait_read();
}

/* Zeros in the rows up to `rows` that neither side has: of q, k, v, a1 and x2. */
FN void zero_absent(int rows) {
    const int n = frame().n, m = frame().m;
    const int all = min(rows, (int)SOME_ROW) - n, both = all + max(rows - SOME_ROW - m, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < both * 40; i += THREADS) {
        const int k = i % both, row = k < all ? n + k : SOME_ROW + m + k - all;
        const int octet = i / both; /* those of x2 stand right behind */
        st4(work() + octet * SET_OCTET + row * 4, zero4());
    }
}
static_assert((int)PLACE_X2 == 32 * (int)SET_OCTET, "x2 behind q, k, v and a1");

/* Memory that will be read behind the first attention: from there to the second cache. */
FN void expect_first() {
    const Share s;
    if (threadIdx.x % 256 || s.rows == 0) return;
    const int side = s.some ? SETG_SOME : SETG_ALL;
    prefetch_bulk(fused_at(side + SIDE_L0), s.rows * 16);
    prefetch_bulk(fused_at(side + SIDE_H0), s.rows / 2 * 16);
    if (s.some) return;
    prefetch_bulk(fused_at(SETG_ALL + SIDE_A0), ROWS_WORDS * 4);
    prefetch_bulk(fused_at(SETG_PRE), s.rows * 192 * 4);
}

/* Weights come as halves: in bf16 they are made bfloat16 where they lie; `quads` of them a thread.
 */
template <int MATH, int QUADS> FN void take_weights(int place) {
    if constexpr (MATH == DEV_BF16) {
        uint4 *at = (uint4 *)(work() + place) + threadIdx.x, v[QUADS];
#pragma unroll
        for (int k = 0; k < QUADS; k++) v[k] = at[k * THREADS];
#pragma unroll
        for (int k = 0; k < QUADS; k++)
            at[k * THREADS] = make_uint4(half_to_bf16(v[k].x), half_to_bf16(v[k].y),
                                         half_to_bf16(v[k].z), half_to_bf16(v[k].w));
    }
}

FN float load_joint() {
    const int k = threadIdx.x, row = k - 192;
    return k < 192 ? global_word(fused_at(SETG_WY) + k, true)
                   : global_word(fused_at(SETG_Y) + row, k < JOINT && row < frame().n);
}

} // namespace set_grad_part

#endif
