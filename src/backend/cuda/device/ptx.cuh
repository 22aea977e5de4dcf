/* ptx.cuh: what C++ has no word for: the block's shared memory, and machine instructions as small
 * functions; no other file has inline assembly. What begins with TARGET_PARTS is of compute
 * capability 9.0 (target.h). tests/emulator has a file of the same name with the
 * same functions, written for the CPU. Addresses in shared memory are in bytes (shared_at). */
#ifndef MNP_CUDA_DEVICE_PTX_CUH
#define MNP_CUDA_DEVICE_PTX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "backend/cuda/device/target.h"

#define PTX static __device__ __forceinline__

/* Shared memory of the block; frame.cuh divides it. */
extern __shared__ __align__(128) unsigned char smem[];

/* ---- one thread ------------------------------------------------------------------------------ */

PTX float fast_exp2(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
PTX float fast_inverse(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
/* Within 5e-7 between -pi and pi. */
PTX float fast_sine(float x) {
    float r;
    asm("sin.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
PTX float fast_cosine(float x) {
    float r;
    asm("cos.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
/* max(x, 0); a NaN stays one */
PTX float relu_of(float x) {
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(0.0f));
    return x;
}
PTX uint32_t pack_bf16(float lo, float hi) {
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

/* Two fp16 numbers, a word; a number too large becomes the largest, a NaN stays one. */
PTX uint32_t pack_fp16(float lo, float hi) {
    uint32_t r;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
/* The same of max(x, 0). */
PTX uint32_t pack_relu(float lo, float hi) {
    uint32_t r;
    asm("cvt.rn.relu.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
PTX float2 unpack_fp16(uint32_t w) {
    float2 v;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
        : "=f"(v.x), "=f"(v.y)
        : "r"(w));
    return v;
}

/* The device's clock: nanoseconds, the same for all multiprocessors. */
PTX int64_t nanoseconds() {
    int64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* An address in shared memory, in bytes. */
PTX uint32_t shared_at(const float *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* A word to shared memory. */
PTX void store_word(uint32_t at, uint32_t v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
/* Two words likewise. */
PTX void store_pair(uint32_t at, uint32_t v, uint32_t w) {
    asm volatile("st.shared.v2.u32 [%0], {%1,%2};" ::"r"(at), "r"(v), "r"(w) : "memory");
}
/* Two and four words of shared memory, read where the read stands in the program. */
PTX float2 load_pair(uint32_t at) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at) : "memory");
    return v;
}
PTX float4 load_quad(uint32_t at) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

/* Four numbers of global memory, zeros when !go; and back. Written so that they stay one
 * instruction of 16 bytes without a branch. */
PTX float4 global_quad(const float *from, bool go) {
    float4 v = make_float4(0, 0, 0, 0);
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; "
                 "@p ld.global.v4.f32 {%0,%1,%2,%3}, [%4]; }"
                 : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
                 : "l"(from), "r"((int)go)
                 : "memory");
    return v;
}
PTX void global_quad(float *to, float4 v, bool go) {
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; "
                 "@p st.global.v4.f32 [%4], {%0,%1,%2,%3}; }" ::"f"(v.x),
                 "f"(v.y), "f"(v.z), "f"(v.w), "l"(to), "r"((int)go)
                 : "memory");
}

/* Two and one likewise. */
PTX float global_word(const float *from, bool go) {
    float v = 0;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.f32 %0, [%1]; }"
                 : "+f"(v)
                 : "l"(from), "r"((int)go)
                 : "memory");
    return v;
}
PTX float2 global_pair(const float *from, bool go) {
    float2 v = make_float2(0, 0);
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p ld.global.v2.f32 {%0,%1}, [%2]; }"
                 : "+f"(v.x), "+f"(v.y)
                 : "l"(from), "r"((int)go)
                 : "memory");
    return v;
}

#if TARGET_PARTS
/* On top of what is there: memory does the sum, and nobody waits for it. Of two sums into one
 * place the first is done first if a barrier lies between them. */
PTX void global_add(float *to, float v) {
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(v) : "memory");
}
PTX void global_add(float *to, float2 v) {
    asm volatile("red.global.add.v2.f32 [%0], {%1,%2};" ::"l"(to), "f"(v.x), "f"(v.y) : "memory");
}
PTX void global_add(float *to, float4 v) {
    asm volatile("red.global.add.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(v.x), "f"(v.y),
                 "f"(v.z), "f"(v.w)
                 : "memory");
}

/* Some global memory to the second cache by the copy engine: a multiple of 16 bytes. */
PTX void prefetch_bulk(const float *p, int bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
}
#endif

/* A line of global memory to the second cache. */
PTX void prefetch(const float *p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

/* 16 bytes from global to shared memory, zeros when !valid; they are there for the thread that
 * copied after copy_wait<N>, which leaves the last N committed groups on their way. */
PTX void copy16(uint32_t to, const float *from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}
PTX void copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> PTX void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* ---- a warp ---------------------------------------------------------------------------------- */

/* Four 8 x 8 pieces of 16-bit numbers (or 8 x 4 of words); a lane names row l % 8 of piece l / 8
 * and gets word (l / 4, l % 4) of every piece, of the transposed pieces numbers 2 (l % 4) and the
 * next of column l / 4. */
PTX void load_matrices(uint32_t at, uint32_t w[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(at)
                 : "memory");
}
PTX void load_transposed(uint32_t at, uint32_t w[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(at)
                 : "memory");
}

#if TARGET_PARTS
/* Back: the transposed pieces are written, word (l / 4, l % 4) of every piece is the lane's. */
PTX void store_transposed(uint32_t at, const uint32_t w[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at),
                 "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
}

/* An 8 x 8 piece of 16-bit numbers, transposed: a lane has word (l / 4, l % 4). */
PTX uint32_t transposed(uint32_t w) {
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(w));
    return r;
}
#endif

/* c += a b, layouts in mma.cuh; d = a b + c: many products start from one c without its being
 * copied for each. */
#define MMA(name, shape)                                                                           \
    PTX void mma_##name(float c[4], const uint32_t a[4], const uint32_t b[2]) {                    \
        asm volatile("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "          \
                     "{%0,%1,%2,%3};"                                                              \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));          \
    }                                                                                              \
    PTX void first_##name(float d[4], const uint32_t a[4], const uint32_t b[2],                    \
                          const float c[4]) {                                                      \
        asm("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "                   \
            "{%10,%11,%12,%13};"                                                                   \
            : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                       \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]),         \
              "f"(c[1]), "f"(c[2]), "f"(c[3]));                                                    \
    }
