/* op_normal.c: densities of single points and base noise in single precision. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/normal.h"

/* ---- standard normal ------------------------------------------------------------------------- */

void cpu_normal_logp(frame *f, const instr *ins) {
    const value *out = cpu_value(f, ins->out[0]);
    const int64_t rows = frame_rows(f, out), samples = frame_samples(f, out);
    for (int64_t s = 0; s < samples; s++) {
        const float *y = cpu_sample(f, ins->in[NORMAL_Y], s);
        const float *logdet = cpu_sample(f, ins->in[NORMAL_LOGDET], s);
        float *to = cpu_sample(f, ins->out[0], s);
        for (int64_t i = 0; i < rows; i++)
            to[i] = (logdet ? logdet[i] : 0) - (0.5f * y[i] * y[i] + (float)NORMAL_HALF_LOG_2PI);
    }
}

void cpu_normal_logp_grad(frame *f, const instr *ins) {
    const value *up = cpu_value(f, ins->in[NORMAL_GRAD_G]);
    const int64_t rows = frame_rows(f, up), samples = frame_samples(f, up);
    cpu_clear(f, ins, NORMAL_GY);
    cpu_clear(f, ins, NORMAL_GLOGDET);
    for (int64_t s = 0; s < samples; s++) {
        const float *y = cpu_sample(f, ins->in[NORMAL_GRAD_Y], s);
        const float *G = cpu_sample(f, ins->in[NORMAL_GRAD_G], s);
        float *gy = cpu_sample(f, ins->out[NORMAL_GY], s);
        float *glog = cpu_sample(f, ins->out[NORMAL_GLOGDET], s);
        for (int64_t i = 0; gy && i < rows; i++) gy[i] -= G[i] * y[i];
        for (int64_t i = 0; glog && i < rows; i++) glog[i] += G[i];
    }
}

/* ---- noise ----------------------------------------------------------------------------------- */

void cpu_base_noise(frame *f, const instr *ins) {
    const value *out = cpu_value(f, ins->out[0]);
    const int64_t rows = frame_rows(f, out), samples = frame_samples(f, out);
    for (int64_t s = 0; s < samples; s++) {
        float *to = cpu_sample(f, ins->out[0], s);
        rng_at at = gauss_place(f, ins->i[BASE_PURPOSE], out->sampled ? f->sample0 + s : 0);
        at.point = (uint32_t)f->io->first_row;
        if (ins->i[BASE_ZERO])
            memset(to, 0, (size_t)rows * sizeof *to);
        else
            cpu_k(f)->normals(gauss_key(f), at, rows, true, to);
    }
}
