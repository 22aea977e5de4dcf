/* set_grad16.cuh: the set encoder's reverse pass on numbers of 16 bits, in tf32 and bf16: types,
 * rooms in shared memory, copies to them. In tf32 they are halves, which have the digits that the
 * unit reads of a float, and gradients are multiplied by KEPT_SCALE from the pooling on (SCALE); in
 * bf16 bfloat16. Sums are floats.
 *
 * What the forward pass kept comes as it lies in memory. Weight gradients of wq, w1 and w0 are not
 * formed here: their G, rows of 16 bits, are left in SETG_KEPT (fused.h).
 *
 * Rooms are those of set_grad.cuh. A row has 64 words; of numbers of 16 bits either the first 32,
 * or (by heads) eight words of each head's sixteen, the other eight belong to another matrix:
 *
 *   phase             room 0           room 1           room 2            room 3
 *   pooling, w1       x2, P, B         (k and v)        (q coming)        w1 | dh
 *   attention         dq, floats       k, v by heads    q, g by heads     (wq coming, floats)
 *                                      then dk, floats  then dv, floats
 *   wq and w0         dq | dh          dk               dv | w0           wq, then a0 | wy, y
 *
 * The rest: vectors and sums of the pooling, sums of db, then lse and delta. Within a head's eight
 * rows the unit's rows or columns are eight_row(), which lets 16 lanes touch every bank once when
 * they read or write pairs of floats. */
#ifndef MNP_CUDA_SET_GRAD16_CUH
#define MNP_CUDA_SET_GRAD16_CUH

#include "backend/cuda/rows.cuh"
#include "backend/cuda/set_grad_pool.cuh"

namespace set_grad_part {

enum { AT_DQ, AT_KV, AT_QG, AT_W };
enum { HALF_ROOM = 32 };                     /* words of a row of 64 numbers */
enum { AT_P = HALF_ROOM, AT_PB = AT_P + 8 }; /* behind x2: P (192, 16), B (64, 16) */
enum { WQ_PITCH = 196 };
static_assert(64 * WQ_PITCH <= ROOM_WORDS, "wq does not fit");

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

/* Four pieces of 8 x 8 numbers of a room, as left operand: rows by l % 16, columns by l / 16; as
 * right one, of two tiles: rows by 8 (l / 16) + l % 8, columns by l / 8 % 2. In words. */
FN int left_piece(int pitch) {
    const int lane = threadIdx.x % 32;
    return lane % 16 * pitch + lane / 16 * 4;
}
FN int right_piece(int pitch) {
    const int lane = threadIdx.x % 32;
    return (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 4;
}

/* See above. */
FN int eight_row(int i) {
    return i % 4 * 2 + i / 4;
}
FN int eight_place(int row) {
    return row % 2 * 4 + row / 2;
}

/* Rows [0, rows) of 64 numbers, `ld` words apart, to a room, by heads or one behind the other. */
FN void copy_rows16(float *to, Saved from, int ld, int rows, bool heads) {
    const int piece = threadIdx.x % 8 * 4;
    to += heads ? piece + (piece & ~7) : piece;
#pragma unroll 1
    for (int r = threadIdx.x / 8; r < rows; r += THREADS / 8) {
        const SetRow row = set_row(r);
        const float *p = (row.some ? from.some : from.all) + row.of_side * ld + piece;
        copy16(to + r * SET_PITCH, row.exists ? p : from.all, row.exists);
    }
}

/* The same as a call, which waits for loads that are on their way. */
OP_FN void fetch16(float *to, Saved from, int ld, int rows, bool heads) {
    copy_rows16(to, from, ld, rows, heads);
}

/* Matrices by octets (fused.h): a thread has eight numbers of a row, a warp 32 rows of an octet:
 * this thread's octet, its row of 64, where they lie in memory, in words. */
FN int own_octet() {
    return threadIdx.x / 32 % 8;
}
FN int own_row() {
    return threadIdx.x / 256 * 32 + threadIdx.x % 32;
}
FN int octet_at(int octet, int row) {
    return octet * SET_OCTET + row * 4;
}

/* A matrix of 64 columns by octets to a room, its rows by heads or one behind the other. */
FN void copy_octets16(float *to, Saved from, int rows, bool heads) {
    const int piece = own_octet() * 4;
    to += heads ? piece + (piece & ~7) : piece;
#pragma unroll 1
    for (int r = own_row(); r < rows; r += THREADS / 8) {
        const SetRow row = set_row(r);
        const float *p = (row.some ? from.some : from.all) + octet_at(own_octet(), row.of_side);
        copy16(to + r * SET_PITCH, row.exists ? p : from.all, row.exists);
    }
}

/* Memory that will be read, rows of `words` words: from there to the second cache. */
FN void expect_rows(int slot, int words) {
    const Saved s = saved(slot);
    bring_closer(s.all, frame().n * words);
    bring_closer(s.some, frame().m * words);
}

/* wq as it is, to room 3, by the copy engine; four lanes of a warp ask for a row each. */
enum { ARRIVAL_WQ };
FN void ask_wq() {
    const int row = threadIdx.x / 32 * 4 + threadIdx.x % 32;
    if (threadIdx.x == 0) expect_words(ARRIVAL_WQ, 64 * 192);
    if (threadIdx.x % 32 < 4)
        bulk_load(shared_at(room(AT_W) + row * WQ_PITCH), fused_at(SETG_WQ) + row * 192, 192 * 4,
                  arrival_at(ARRIVAL_WQ));
}

/* What makes j of pre, wy (192) and y (128), from the first layers of all on in room 3, in pieces
 * of 32 numbers, a row each: number k; and from memory. */
enum { JOINT = 192 + FUSED_POINTS, JOINT_ROW = 48 };
FN float *joint(int k) {
    return room(AT_W) + (JOINT_ROW + k / 32) * SET_PITCH + HALF_ROOM + k % 32;
}
FN float load_joint() {
    const int k = threadIdx.x, row = k - 192;
    return k < 192 ? global_word(fused_at(SETG_WY) + k, true)
                   : global_word(fused_at(SETG_Y) + row, row < frame().n);
}

/* Weights (64, 64): a thread has eight columns of a row. */
FN Eight load_w64(int slot) {
    return eight_at(fused_at(slot) + threadIdx.x * 8, true);
}
template <int MATH> FN void put_w64(float *to, const Eight &w) {
    st4(to + threadIdx.x / 8 * SET_PITCH + threadIdx.x % 8 * 4, pack8<MATH>(w.a, w.b));
}

} // namespace set_grad_part

#endif
