/* op_rqs.c: the spline maps in single precision, one call of the vector kernel per sample. */
#include "backend/cpu/cpu.h"
#include "op/rqs.h"

static rqs_args describe(const frame *f, const instr *ins, bool by_y) {
    const int bins = ins->i[RQS_BINS];
    const double bound = ins->f[RQS_BOUND];
    const value *raw = cpu_value(f, ins->in[MAP_RAW]);
    return (rqs_args){.rows = frame_rows(f, raw),
                      .bins = bins,
                      .by_y = by_y,
                      .bound = (float)bound,
                      .min_width = (float)ins->f[RQS_MIN_WIDTH],
                      .min_height = (float)ins->f[RQS_MIN_HEIGHT],
                      .min_derivative = (float)ins->f[RQS_MIN_DERIVATIVE],
                      .room_x = (float)(2 * bound * (1 - bins * ins->f[RQS_MIN_WIDTH])),
                      .room_y = (float)(2 * bound * (1 - bins * ins->f[RQS_MIN_HEIGHT])),
                      .ldr = raw->ld};
}

static void forward(frame *f, const instr *ins, bool by_y) {
    rqs_args a = describe(f, ins, by_y);
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[MAP_OUT]));
    for (int64_t s = 0; s < samples; s++) {
        a.y = cpu_sample(f, ins->in[MAP_Y], s);
        a.raw = cpu_sample(f, ins->in[MAP_RAW], s);
        a.logdet = cpu_sample(f, ins->in[MAP_LOGDET], s);
        a.out = cpu_sample(f, ins->out[MAP_OUT], s);
        a.logdet_out = cpu_sample(f, ins->out[MAP_LOGDET_OUT], s);
        cpu_k(f)->rqs(&a);
    }
}

static void backward(frame *f, const instr *ins, bool by_y) {
    const val up = ins->in[MAP_GRAD_OUT], up_log = ins->in[MAP_GRAD_LOGDET];
    const int64_t samples = frame_samples(f, cpu_value(f, up != VAL_NONE ? up : up_log));
    rqs_grad_args g = {.map = describe(f, ins, by_y)};
    for (int64_t s = 0; s < samples; s++) {
        g.map.y = cpu_sample(f, ins->in[MAP_GRAD_Y], s);
        g.map.raw = cpu_sample(f, ins->in[MAP_GRAD_RAW], s);
        g.up = cpu_sample(f, up, s);
        g.up_log = cpu_sample(f, up_log, s);
        g.gy = cpu_sample(f, ins->out[MAP_GY], s);
        g.graw = cpu_sample(f, ins->out[MAP_GRAW], s);
        g.glogdet = cpu_sample(f, ins->out[MAP_GLOGDET], s);
        g.acc_y = cpu_adds(f, ins, MAP_GY, s);
        g.acc_raw = cpu_adds(f, ins, MAP_GRAW, s);
        g.acc_logdet = cpu_adds(f, ins, MAP_GLOGDET, s);
        cpu_k(f)->rqs_grad(&g);
    }
}

void cpu_rqs_to_noise(frame *f, const instr *ins) {
    forward(f, ins, false);
}
void cpu_rqs_to_data(frame *f, const instr *ins) {
    forward(f, ins, true);
}
void cpu_rqs_to_noise_grad(frame *f, const instr *ins) {
    backward(f, ins, false);
}
void cpu_rqs_to_data_grad(frame *f, const instr *ins) {
    backward(f, ins, true);
}