MMA(tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA(bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA(fp16, "m16n8k16.row.col.f32.f16.f16.f32")
#undef MMA

#if TARGET_PARTS
/* ---- a group --------------------------------------------------------------------------------- */

/* Four warps that multiply together: c (64, 8 J) += a (64, 8) b (8, 8 J). A warp has 16 rows of a
 * and c, in the layout of mma.cuh; b is read from shared memory, where k lies by fours: number
 * (k, n) at k / 4 * pitch + 16 n + k % 4 * 4 bytes. The products of one group_begin() run by
 * themselves from group_commit() until group_wait(); a and c must not be touched meanwhile. What
 * threads or copies by threads wrote into b must be followed by their bulk_fence() and a barrier.
 */
PTX uint64_t group_operand(uint32_t at, int pitch) {
    return (uint64_t)(at >> 4) | (uint64_t)(pitch >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
}
/* The same operand, `bytes` further. */
PTX uint64_t group_further(uint64_t b, int bytes) {
    return b + (uint64_t)(bytes >> 4);
}
PTX void group_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
#define QUAD(i)   "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define QUADS(i)  QUAD(i), QUAD(i + 1), QUAD(i + 2), QUAD(i + 3)
#define NUMBERS16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define NUMBERS32 NUMBERS16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define NUMBERS64                                                                                  \
    NUMBERS32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                  \
              "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define NUMBERS80 NUMBERS64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define NUMBERS96 NUMBERS80 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define GROUP_MMA(shape, numbers, a_at, b_at, flags, ...)                                          \
    asm volatile("wgmma.mma_async.sync.aligned." shape " {" numbers "}, " a_at ", " b_at           \
                 ", 1, 1, 1" flags ";"                                                             \
                 : __VA_ARGS__                                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define A16 "{%16,%17,%18,%19}"
#define A32 "{%32,%33,%34,%35}"
PTX void group_mma(float (&c)[4][4], const uint32_t a[4], uint64_t b) {
    GROUP_MMA("m64n32k8.f32.tf32.tf32", NUMBERS16, A16, "%20", "", QUADS(0));
}
PTX void group_mma(float (&c)[8][4], const uint32_t a[4], uint64_t b) {
    GROUP_MMA("m64n64k8.f32.tf32.tf32", NUMBERS32, A32, "%36", "", QUADS(0), QUADS(4));
}
/* fp16: a (64, 16), b (16, 8 J), k by eights: number (k, n) at k / 8 * pitch + 16 n + k % 8 * 2
 * bytes. */
PTX void group_fp16(float (&c)[4][4], const uint32_t a[4], uint64_t b) {
    GROUP_MMA("m64n32k16.f32.f16.f16", NUMBERS16, A16, "%20", ", 0", QUADS(0));
}
PTX void group_fp16(float (&c)[8][4], const uint32_t a[4], uint64_t b) {
    GROUP_MMA("m64n64k16.f32.f16.f16", NUMBERS32, A32, "%36", ", 0", QUADS(0), QUADS(4));
}
#undef A32
#undef A16
#undef GROUP_MMA

/* c (64, 8 J) += a^T b, both 16-bit numbers in shared memory: 16 rows of a have 64 numbers, of b
 * 8 J. Rows lie by eight columns: number (r, c) at c / 8 * pitch + 16 r + c % 8 * 2 bytes. 16 rows
 * further is group_further(., 256). */
PTX uint64_t group_rows(uint32_t at, int pitch) {
    return (uint64_t)(at >> 4) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(pitch >> 4) << 32;
}
#define GROUP_PRODUCT(columns, type, numbers, a_at, b_at, ...)                                     \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" numbers \
                 "}, " a_at ", " b_at ", 1, 1, 1, 1, 1;"                                           \
                 : __VA_ARGS__                                                                     \
                 : "l"(a), "l"(b))
template <bool BF16> PTX void group_product(float (&c)[4][4], uint64_t a, uint64_t b) {
    static_assert(!BF16, "fp16 alone have 32 columns");
    GROUP_PRODUCT("32", "f16", NUMBERS16, "%16", "%17", QUADS(0));
}
template <bool BF16> PTX void group_product(float (&c)[8][4], uint64_t a, uint64_t b) {
    if constexpr (BF16)
        GROUP_PRODUCT("64", "bf16", NUMBERS32, "%32", "%33", QUADS(0), QUADS(4));
    else
        GROUP_PRODUCT("64", "f16", NUMBERS32, "%32", "%33", QUADS(0), QUADS(4));
}
template <bool BF16> PTX void group_product(float (&c)[16][4], uint64_t a, uint64_t b) {
    static_assert(!BF16, "fp16 alone have 128 columns");
    GROUP_PRODUCT("128", "f16", NUMBERS64, "%64", "%65", QUADS(0), QUADS(4), QUADS(8), QUADS(12));
}
template <bool BF16> PTX void group_product(float (&c)[20][4], uint64_t a, uint64_t b) {
    static_assert(!BF16, "fp16 alone have 160 columns");
    GROUP_PRODUCT("160", "f16", NUMBERS80, "%80", "%81", QUADS(0), QUADS(4), QUADS(8), QUADS(12),
                  QUADS(16));
}
template <bool BF16> PTX void group_product(float (&c)[24][4], uint64_t a, uint64_t b) {
    if constexpr (BF16)
        GROUP_PRODUCT("192", "bf16", NUMBERS96, "%96", "%97", QUADS(0), QUADS(4), QUADS(8),
                      QUADS(12), QUADS(16), QUADS(20));
    else
        GROUP_PRODUCT("192", "f16", NUMBERS96, "%96", "%97", QUADS(0), QUADS(4), QUADS(8),
                      QUADS(12), QUADS(16), QUADS(20));
}
#undef GROUP_PRODUCT
#undef NUMBERS96
#undef NUMBERS80
#undef NUMBERS64
#undef NUMBERS32
#undef NUMBERS16
#undef QUADS
#undef QUAD
PTX void group_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
PTX void group_wait() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
/* How many registers a thread of this group has from here on: those that one group gives back,
 * another one of the block may take. Multiples of 8; before and after it all have as many as the
 * kernel was compiled for. */
template <int N> PTX void registers_more() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> PTX void registers_fewer() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/* ---- copies by themselves -------------------------------------------------------------------- */

/* Whole rows that the copy engine moves; a thread only asks for them. Addresses and sizes are
 * multiples of 16 bytes.
 *
 * Into shared memory: an arrival (8 bytes of shared memory) is told how many bytes will come, and
 * whoever waits for it sees them. It serves once: it is made, a barrier of the block follows, then
 * copies are asked for, and at least one more barrier lies between that and the wait. What threads
 * wrote into the place before must be followed by their bulk_fence() and a barrier. */
PTX void arrival_make(uint32_t arrival) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrival) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/* The same of one that was made before and that nobody waits for any more. */
PTX void arrival_renew(uint32_t arrival) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(arrival) : "memory");
    arrival_make(arrival);
}
PTX void arrival_expect(uint32_t arrival, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrival), "r"(bytes)
                 : "memory");
}
/* An arrival that serves again, for which at least one barrier lies between its last wait and the
 * next copies, is waited for with turns 0, 1, 0, ... */
