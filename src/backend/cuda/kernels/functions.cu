/* functions.cu: a stage of functions (program/stages.h), most often the whole function part of a
 * plan, as one kernel. A block takes one function after the other and interprets the instruction
 * list. Activations live in an arena in global memory: the block's, or where there are several
 * stages the function's. Small instructions that do not depend on each other run side by side, a
 * team of threads each. The next instructions are fetched meanwhile. */
#include "backend/cuda/kernels/kernels.cuh"
#include "backend/cuda/wide/wide.cuh"
#include "base/rng_normal.h"

TARGET_BEGIN
#include "backend/cuda/cuda_ops.def"
#if TARGET_PARTS
#include "backend/cuda/paper/fused.cuh"
#endif

static_assert(sizeof(dev_instr) % 16 == 0, "instructions are copied 16 bytes at a time");

/* The warp that fetches instructions and finds their operands: one of the last team, which is idle
 * most often. */
FN bool keeper() {
    return threadIdx.x >= THREADS - 32;
}

/* Instructions [from, to), as one group of copies. */
FN void fetch(int from, int to) {
    const Frame &f = frame();
    const int pieces = sizeof(dev_instr) / 16, lane = threadIdx.x % 32;
#pragma unroll 1
    for (int k = from; k < min(to, f.n_code); k++)
        if (lane < pieces)
            copy16((float *)&((Head *)smem)->held[k % HELD].ins + lane * 4,
                   (const float *)(f.code + k) + lane * 4, true);
    copy_commit();
}
static_assert(sizeof(dev_instr) / 16 <= 32, "a warp copies an instruction");

FN const dev_instr &held(int k) {
    return ((Head *)smem)->held[(unsigned)k % HELD].ins;
}

/* The rows of cuda_ops.def as cases: those of teams, and those that take the whole block. */
#define CUDA_OP(who, name, call) CASE_##who(OPCODE_##name, call)
#define CASE(op, call)                                                                             \
    case op:                                                                                       \
        call;                                                                                      \
        break;

static __device__ __noinline__ void execute_small(const dev_instr &ins, Team t) {
#define CASE_TEAM(op, call) CASE(op, call)
#define CASE_BLOCK(op, call)
    switch (ins.op) {
#include "backend/cuda/cuda_ops.def"
    }
#undef CASE_TEAM
#undef CASE_BLOCK
}

/* With all threads of the block, whichever op it is: one table of jumps. */
static __device__ __noinline__ void execute_large(const dev_instr &ins) {
    const Team t = whole_block();
#define CASE_TEAM(op, call)  CASE(op, call)
#define CASE_BLOCK(op, call) CASE(op, call)
    switch (ins.op) {
#include "backend/cuda/cuda_ops.def"
    }
}
#undef CUDA_OP

/* `first` and those after it, a team each. */
OP_FN void execute_together(const dev_instr &first, int count) {
    const Team t = team_of(DEV_TOGETHER);
    const int k = (int)((const Held *)&first - ((Head *)smem)->held);
    if (t.id >= count) return;
    const dev_instr &ins = held(k + t.id);
    if (ins.op == OPCODE_linear || ins.op == OPCODE_linear_grad)
        team_linear(ins, t); /* most of them: without a table, which comes from far away */
    else
        execute_small(ins, t);
}

/* ---- parts ----------------------------------------------------------------------------------- */

#if TARGET_PARTS
FN void run_sets(const dev_instr &ins, bool forward) {
    if (ins.math == DEV_FP32)
        forward ? set_part::run() : set_grad_part::run();
    else if (ins.math == DEV_TF32)
        forward ? run_set<DEV_TF32>() : Reverse<DEV_TF32>::sets(ins.i[0]);
    else
        forward ? run_set<DEV_BF16>() : Reverse<DEV_BF16>::sets(ins.i[0]);
}

/* A part of the model as one instruction. By comparisons: a table of jumps lies in constant memory,
 * and comes from far away when a part has run in between. */
