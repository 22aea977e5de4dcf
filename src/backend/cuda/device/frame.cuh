/* frame.cuh: how device code sees the function that is running. One thread block runs one function.
 * Shared memory begins with the function's frame and the instructions that run now and next; the
 * rest is working memory for ops.
 *
 * An op is a function that all threads of the block call, or, if it takes a Team, that the threads
 * of the team call: small instructions that do not depend on each other run side by side
 * (program/schedule.h). It may assume that what earlier instructions wrote is visible; the
 * interpreter puts a barrier after each instruction, or after all of a team's neighbours. */
#ifndef MNP_CUDA_DEVICE_FRAME_CUH
#define MNP_CUDA_DEVICE_FRAME_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/target.h"
#include "backend/cuda/paper/fused.h"
#include "backend/cuda/program/device.h"

enum { THREADS = 512, WARPS = THREADS / 32 };
enum { FEW_ROWS = DEV_FEW_ROWS };
/* Instructions held: up to DEV_TOGETHER that run now, as many next, and some on their way. */
enum { HELD = 4 * DEV_TOGETHER };
enum { HEAD_BYTES = 10752, SMEM_BYTES = TARGET_SHARED, WORK_BYTES = SMEM_BYTES - HEAD_BYTES };
enum { WORK_WORDS = WORK_BYTES / 4 };
enum { ARRIVALS = 8 };

#define OP_FN  static __device__ __noinline__
#define FN     static __device__ __forceinline__
#define MEMBER __device__ __forceinline__

/* A value of the running function. */
struct View {
    float *p; /* NULL when absent */
    int rows, cols, ld;
    int sampled;
    MEMBER float *sample(int s) const { return sampled ? p + (int64_t)s * rows * ld : p; }
    MEMBER int all_rows(int S) const { return sampled ? S * rows : rows; }
    MEMBER double *d() const { return (double *)p; }
    MEMBER double *d(int s) const { return (double *)p + (sampled ? s : 0); }
};

struct Frame {
    dev_stage stage;
    const dev_run *run;
    const dev_instr *code;
    int n_code;
    float *base[DEV_STORES]; /* where the stores begin for this function */
    int32_t *scratch;
    int64_t item, items, function, sample0;
    uint64_t seed; /* of the step block */
    int64_t step;
    int n, k, m, S;
    int first;    /* the block's first function of this stage       */
    int foreseen; /* the step's number may be wrong                */
    int watched;  /* cycles are counted or a bad value is looked for */
    int at;       /* the instruction that runs */
    int64_t last;
    int flag;
};

/* An instruction and its operands as they are in the running function. */
struct __align__(16) Held {
    dev_instr ins; /* first: &slot.ins is &slot */
    View views[DEV_IN + DEV_OUT];
};

struct Head {
    Frame f;
    float *at[FUSED_OPERANDS];   /* operands of the fused instruction that runs; NULL when absent */
    uint64_t adds;               /* bit k: operand k is added to                                  */
    uint64_t arrivals[ARRIVALS]; /* of copies by rows (paper/rows.cuh) */
    __align__(16) Held held[HELD]; /* instructions are copied 16 bytes at a time */
};
static_assert(sizeof(Held) % 16 == 0, "slots keep their alignment");
static_assert(sizeof(Head) <= HEAD_BYTES, "the head does not fit");

FN Frame &frame() {
    return ((Head *)smem)->f;
}
FN float *work() {
    return (float *)(smem + HEAD_BYTES);
}

/* Threads that run one instruction: the whole block, or whole warps of it. Teams meet by
 * themselves, some more often than others: compute-sanitizer's racecheck counts barriers by warp
 * and then takes the next one of the block for two, so it reports hazards that are none
 * (docs/dev/gpu.md, "Races"). */
struct Team {
    int rank, size, id;
    MEMBER void sync() const {
        if (size == THREADS)
            __syncthreads();
        else
            barrier(id + 1, size);
    }
    /* Its share of the working memory. */
    MEMBER float *buf() const { return work() + id * (WORK_WORDS / DEV_TOGETHER / 4 * 4); }
};
FN Team whole_block() {
    return {(int)threadIdx.x, THREADS, 0};
}
/* The block in 1, 2 or 4 teams of the same size. */
FN Team team_of(int teams) {
    const int size = THREADS / teams, id = (int)threadIdx.x / size;
    return {(int)threadIdx.x - id * size, size, id};
}

FN int extent_rows(const Frame &f, int ext, int fixed) {
    return ext == DEV_EXT_N ? f.n : ext == DEV_EXT_M ? f.m : ext == DEV_EXT_K ? f.k : fixed;
}

/* Where an operand lies and how large it is in this function. */
FN View resolve(const Frame &f, const dev_operand &o) {
    View v;
    v.p = o.present ? f.base[o.store] + o.offset : nullptr;
    v.rows = extent_rows(f, o.ext, o.rows);
    v.cols = o.cols;
    v.ld = o.ld;
    v.sampled = o.sampled;
    return v;
}