PTX void arrival_wait(uint32_t arrival, int turn = 0) {
    asm volatile(
        "{ .reg .pred p; AGAIN_%=: "
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra AGAIN_%=; }" ::"r"(arrival),
        "r"(turn)
        : "memory");
}
PTX void bulk_load(uint32_t to, const float *from, int bytes, uint32_t arrival) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(arrival)
                 : "memory");
}

/* The same of what is not read again: it is the first to leave the L2. */
PTX void bulk_load_once(uint32_t to, const float *from, int bytes, uint32_t arrival) {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(arrival), "l"(policy)
                 : "memory");
}

/* What threads of other blocks wrote to global memory, and this one knows to be there, is there for
 * its copies too. */
PTX void bulk_fence_global() {
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/* Out of shared memory. What threads wrote there must be followed by their bulk_fence() and a
 * barrier; the place may be written to again when the threads that asked have waited. */
PTX void bulk_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
PTX void bulk_store(float *to, uint32_t from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}
/* The same on top of what is there, word by word. Of two sums into one place the first is done
 * first if the thread that asked for it has waited (bulk_wait) before the second is asked for. */
PTX void bulk_add(float *to, uint32_t from, int bytes) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
        "r"(from), "r"(bytes)
        : "memory");
}
PTX void bulk_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Until the copies that this thread has asked for have read; until they are done. */
PTX void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
PTX void bulk_wait() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#endif

/* ---- a block --------------------------------------------------------------------------------- */

/* A barrier of some of a block's warps; 0 is the one of __syncthreads. */
PTX void barrier(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* ---- kernels that follow each other ---------------------------------------------------------- */

/* A kernel that is launched early (launch_as) starts when all blocks of the one before it have
 * called grid_release() or are done; what that one wrote is there after grid_wait(). */
#if TARGET_PARTS
PTX void grid_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
PTX void grid_release() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#else /* no kernel is launched early */
PTX void grid_wait() {}
PTX void grid_release() {}
#endif

#undef PTX

#endif