FN void run_fused(const dev_instr &ins) {
    const int kind = ins.op - OPCODE_COUNT;
    const bool is16 = ins.math != DEV_FP32;
    if (kind < FUSED_SET) {
        if (kind == FUSED_FLOW)
            is16 ? Forward<DEV_TF32>::spline(ins) : flow_part::run(ins);
        else
            is16 ? Reverse<DEV_TF32>::flow_grad(ins) : flow_grad_part::run(ins);
    } else if (kind < FUSED_LATENT) {
        run_sets(ins, kind == FUSED_SET);
    } else if (kind < FUSED_FIRST) {
        if (kind == FUSED_LATENT)
            is16 ? Forward<DEV_TF32>::latent(ins) : latent_part::run(ins);
        else
            is16 ? Reverse<DEV_TF32>::of_latent(ins) : latent_grad_part::run(ins);
    } else if (kind == FUSED_FIRST) {
        first_part::run(ins);
    } else if (kind == FUSED_FIRST_GRAD) {
        first_grad_part::run(ins);
    } else {
        end_part::run(ins);
    }
}
static_assert((int)FUSED_FLOW == 0 && (int)FUSED_FLOW_GRAD == 1 && (int)FUSED_SET == 2 &&
                  (int)FUSED_LATENT == 4 && (int)FUSED_FIRST == 6 && (int)FUSED_COUNT == 9,
              "parts in pairs");
#else
FN void make_arrivals() {}
FN void run_fused(const dev_instr &) {}
#endif

/* ---- one instruction ------------------------------------------------------------------------- */

/* Most instructions are one of a few; the rest goes through the switches. */
FN void execute(const dev_instr &ins) {
    const int op = ins.op, count = ins.together;
    if (op >= OPCODE_COUNT)
        run_fused(ins);
    else if (count > 1)
        execute_together(ins, count);
    else if (op == OPCODE_linear_grad)
        op_linear_grad(ins);
    else if (op == OPCODE_linear)
        op_linear(ins);
    else if (op == OPCODE_attention)
        op_attention(ins);
    else if (op == OPCODE_attention_grad)
        op_attention_grad(ins);
    else
        execute_large(ins);
}

/* Names the first instruction with an output that is not finite. */
OP_FN void diagnose(const dev_instr &ins, int k) {
    Frame &f = frame();
    if (threadIdx.x == 0) f.flag = -1;
    __syncthreads();
    for (int j = 0; j < DEV_OUT; j++) {
        if (!ins.out[j].present || ins.out[j].store != DEV_STORE_ACT) continue;
        View v = resolve(f, ins.out[j]);
        for (int i = threadIdx.x; i < v.all_rows(f.S) * v.ld; i += THREADS)
            if (i % v.ld < v.cols &&
                !(ins.out[j].is_double ? isfinite(v.d()[i]) : isfinite(v.p[i])))
                f.flag = j;
    }
    __syncthreads();
    if (threadIdx.x == 0 && f.flag >= 0 && f.run->culprit[0] < 0)
        f.run->culprit[0] = k, f.run->culprit[1] = f.flag;
    __syncthreads();
}

/* foresee: the step's number is not known yet, but what it will be if all goes well. */
FN void begin(const dev_run *run, int64_t item, int first, bool foresee) {
    Frame &f = frame();
    const dev_stage &stage = f.stage;
    const int64_t chunks = run->chunks > 1 ? run->chunks : 1;
    f.run = run;
    f.code = run->code + stage.first, f.n_code = stage.count;
    const int64_t arena = stage.staged ? item - stage.lo : (int64_t)blockIdx.x;
    f.base[DEV_STORE_ACT] = run->act + arena * run->act_words;
    f.base[DEV_STORE_PGRAD] = run->slots + (int64_t)blockIdx.x * run->slot_words;
    f.base[DEV_STORE_PARAM] = run->weights;
    f.base[DEV_STORE_FP16] = (float *)run->fp16;
    f.base[DEV_STORE_SAVED] = run->saved + (item - run->item_lo) * run->saved_words;
    f.scratch = run->scratch + (int64_t)blockIdx.x * run->scratch_words;
    f.item = item, f.items = run->items;
    f.seed = run->step->seed;
    /* the L1 may have what the update has changed since */
    f.step = foresee ? __ldcg(&run->adam->next_step) : __ldcg(&run->step->step);
    f.foreseen = foresee;
    f.function = run->first_function + item / chunks;
    f.S = run->samples > 0 ? (int)run->samples : 1;
    f.sample0 = item % chunks * run->samples;
    f.n = run->n ? (int)run->n[item] : 0;
    f.k = run->k ? (int)run->k[item] : f.n;
    f.m = run->m ? (int)run->m[item] : 0;
    if (!stage.begins && run->drawn) {
        const int4 d = __ldcg((const int4 *)run->drawn + item);
        f.n = d.x, f.k = d.y, f.m = d.z;
    }
    f.first = first;
    f.at = 0;
    f.watched = run->diagnose || (run->clocks && blockIdx.x == 0);
}

