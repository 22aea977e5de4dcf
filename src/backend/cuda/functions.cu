/* functions.cu: the function part of a plan as one kernel. A block takes one function after the
 * other and interprets the instruction list; activations live in the block's arena in global
 * memory, which is also where the plan placed them. The next instruction is fetched while one runs.
 */
#include "backend/cuda/kernels.cuh"
#include "backend/cuda/op_algebra.cuh"
#include "backend/cuda/op_attention_grad.cuh"
#include "backend/cuda/op_io.cuh"
#include "backend/cuda/op_linear_grad.cuh"
#include "backend/cuda/op_maps.cuh"
#include "backend/cuda/op_points.cuh"
#include "backend/cuda/op_probability.cuh"

static_assert(sizeof(dev_instr) % 16 == 0, "instructions are copied 16 bytes at a time");

/* Instructions [from, to), a warp each, as one group of copies. */
FN void fetch(const dev_instr *code, int n_code, int from, int to) {
    const int pieces = sizeof(dev_instr) / 16, k = from + threadIdx.x / 32;
    if (k < min(to, n_code))
        for (int i = threadIdx.x % 32; i < pieces; i += 32)
            copy16((float *)&((Head *)smem)->slots[k % HELD].ins + i * 4,
                   (const float *)(code + k) + i * 4, true);
    copy_commit();
}

FN const dev_instr &held(int k) {
    return ((Head *)smem)->slots[k % HELD].ins;
}

/* Ops that a team can run. */
static __device__ __noinline__ void execute_small(const dev_instr &ins, Team t) {
    switch (ins.op) {
    case OPCODE_linear:
        linear_few(ins, t);
        break;
    case OPCODE_linear_grad:
        few_rows_reverse(ins, t);
        break;
    case OPCODE_join:
        op_join(ins, t);
        break;
    case OPCODE_join_grad:
        op_join_grad(ins, t);
        break;
    case OPCODE_concat:
        op_concat(ins, t);
        break;
    case OPCODE_concat_grad:
        op_concat_grad(ins, t);
        break;
    case OPCODE_stack:
        op_stack(ins, t);
        break;
    case OPCODE_stack_grad:
        op_stack_grad(ins, t);
        break;
    case OPCODE_row:
    case OPCODE_cols:
        op_row_cols(ins, t);
        break;
    case OPCODE_row_grad:
    case OPCODE_cols_grad:
        op_row_cols_grad(ins, t);
        break;
    case OPCODE_if_context:
        op_if_context(ins, t);
        break;
    case OPCODE_if_context_grad:
        op_if_context_grad(ins, t);
        break;
    case OPCODE_add:
    case OPCODE_mul:
    case OPCODE_scale:
        op_element(ins, t);
        break;
    case OPCODE_add_grad:
    case OPCODE_mul_grad:
    case OPCODE_scale_grad:
        op_element_grad(ins, t);
        break;
    case OPCODE_dot:
        op_dot(ins, t);
        break;
    case OPCODE_dot_grad:
        op_dot_grad(ins, t);
        break;
    case OPCODE_gauss_sample:
        op_gauss_sample(ins, t);
        break;
    case OPCODE_gauss_sample_grad:
        op_gauss_sample_grad(ins, t);
        break;
    case OPCODE_gauss_kl:
    case OPCODE_gauss_ratio:
        op_gauss_scalar(ins, t);
        break;
    case OPCODE_gauss_kl_grad:
        op_gauss_kl_grad(ins, t);
        break;
    case OPCODE_gauss_ratio_grad:
        op_gauss_ratio_grad(ins, t);
        break;
    case OPCODE_logmeanexp:
    case OPCODE_logmeanexp_grad:
    case OPCODE_mean_samples:
    case OPCODE_mean_samples_grad:
    case OPCODE_per_point:
    case OPCODE_per_point_grad:
        op_scalars(ins, t);
        break;
    }
}

