/* end.cuh: what stands between the two passes as one instruction (FUSED_END in fused.h): the
 * loss, what is reported, the gradients the reverse pass begins with. One warp does all of it:
 * there are a hundred points, and nothing to wait for but memory. */
#ifndef MNP_CUDA_PAPER_END_CUH
#define MNP_CUDA_PAPER_END_CUH

#include "backend/cuda/device/gauss.cuh"

namespace end_part {

enum { EACH = FUSED_POINTS / 32 }; /* points of a lane */

FN void leave_report(double loss, double kl, double loglik) {
    const Frame &f = frame();
    double *to = f.run->item_scalars + f.item * DREPORT_COUNT;
    to[0] = loss, to[1] = kl, to[2] = loglik;
}
static_assert(DREPORT_COUNT == 3, "what is reported");

static __device__ __noinline__ void run(const dev_instr &ins) {
    if (threadIdx.x >= 32) return;
    const int n = frame().n, lane = threadIdx.x;
    const float *y = fused_at(END_Y), *logdet = fused_at(END_LOGDET);
    const double kl = __ldcg((const double *)fused_at(END_KL));
    float v[EACH], w[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int i = lane + j * 32;
        v[j] = i < n ? __ldcg(y + i) : 0.0f, w[j] = i < n ? __ldcg(logdet + i) : 0.0f;
    }
    double sum = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (lane + j * 32 < n) sum += (double)(normal_logp(v[j]) + w[j]);
#pragma unroll
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    const double share = 1.0 / (n > 1 ? (double)n : 1.0);
    const float g = (float)-share;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int i = lane + j * 32;
        if (i >= n) break;
        put(fused_at(END_GY) + i, -g * v[j], fused_adds(END_GY));
        put(fused_at(END_GLOGDET) + i, g, fused_adds(END_GLOGDET));
    }
    if (lane > 0) return;
    put((double *)fused_at(END_GKL), ins.f[0] * -share, fused_adds(END_GKL));
    leave_report(-share * (sum + (ins.f[0] * kl + ins.f[1])), share * kl, share * sum);
}

} // namespace end_part

#endif
