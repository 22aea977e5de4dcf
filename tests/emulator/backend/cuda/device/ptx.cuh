/* device/ptx.cuh: the functions of src/backend/cuda/device/ptx.cuh for the emulator; see there. */
#ifndef MNP_CUDA_PTX_CUH
#define MNP_CUDA_PTX_CUH

#include <cuda_runtime.h>
#include <string.h>

#include "backend/cuda/device/target.h"
#include "races.h"

#define PTX static inline

/* ---- one thread ------------------------------------------------------------------------------ */

PTX float fast_exp2(float x) {
    return exp2f(x);
}
PTX float fast_inverse(float x) {
    return 1.0f / x;
}
PTX float fast_sine(float x) {
    return sinf(x);
}
PTX float fast_cosine(float x) {
    return cosf(x);
}
PTX int64_t nanoseconds() {
    return clock64();
}
PTX float relu_of(float x) {
    return x < 0.0f ? 0.0f : x;
}
/* to nearest, to even; a NaN stays one */
PTX uint32_t bf16_of(float x) {
    const uint32_t u = __float_as_uint(x);
    return isnan(x) ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
PTX uint32_t pack_bf16(float lo, float hi) {
    return bf16_of(hi) << 16 | bf16_of(lo);
}

PTX uint32_t half_of(float x) {
    const _Float16 h = (_Float16)(x > 65504.0f ? 65504.0f : x < -65504.0f ? -65504.0f : x);
    uint16_t u;
    memcpy(&u, &h, sizeof u);
    return u;
}
PTX float of_half(uint32_t u) {
    const uint16_t bits = (uint16_t)u;
    _Float16 h;
    memcpy(&h, &bits, sizeof h);
    return (float)h;
}
PTX uint32_t pack_fp16(float lo, float hi) {
    return half_of(hi) << 16 | half_of(lo);
}
PTX uint32_t pack_relu(float lo, float hi) {
    return pack_fp16(relu_of(lo), relu_of(hi));
}
PTX float2 unpack_fp16(uint32_t w) {
    return make_float2(of_half(w & 0xffffu), of_half(w >> 16));
}

/* ---- memory ---------------------------------------------------------------------------------- */

PTX uint32_t shared_at(const float *p) {
    return emulated_shared_at(p);
}
PTX void store_word(uint32_t at, uint32_t v) {
    memcpy(emulated_shared(at, sizeof v), &v, sizeof v);
}
PTX void store_pair(uint32_t at, uint32_t v, uint32_t w) {
    const uint32_t both[2] = {v, w};
    memcpy(emulated_shared(at, sizeof both), both, sizeof both);
}
PTX float2 load_pair(uint32_t at) {
    return *(const float2 *)emulated_shared(at, sizeof(float2));
}
PTX float4 load_quad(uint32_t at) {
    return *(const float4 *)emulated_shared(at, sizeof(float4));
}
PTX float4 global_quad(const float *from, bool go) {
    return go ? *(const float4 *)from : make_float4(0, 0, 0, 0);
}
PTX void global_quad(float *to, float4 v, bool go) {
    if (go) *(float4 *)to = v;
}
PTX float global_word(const float *from, bool go) {
    return go ? *from : 0.0f;
}
PTX float2 global_pair(const float *from, bool go) {
    return go ? *(const float2 *)from : make_float2(0, 0);
}
#if TARGET_PARTS
PTX void global_add(float *to, float v) {
    *to += v;
}
PTX void global_add(float *to, float2 v) {
    to[0] += v.x, to[1] += v.y;
}
PTX void global_add(float *to, float4 v) {
    to[0] += v.x, to[1] += v.y, to[2] += v.z, to[3] += v.w;
}
PTX void prefetch_bulk(const float *, int) {}
#endif
PTX void prefetch(const float *) {}
PTX void copy16(uint32_t to, const float *from, bool valid) {
    emulated_copy16(to, from, valid);
}
PTX void copy_commit() {
    emulated_copy_commit();
}
template <int N> PTX void copy_wait() {
    emulated_copy_wait(N);
}

/* ---- a warp ---------------------------------------------------------------------------------- */

PTX void load_matrices(uint32_t at, uint32_t w[4], emulated_place here = EMULATED_HERE) {
    emulated_rows x = {emulated_shared(at, 16), w};
    races_read(x.row, 16);
    emulated_together(emulated_load_matrices, ~0u, &x, here);
}
PTX void load_transposed(uint32_t at, uint32_t w[4], emulated_place here = EMULATED_HERE) {
    emulated_rows x = {emulated_shared(at, 16), w};
    races_read(x.row, 16);
    emulated_together(emulated_load_transposed, ~0u, &x, here);
}
#if TARGET_PARTS
PTX void store_transposed(uint32_t at, const uint32_t w[4], emulated_place here = EMULATED_HERE) {
    emulated_rows x = {emulated_shared(at, 16), (uint32_t *)w};
    races_write(x.row, 16);
    emulated_together(emulated_store_transposed, ~0u, &x, here);
}
PTX uint32_t transposed(uint32_t w, emulated_place here = EMULATED_HERE) {
    const int lane = (int)threadIdx.x % 32, from = lane % 4 * 8 + lane / 8,
              down = lane & 4 ? 16 : 0;
    const uint32_t a = __shfl_sync(~0u, w, from, 32, here),
                   b = __shfl_sync(~0u, w, from + 4, 32, here);
    return (a >> down & 0xffffu) | (b >> down & 0xffffu) << 16;
}
#endif
PTX void first_tf32(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
                    emulated_place here = EMULATED_HERE) {
    emulated_product x = {d, a, b, c};
    emulated_together(emulated_mma_tf32, ~0u, &x, here);
}
PTX void first_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
                    emulated_place here = EMULATED_HERE) {
    emulated_product x = {d, a, b, c};
    emulated_together(emulated_mma_bf16, ~0u, &x, here);
}
PTX void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2],
                  emulated_place here = EMULATED_HERE) {
    first_tf32(c, a, b, c, here);
}
PTX void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2],
                  emulated_place here = EMULATED_HERE) {
    first_bf16(c, a, b, c, here);
}
PTX void first_fp16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
                    emulated_place here = EMULATED_HERE) {
    emulated_product x = {d, a, b, c};
    emulated_together(emulated_mma_half, ~0u, &x, here);
}
PTX void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2],
                  emulated_place here = EMULATED_HERE) {
    first_fp16(c, a, b, c, here);
}

