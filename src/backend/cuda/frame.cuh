/* frame.cuh: how device code sees a function that is running. One thread block runs one function;
 * its frame, the present instruction and the next three lie at the start of shared memory, the rest
 * of it is the ops' working room.
 *
 * Every op is a function that all threads of the block call. It may assume that what earlier
 * instructions wrote is visible; the interpreter puts a barrier behind each instruction. */
#ifndef MNP_CUDA_FRAME_CUH
#define MNP_CUDA_FRAME_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "backend/cuda/device.h"

enum { THREADS = 512, WARPS = THREADS / 32 };
enum { AHEAD = 4 }; /* instructions held: the present one, the next, two on their way */
enum { HEAD_BYTES = 3072, SMEM_BYTES = 227 * 1024, WORK_BYTES = SMEM_BYTES - HEAD_BYTES };
enum { WORK_WORDS = WORK_BYTES / 4 };

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
    const dev_run *run;
    float *act, *grads, *weights, *state;
    int32_t *scratch;
    int64_t item, items, function, sample0;
    int n, m, S;
    int first; /* the block's first function */
    int flag;
};

/* An instruction and its operands as they are in the running function. */
struct __align__(16) Slot {
    dev_instr ins; /* first: &slot.ins is &slot */
    View views[DEV_IN + DEV_OUT];
};

struct Head {
    Frame f;
    __align__(16) Slot slots[AHEAD]; /* instructions are copied 16 bytes at a time */
};
static_assert(sizeof(Slot) % 16 == 0, "slots keep their alignment");
static_assert(sizeof(Head) <= HEAD_BYTES, "the head does not fit");

extern __shared__ __align__(128) unsigned char smem[];

FN Frame &frame() {
    return ((Head *)smem)->f;
}
FN float *work() {
    return (float *)(smem + HEAD_BYTES);
}

/* Where an operand lies and how large it is in this function. */
FN View resolve(const Frame &f, const dev_operand &o) {
    View v;
    float *base = o.store == DEV_STORE_ACT     ? f.act
                  : o.store == DEV_STORE_PARAM ? f.weights
                  : o.store == DEV_STORE_PGRAD ? f.grads
                                               : f.state;
    v.p = o.present ? base + o.offset : nullptr;
    v.rows = o.ext == DEV_EXT_N ? f.n : o.ext == DEV_EXT_M ? f.m : o.rows;
    v.cols = o.cols;
    v.ld = o.ld;
    v.sampled = o.sampled;
    return v;
}

/* Threads 0 .. 8 resolve the operands of instruction k, once for all. */
FN void resolve_all(int k) {
    Head &h = *(Head *)smem;
    Slot &slot = h.slots[k % AHEAD];
    const int j = threadIdx.x;
    if (j < DEV_IN + DEV_OUT)
        slot.views[j] = resolve(h.f, j < DEV_IN ? slot.ins.in[j] : slot.ins.out[j - DEV_IN]);
}

/* An operand of the running instruction. Values never lie in shared memory. */
FN View view_at(const dev_instr &ins, int j) {
    __builtin_assume(__isShared(&ins));
    const View v = ((const Slot *)&ins)->views[j];
    __builtin_assume(!__isShared(v.p) && !__isLocal(v.p));
    return v;
}
FN View view_in(const dev_instr &ins, int j) {
    return view_at(ins, j);
}
FN View view_out(const dev_instr &ins, int j) {
    return view_at(ins, DEV_IN + j);
}

/* Is out[j] added to? */
FN bool adds(const Frame &f, const dev_instr &ins, int j) {
    return (ins.acc >> j & 1u) && !((ins.fresh >> j & 1u) && f.first);
}

FN void put(float *to, float v, bool add) {
    *to = add ? *to + v : v;
}
FN void put(double *to, double v, bool add) {
    *to = add ? *to + v : v;
}

FN void zero_words(float *p, int64_t words) {
    for (int64_t i = threadIdx.x; i < words; i += THREADS) p[i] = 0.0f;
}

FN float4 ld4(const float *p) {
    return *(const float4 *)p;
}
FN void st4(float *p, float4 v) {
    *(float4 *)p = v;
}

/* Sum over the block in a fixed order; `room` holds WARPS doubles. All threads get it. */
FN double block_sum(double v, double *room) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < WARPS; w++) sum += room[w];
    return sum;
}

#endif
