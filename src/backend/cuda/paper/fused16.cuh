/* fused16.cuh: the parts that a transition runs again and again in tf32 and bf16, as calls that
 * lie side by side. The compiler lays out a kernel's functions by their mangled names, and the
 * instruction cache, 128 KB, keeps the parts of a transition only if few of their lines want the
 * same place in it; all over the three megabytes of the kernel the step took 1.0 % (bf16) and 1.6 %
 * (tf32) longer. So their names put them in order: those of DEV_TF32, at their end what both
 * precisions share, then those of DEV_BF16. */
#ifndef MNP_CUDA_PAPER_FUSED16_CUH
#define MNP_CUDA_PAPER_FUSED16_CUH

#include "backend/cuda/paper/flow/forward.cuh"
#include "backend/cuda/paper/flow/grad.cuh"
#include "backend/cuda/paper/latent/forward.cuh"
#include "backend/cuda/paper/latent/grad16.cuh"
#include "backend/cuda/paper/set/forward.cuh"
#include "backend/cuda/paper/set/grad.cuh"

#define CALL static __device__ __noinline__

template <int MATH> struct Forward {
    template <bool FP16> CALL void set() {
        set_part::set_packed<MATH, FP16>();
        pool();
    }
    CALL void pool() { set_part::pool_sides<MATH>(); }
    CALL void latent(const dev_instr &ins) { latent_part::run_as<uint2>(ins); }
    CALL void spline(const dev_instr &ins) { flow_half::flow(ins); }
};

template <int MATH> struct Reverse {
    CALL void sets(int sets) {
        pooling();
#pragma unroll 1
        for (int k = 0; k < 2; k++) {
            layers(k == 1);
            attention(k == 1);
        }
        if (sets == 0) set_grad_part::expect_set();
        finish();
        if (sets == 0) return;
        __syncthreads(); /* what this one left is there */
        set_grad_part::sum_pool(sets);
    }
    CALL void finish() {
        set_grad_part::finish_values16();
    }
    CALL void layers(bool turn) {
        set_grad_part::layers16<MATH>(turn);
    }
    CALL void pooling() {
        set_grad_part::pooling16<MATH>();
    }
    CALL void attention(bool turn) {
        set_grad_part::attention16<MATH>(turn);
    }
    CALL void flow_grad(const dev_instr &ins) {
        flow_grad_half::flow_grad(ins);
    }
    CALL void of_latent(const dev_instr &ins) {
        latent_grad_part::run_half(ins);
    }
};

#undef CALL

/* The sets in tf32 or bf16. */
template <int MATH> FN void run_set() {
    fused_at(SET_PREH) ? Forward<MATH>::template set<true>() : Forward<MATH>::template set<false>();
}

#endif