#if TARGET_PARTS
/* ---- a group --------------------------------------------------------------------------------- */

PTX uint64_t group_operand(uint32_t at, int pitch) {
    return (uint64_t)at | (uint64_t)pitch << 32;
}
PTX uint64_t group_further(uint64_t b, int bytes) {
    return b + (uint64_t)bytes;
}
/* `count` pieces of so many bytes, as far apart as the operand says */
PTX void group_reads(uint64_t b, int count, int bytes) {
    for (int k = 0; k < count; k++)
        emulated_group_reads((uint32_t)b + (uint32_t)k * (uint32_t)(b >> 32), bytes);
}
PTX void group_begin() {}
PTX uint32_t group_number(uint64_t b, int k, int n) {
    const uint32_t at = (uint32_t)b + (uint32_t)(k / 4) * (uint32_t)(b >> 32);
    return *(const uint32_t *)emulated_shared(at + (uint32_t)(16 * n + k % 4 * 4), 4);
}
template <int J>
PTX void group_mma(float (&c)[J][4], const uint32_t a[4], uint64_t b,
                   emulated_place here = EMULATED_HERE) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    group_reads(b, 2, 128 * J);
    for (int j = 0; j < J; j++) {
        const uint32_t w[2] = {group_number(b, t, 8 * j + g), group_number(b, t + 4, 8 * j + g)};
        mma_tf32(c[j], a, w, here);
    }
}
/* numbers k and k + 1 */
PTX uint32_t group_pair(uint64_t b, int k, int n) {
    const uint32_t at = (uint32_t)b + (uint32_t)(k / 8) * (uint32_t)(b >> 32);
    return *(const uint32_t *)emulated_shared(at + (uint32_t)(16 * n + k % 8 * 2), 4);
}
template <int J>
PTX void group_fp16(float (&c)[J][4], const uint32_t a[4], uint64_t b,
                    emulated_place here = EMULATED_HERE) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    group_reads(b, 2, 128 * J);
    for (int j = 0; j < J; j++) {
        const uint32_t w[2] = {group_pair(b, 2 * t, 8 * j + g),
                               group_pair(b, 2 * t + 8, 8 * j + g)};
        mma_fp16(c[j], a, w, here);
    }
}
PTX uint64_t group_rows(uint32_t at, int pitch) {
    return group_operand(at, pitch);
}
template <bool BF16, int J>
PTX void group_product(float (&c)[J][4], uint64_t a, uint64_t b,
                       emulated_place here = EMULATED_HERE) {
    const uint32_t pitch = (uint32_t)(a >> 32), own = threadIdx.x / 32 % 4 * 2 * pitch;
    group_reads(a + own, 2, 256);
    group_reads(b, J, 256);
    emulated_rows_product x = {c[0], (uint32_t)a + own, pitch, (uint32_t)b, (uint32_t)(b >> 32), J};
    emulated_together(BF16 ? emulated_rows_bf16 : emulated_rows_half, ~0u, &x, here);
}
PTX void group_commit() {}
PTX void group_wait() {
    emulated_group_wait();
}
template <int N> PTX void registers_more() {}
template <int N> PTX void registers_fewer() {}