/* Ops that take the whole block, apart from the four of execute(). */
static __device__ __noinline__ void execute_large(const dev_instr &ins) {
    switch (ins.op) {
    case OPCODE_feed:
        op_feed(ins);
        break;
    case OPCODE_emit:
        op_emit(ins);
        break;
    case OPCODE_zeros:
    case OPCODE_fill_one:
        op_fill(ins);
        break;
    case OPCODE_draw:
        op_draw(ins);
        break;
    case OPCODE_fourier:
        op_fourier(ins);
        break;
    case OPCODE_pool:
        op_pool(ins);
        break;
    case OPCODE_pool_grad:
        op_pool_grad(ins);
        break;
    case OPCODE_layernorm:
        op_layernorm(ins);
        break;
    case OPCODE_layernorm_grad:
        op_layernorm_grad(ins);
        break;
    case OPCODE_rqs_to_noise:
    case OPCODE_rqs_to_data:
        op_rqs(ins);
        break;
    case OPCODE_rqs_to_noise_grad:
    case OPCODE_rqs_to_data_grad:
        op_rqs_grad(ins);
        break;
    case OPCODE_affine_to_noise:
    case OPCODE_affine_to_data:
        op_affine(ins);
        break;
    case OPCODE_affine_to_noise_grad:
    case OPCODE_affine_to_data_grad:
        op_affine_grad(ins);
        break;
    case OPCODE_normal_logp:
        op_normal_logp(ins);
        break;
    case OPCODE_normal_logp_grad:
        op_normal_logp_grad(ins);
        break;
    case OPCODE_base_noise:
        op_base_noise(ins);
        break;
    case OPCODE_sum_rows:
        op_sum_rows(ins);
        break;
    case OPCODE_sum_rows_grad:
        op_sum_rows_grad(ins);
        break;
    case OPCODE_report:
        op_report(ins);
        break;
    default:
        execute_small(ins, whole_block());
    }
}

/* Most instructions are one of four; the rest goes through the switches. */
FN void execute(const dev_instr &ins) {
    const int op = ins.op;
    if (op == OPCODE_linear_grad)
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

FN void begin(const dev_run *run, int64_t item, int first) {
    Frame &f = frame();
    const int64_t chunks = run->chunks > 1 ? run->chunks : 1;
    f.run = run;
    f.act = run->act + (int64_t)blockIdx.x * run->act_words;
    f.grads = run->slots + (int64_t)blockIdx.x * run->slot_words;
    f.weights = run->weights;
    f.state = run->state;
    f.scratch = run->scratch + (int64_t)blockIdx.x * run->scratch_words;
    f.item = item, f.items = run->items;
    f.function = run->first_function + item / chunks;
    f.S = run->samples > 0 ? (int)run->samples : 1;
    f.sample0 = item % chunks * run->samples;
    f.n = run->n ? (int)run->n[item] : 0;
    f.m = run->m ? (int)run->m[item] : 0;
    f.first = first;
}

__global__ void __launch_bounds__(THREADS, 1) functions_kernel(const dev_run *run) {
    const int n_code = run->n_code, look = run->diagnose;
    const dev_instr *code = run->code;
    int64_t *clocks = blockIdx.x == 0 ? run->clocks : nullptr;
    const int64_t first = run->item_lo + blockIdx.x;
    for (int64_t item = first; item < run->item_hi; item += gridDim.x) {
        if (threadIdx.x == 0) begin(run, item, item == first);
        fetch(code, n_code, 0, 3 * DEV_TOGETHER);
        copy_wait<0>();
        __syncthreads();
        resolve_all(0);
        __syncthreads();
        int64_t last = clocks ? clock64() : 0;
        for (int k = 0; k < n_code;) {
            const int count = held(k).together, next = k + count;
            /* What runs next is there, what runs after that has been asked for. */
            fetch(code, n_code, k + 3 * DEV_TOGETHER, next + 3 * DEV_TOGETHER);
            if (count == 1) {
                execute(held(k));
            } else {
                const Team t = team_of(count == 2 ? 2 : DEV_TOGETHER);
                if (t.id < count) execute_small(held(k + t.id), t);
            }
            resolve_all(next); /* behind the op: a draw sets the lengths */
            copy_wait<1>();
            __syncthreads();
            for (int i = k; look && i < next; i++) diagnose(held(i), i);
            if (clocks && threadIdx.x == 0) {
                const int64_t now = clock64();
                clocks[k] += now - last;
                last = now;
            }
            k = next;
        }
    }
}

cudaError_t functions_prepare(void) {
    return cudaFuncSetAttribute(functions_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                SMEM_BYTES);
}

void functions_launch(const dev_run *run, int blocks, cudaStream_t stream) {
    functions_kernel<<<blocks, THREADS, SMEM_BYTES, stream>>>(run);
}