/* The operands of the instructions from k on that may run together, once for all threads: one warp,
 * nine lanes of 16 to an instruction. */
FN void resolve_all(int k) {
    Head &h = *(Head *)smem;
    const int j = threadIdx.x % 16;
    if (j >= DEV_IN + DEV_OUT) return;
    for (int i = threadIdx.x % 32 / 16; i < DEV_TOGETHER; i += 2) {
        Held &held = h.held[(k + i) % HELD];
        if (held.ins.op >= OPCODE_COUNT) continue; /* Found has them (kernels/functions.cu) */
        held.views[j] = resolve(h.f, j < DEV_IN ? held.ins.in[j] : held.ins.out[j - DEV_IN]);
    }
}

/* An operand of the running instruction. Values never lie in shared memory. */
FN View view_at(const dev_instr &ins, int j) {
    __builtin_assume(__isShared(&ins));
    const View v = ((const Held *)&ins)->views[j];
    __builtin_assume(__isGlobal(v.p));
    return v;
}
FN View view_in(const dev_instr &ins, int j) {
    return view_at(ins, j);
}
FN View view_out(const dev_instr &ins, int j) {
    return view_at(ins, DEV_IN + j);
}

/* How its products are taken. */
FN int math_of(const dev_instr &ins) {
    if (TARGET_FP32 && !TARGET_16) return DEV_FP32;
    if (TARGET_16 && !TARGET_FP32) return ins.math == DEV_BF16 ? DEV_BF16 : DEV_TF32;
    return ins.math;
}

/* Is out[j] added to? */
FN bool adds(const Frame &f, const dev_instr &ins, int j) {
    return (ins.acc >> j & 1u) && !((ins.fresh >> j & 1u) && f.first);
}

/* Where an operand of a part lies. */
FN float *addr_at(uint32_t place) {
    const uint32_t words = place << FUSED_STORE_BITS >> FUSED_STORE_BITS;
    return place == FUSED_ABSENT ? nullptr : frame().base[place >> FUSED_OFFSET_BITS] + words;
}

/* Operands of the fused instruction that runs (paper/fused.h). Values never lie in shared memory.
 */
FN float *fused_at(int k) {
    float *p = ((Head *)smem)->at[k];
    __builtin_assume(!__isShared(p) && !__isLocal(p));
    return p;
}
FN bool fused_adds(int k) {
    return ((Head *)smem)->adds >> k & 1u;
}

FN void put(float *to, float v, bool add) {
    *to = add ? *to + v : v;
}
FN void put(double *to, double v, bool add) {
    *to = add ? *to + v : v;
}

/* A number that will be written or added to. What is there is read when this is made, before the
 * stores: no load goes past one. */
struct Target {
    float *to;
    bool there;
    float old;
    MEMBER Target(const View &v, int s, int64_t at, bool add) {
        to = v.sample(s) + at, there = v.p;
        old = there && add ? *to : 0.0f;
    }
    MEMBER void put(float v) const {
        if (there) *to = old + v;
    }
};

FN void zero_words(float *p, int64_t words, Team t) {
    for (int64_t i = t.rank; i < words; i += t.size) p[i] = 0.0f;
}

FN float4 ld4(const float *p) {
    return *(const float4 *)p;
}
FN void st4(float *p, float4 v) {
    *(float4 *)p = v;
}

FN float dot4(const float4 &a, const float4 &b) {
    return a.x * b.x + a.y * b.y + (a.z * b.z + a.w * b.w);
}

/* a / b for numbers below 2^20 */
FN int quotient(int a, int b) {
    return (int)(((float)a + 0.5f) * fast_inverse((float)b));
}

/* How a team goes over rows of `columns` numbers, or four times as many: a thread keeps its column
 * and goes down the rows. Threads that are left over have none: their row is beyond the last. */
struct Strips {
    int row, rows, at, c; /* its first row, how many there are at once, its first column; 4 at */
    MEMBER Strips(int columns, Team t) {
        const int width = min(columns, t.size);
        row = quotient(t.rank, width), rows = quotient(t.size, width);
        at = t.rank - row * width, c = 4 * at;
        if (row >= rows) row = INT32_MAX / 2;
    }
};

/* f(s, r, c, i) for every number of a value, padding too; i: where it lies. */
template <class F> FN void each_number(const View &v, int S, Team t, F f) {
    const Strips strip(v.ld, t);
#pragma unroll 1
    for (int s = 0; s < (v.sampled ? S : 1); s++)
#pragma unroll 1
        for (int c = strip.at; c < v.ld; c += t.size)
#pragma unroll 1
            for (int r = strip.row; r < v.rows; r += strip.rows)
                f(s, r, c, (s * v.rows + r) * v.ld + c);
}

/* Sum over the team in a fixed order, in its buffer. All threads get it. */
FN double team_sum(double v, Team t) {
    double *buf = (double *)t.buf();
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    t.sync();
    if (t.rank % 32 == 0) buf[t.rank / 32] = v;
    t.sync();
    double sum = 0;
    for (int w = 0; w < t.size / 32; w++) sum += buf[w];
    return sum;
}

#endif