/* ---- copies by themselves -------------------------------------------------------------------- */

PTX void arrival_make(uint32_t arrival) {
    *(int64_t *)emulated_shared(arrival, 8) = 0; /* bytes that are expected and not asked for */
}
PTX void arrival_renew(uint32_t arrival, emulated_place here = EMULATED_HERE) {
    emulated_arrival_renew(arrival, here);
    arrival_make(arrival);
}
PTX void arrival_expect(uint32_t arrival, int bytes) {
    *(int64_t *)emulated_shared(arrival, 8) += bytes;
}
PTX void arrival_wait(uint32_t arrival, int = 0, emulated_place here = EMULATED_HERE) {
    emulated_arrival_wait(arrival, here);
}
PTX void bulk_load(uint32_t to, const float *from, int bytes, uint32_t arrival,
                   emulated_place here = EMULATED_HERE) {
    emulated_bulk_load(to, from, bytes, arrival, here);
}
PTX void bulk_load_once(uint32_t to, const float *from, int bytes, uint32_t arrival,
                        emulated_place here = EMULATED_HERE) {
    emulated_bulk_load(to, from, bytes, arrival, here);
}
PTX void bulk_fence() {}
PTX void bulk_fence_global() {}
PTX void bulk_store(float *to, uint32_t from, int bytes, emulated_place here = EMULATED_HERE) {
    emulated_bulk_store(to, from, bytes, false, here);
}
PTX void bulk_add(float *to, uint32_t from, int bytes, emulated_place here = EMULATED_HERE) {
    emulated_bulk_store(to, from, bytes, true, here);
}
PTX void bulk_commit() {
    emulated_bulk_commit();
}
PTX void bulk_wait_read() {
    emulated_bulk_wait(true);
}
PTX void bulk_wait() {
    emulated_bulk_wait(false);
}

#endif

/* ---- a block --------------------------------------------------------------------------------- */

PTX void barrier(int id, int threads, emulated_place here = EMULATED_HERE) {
    emulated_barrier(id, threads, false, here);
}

/* ---- kernels that follow each other ---------------------------------------------------------- */

PTX void grid_wait() {}
PTX void grid_release() {}

#undef PTX

#endif
