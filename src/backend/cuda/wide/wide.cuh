/* wide.cuh: what the kernels of wide instructions share (wide.h): their instruction, where its
 * operands lie in each function, and how long those are. */
#ifndef MNP_CUDA_WIDE_WIDE_CUH
#define MNP_CUDA_WIDE_WIDE_CUH

#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/kernels/kernels.cuh"
#include "backend/cuda/wide/wide.h"

enum { WIDE_THREADS = 256, WIDE_WARPS = WIDE_THREADS / 32 };

/* n, k and m of an item. */
struct Lengths {
    int n, k, m;
    MEMBER int of(int ext, int fixed) const {
        return ext == DEV_EXT_N ? n : ext == DEV_EXT_M ? m : ext == DEV_EXT_K ? k : fixed;
    }
};
FN Lengths lengths_of(const dev_run *run, int64_t item) {
    if (run->drawn) {
        const int4 d = *((const int4 *)run->drawn + item);
        return {d.x, d.y, d.z};
    }
    const int n = run->n ? (int)run->n[item] : 0;
    return {n, run->k ? (int)run->k[item] : n, run->m ? (int)run->m[item] : 0};
}

/* An operand in all functions: p is where it lies in the first one of the stage (NULL: absent),
 * `stride` words further in the next one. Weights have stride 0. A weight's gradient lies in slot
 * 0, and `stride` further in the next slot. */
struct WideView {
    float *p;
    int64_t stride;
    int rows, cols, ld, ext, sampled;
    /* Of function b. */
    MEMBER float *at(int b) const { return p + b * stride; }
    /* Its rows in a function of these lengths, S samples. */
    MEMBER int all_rows(const Lengths &l, int S) const {
        const int r = l.of(ext, rows);
        return sampled ? S * r : r;
    }
};
FN WideView wide_view(const dev_run *run, const dev_operand &o) {
    WideView v = {nullptr, 0, o.rows, o.cols, o.ld, o.ext, o.sampled};
    if (!o.present) return v;
    if (o.store == DEV_STORE_PARAM)
        v.p = run->weights;
    else if (o.store == DEV_STORE_PGRAD)
        v.p = run->slots, v.stride = run->slot_words;
    else
        v.p = run->act, v.stride = run->act_words;
    v.p += o.offset;
    return v;
}

/* Is out[j] added to? A weight's gradient is fresh for the first wide instruction that writes it,
 * in all of its slots. */
FN bool wide_adds(const dev_instr &ins, int j) {
    return (ins.acc >> j & 1u) && !(ins.fresh >> j & 1u);
}

FN int wide_samples(const dev_run *run) {
    return run->samples > 0 ? (int)run->samples : 1;
}
FN wide_size wide_size_of(const dev_run *run, const dev_stage &stage) {
    return {stage.items, (int32_t)run->cap_n, (int32_t)run->cap_m, wide_samples(run),
            run->wide_chunks};
}

/* Which of the stage's instructions this block works for. */
FN int wide_which(const dev_stage &stage) {
    int j = 0;
#pragma unroll
    for (int k = 1; k < DEV_WIDE; k++)
        if (k < stage.count && (int)blockIdx.x >= stage.blocks[k]) j = k;
    return j;
}

/* For measurements (dev_run.clocks): a stage of wide instructions took the time until the next
 * stage begins, at two cycles a nanosecond. After the clocks of the instructions stand when the
 * stage before began, and its first instruction. */
FN void stamp_stage(const dev_run *run, const dev_stage &stage) {
    if (!run->clocks || blockIdx.x > 0 || threadIdx.x > 0) return;
    int64_t *last = run->clocks + run->n_code + 1;
    const int64_t now = nanoseconds();
    if (last[1] > 0) run->clocks[last[1] - 1] += 2 * (now - last[0]);
    last[0] = now, last[1] = stage.kind == STAGE_FUNCTIONS ? 0 : stage.first + 1;
}

/* That instruction, brought to shared memory by the first warp; all threads meet. It was there
 * before the step began, so nobody waits for the stage before. */
FN void wide_fetch(const dev_run *run, const dev_stage &stage, int which, dev_instr *to) {
    const float4 *from = (const float4 *)(run->code + stage.first + which);
    for (int k = threadIdx.x; k < (int)(sizeof(dev_instr) / 16); k += blockDim.x)
        ((float4 *)to)[k] = from[k];
    __syncthreads();
}

#endif