/* For measurements and for the search of a bad value: after instructions [k, next). */
OP_FN void watch(int k, int next) {
    Frame &f = frame();
    for (int i = k; f.run->diagnose && i < next; i++) diagnose(held(i), i);
    if (!f.run->clocks || blockIdx.x || threadIdx.x) return;
    const int64_t now = clock64();
    if (next > k) f.run->clocks[f.code - f.run->code + k] += now - f.last;
    f.last = now;
}

/* How many of a function's saved rows there are. */
FN void save_lengths(const Frame &f) {
    int32_t *lengths = (int32_t *)f.base[DEV_STORE_SAVED];
    lengths[DEV_SAVED_N] = f.n, lengths[DEV_SAVED_M] = f.m;
}

/* By one thread, before an instruction that passes a milestone: what the block has completed may be
 * summed, unless it has more to do. */
OP_FN void release_gradients(const dev_instr &ins) {
    const Frame &f = frame();
    if (f.run->saved_words > 0) save_lengths(f);
    if (f.item + gridDim.x < f.run->item_hi) return;
    __threadfence();
    atomicAdd(&f.run->adam->passed[ins.milestone - 1], 1);
    if (ins.lets) grid_release();
}

/* ---- one instruction after the other --------------------------------------------------------- */

/* What the kernel needs from one instruction to the next lies in the frame, and what is to be done
 * before and after an instruction are calls. Kept in registers it would go to local memory in
 * every call, addresses of shared memory too, and that is far away when shared memory takes all of
 * the L1.
 */

FN uint64_t adds_of(const Frame &f, const dev_fused &part) {
    return part.acc & ~(f.first ? part.fresh : 0);
}

/* Where the operands of a part lie: two a lane of one warp. */
struct Found {
    float *at[FUSED_OPERANDS / 32];
    uint64_t adds;
    MEMBER void find(const dev_fused &part) {
#pragma unroll
        for (int j = 0; j < FUSED_OPERANDS / 32; j++)
            at[j] = addr_at(part.addr[threadIdx.x % 32 + j * 32]);
        adds = adds_of(frame(), part);
    }
    MEMBER void put() const {
        Head &h = *(Head *)smem;
#pragma unroll
        for (int j = 0; j < FUSED_OPERANDS / 32; j++) h.at[threadIdx.x % 32 + j * 32] = at[j];
        if (threadIdx.x % 32 == 0) h.adds = adds;
    }
};

/* After it the first instructions are there, their operands found. */
OP_FN void begin_function(const dev_run *run, int64_t item, bool first, bool foresee) {
    Frame &f = frame();
    __syncthreads(); /* the function before has ended for all threads */
    if (threadIdx.x == 0) begin(run, item, first, foresee);
    __syncthreads();
    if (keeper()) fetch(0, 3 * DEV_TOGETHER);
    copy_wait<0>();
    __syncthreads();
    if (keeper()) resolve_all(0);
    __syncthreads();
    if (f.watched) watch(0, 0);
}

/* A draw needs nothing of the update but the step's number, so it goes on beside it, for the number
 * that is to be expected. Here the update is awaited; whoever expected wrongly (the step failed, or
 * is the first of a call) begins again. */
OP_FN void settle() {
    Frame &f = frame();
    grid_wait();
    const bool right = f.step == __ldcg(&f.run->step->step);
    __syncthreads(); /* all threads know */
    if (!right)
        begin_function(f.run, f.item, f.first, false);
    else if (threadIdx.x == 0)
        f.foreseen = 0;
    __syncthreads();
    if (f.watched) watch(0, 0); /* the wait is no instruction's */
}

/* The first instruction; NULL: there is none. */
OP_FN const dev_instr *first_instruction() {
    const Frame &f = frame();
    if (f.n_code == 0) return nullptr;
    const dev_instr &ins = held(0);
    if (keeper()) {
        Found found;
        if (ins.op >= OPCODE_COUNT) found.find(ins.fused), found.put();
        fetch(3 * DEV_TOGETHER, ins.together + 3 * DEV_TOGETHER);
    }
    __syncthreads();
    if (ins.milestone && threadIdx.x == THREADS - 1) release_gradients(ins);
    return &ins;
}

/* What is rare after an instruction: ops that are no parts, a step that may have another number.
 */
OP_FN void resolve_ops(int k) {
    resolve_all(k);
}
OP_FN const dev_instr *settled_instruction() {
    const Frame &f = frame();
    settle();
    if (f.at == 0) return first_instruction(); /* it begins again */
    return f.at < f.n_code ? &held(f.at) : nullptr;
}

/* The instruction that runs now; NULL: there is none. What runs next is there, what runs after that
 * is asked for. The keeper knows the operands before the one that ran has ended for all, and puts
 * them down after it; those of ops depend on lengths, which a draw sets. Nobody waits for the
 * thread that counts. One function from the end of an instruction to the next one: this code has
 * left the caches when a part has run, and every jump to another place waits for it to come back.
 */
OP_FN const dev_instr *next_instruction() {
    Frame &f = frame();
    const int k = f.at, next = k + held(k).together;
    const dev_instr &ins = held(next);
    const bool more = next < f.n_code, part = more && ins.op >= OPCODE_COUNT;
    const bool watched = f.watched, foreseen = f.foreseen;
    Found found;
    if (keeper()) {
        if (part) found.find(ins.fused);
        if (more && !part) resolve_ops(next);
        copy_wait<1>();
    }
    __syncthreads();
    if (watched) watch(k, next);
    if (keeper()) {
        if (part) found.put();
        if (threadIdx.x == THREADS - 1) f.at = next;
        if (more) fetch(next + 3 * DEV_TOGETHER, next + ins.together + 3 * DEV_TOGETHER);
    }
    __syncthreads();
    if (more && ins.milestone && threadIdx.x == THREADS - 1) release_gradients(ins);
    if (foreseen) return settled_instruction();
    return more ? &ins : nullptr;
}

/* At the end of a function, for what comes after it: what a draw found, to the stages that follow;
 * lengths of saved rows, where no milestone has done it. */
OP_FN void leave_lengths() {
    const Frame &f = frame();
    if (threadIdx.x != 0) return;
    if (f.stage.staged && f.stage.begins && f.run->drawn)
        ((int4 *)f.run->drawn)[f.item] = make_int4(f.n, f.k, f.m, 0);
    if (f.stage.ends && f.run->saves_late) save_lengths(f);
}

__global__ void __launch_bounds__(THREADS, 1)
    functions_kernel(const dev_run *run, const dev_stage stage) {
    const int64_t first = stage.lo + blockIdx.x;
    const bool draws = stage.begins && run->n_code > 0 && run->code->op == OPCODE_draw;
    if (threadIdx.x == 0) frame().stage = stage;
    make_arrivals();
    if (!stage.ends) grid_release();
    if (!draws) grid_wait();
    if (stage.staged && run->clocks && blockIdx.x == 0 && threadIdx.x == 0)
        stamp_stage(run->clocks + run->n_code + 1, run->clocks, 0);
    for (int64_t item = first; item < stage.lo + stage.items; item += gridDim.x) {
        begin_function(run, item, item == first, draws && item == first);
        for (const dev_instr *ins = first_instruction(); ins; ins = next_instruction())
            execute(*ins);
        if (stage.staged || run->saves_late) leave_lengths();
    }
    if (stage.ends && run->n_grad_spans > 0 && !run->diagnose)
        count_block(&run->adam->passed[DEV_ENDED]);
}

cudaError_t functions_prepare(void) {
    return cudaFuncSetAttribute(functions_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                SMEM_BYTES);
}

void functions_launch(const dev_run *run, const dev_stage *stage, bool early, cudaStream_t stream) {
    launch_as(launch_of(stage->blocks, THREADS, SMEM_BYTES, stream), false, early, functions_kernel,
              run, *stage);
}

#if TARGET_WIDE
static cudaError_t wide_prepare(void) {
    cudaError_t e = wide_linear_prepare();
    if (e == cudaSuccess) e = wide_weights_prepare();
    return e == cudaSuccess ? wide_attention_prepare() : e;
}
#endif

/* ---- the set --------------------------------------------------------------------------------- */

const kernel_set kernels = {
    functions_prepare,
    functions_launch,
#if TARGET_PARTS
    products_prepare,
    products_launch,
#else
    nullptr,
    nullptr,
#endif
    update_launch,
    update_local_launch,
    update_reports_launch,
    update_linked_launch,
#if TARGET_WIDE
    wide_prepare,
    {nullptr, wide_linear_launch, wide_linear_to_x_launch, wide_weights_launch,
     wide_attention_launch, wide_attention_grad_launch},
#else
    nullptr,
    {},
#endif
    update_fp16_launch,
};
static_assert((int)STAGE_LINEAR == 1 && (int)STAGE_LINEAR_TO_X == 2 &&
                  (int)STAGE_LINEAR_TO_W == 3 && (int)STAGE_ATTENTION == 4 &&
                  (int)STAGE_ATTENTION_GRAD == 5 && (int)STAGE_KINDS == 6,
              "launchers by kind");
TARGET_END
