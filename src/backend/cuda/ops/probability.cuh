/* probability.cuh: Gaussian latents, densities, reductions to one double (op/gauss.c, op/normal.c,
 * op/reduce.c).
 *
 *   gauss_sample    mu, raw (rows, Z), noise (1, Z):   z (1, Z) = mu + sigma noise of one row
 *   gauss_noise     the noise that gives a z
 *   gauss_kl, gauss_ratio   mu, raw (2, Z):   a double for each sample
 *   normal_logp     y (n), logdet (n) or none:   (n);   base_noise (n)
 *   sum_rows        x (n) over a range of rows, per_point, mean_samples, logmeanexp:   doubles
 *
 * Noise has the bits of every other backend (base/rng_normal.h). Sums are in double and in a fixed
 * order. Shared memory: these sums, a double for each warp of the team. */
#ifdef CUDA_OP
CUDA_OP(TEAM, gauss_sample, op_gauss_sample(ins, t))
CUDA_OP(TEAM, gauss_noise, op_gauss_noise(ins, t))
CUDA_OP(TEAM, gauss_sample_grad, op_gauss_sample_grad(ins, t))
CUDA_OP(TEAM, gauss_kl, op_gauss_scalar(ins, t))
CUDA_OP(TEAM, gauss_kl_grad, op_gauss_kl_grad(ins, t))
CUDA_OP(BLOCK, gauss_ratio, op_gauss_scalar(ins, t))
CUDA_OP(BLOCK, gauss_ratio_grad, op_gauss_ratio_grad(ins, t))
CUDA_OP(BLOCK, normal_logp, op_normal_logp(ins))
CUDA_OP(BLOCK, normal_logp_grad, op_normal_logp_grad(ins))
CUDA_OP(BLOCK, base_noise, op_base_noise(ins))
CUDA_OP(BLOCK, sum_rows, op_sum_rows(ins))
CUDA_OP(BLOCK, sum_rows_grad, op_sum_rows_grad(ins))
CUDA_OP(BLOCK, logmeanexp, op_scalars(ins, t))
CUDA_OP(BLOCK, logmeanexp_grad, op_scalars(ins, t))
CUDA_OP(TEAM, mean_samples, op_scalars(ins, t))
CUDA_OP(TEAM, mean_samples_grad, op_scalars(ins, t))
CUDA_OP(TEAM, per_point, op_scalars(ins, t))
CUDA_OP(TEAM, per_point_grad, op_scalars(ins, t))
#elif !defined(MNP_CUDA_OPS_PROBABILITY_CUH)
#define MNP_CUDA_OPS_PROBABILITY_CUH

#include "backend/cuda/device/gauss.cuh"

/* ---- Gaussians ------------------------------------------------------------------------------- */

OP_FN void op_gauss_sample(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View mu = view_in(ins, 0), raw = view_in(ins, 1), eps = view_in(ins, 2);
    View z = view_out(ins, 0), noise = view_out(ins, 1);
    const int row = ins.i[DSAMPLE_ROW];
#pragma unroll 1
    for (int i = t.rank; i < f.S * z.ld; i += t.size) {
        const int s = i / z.ld, d = i % z.ld;
        if (d >= z.cols) {
            z.p[i] = 0.0f;
            if (noise.p) noise.p[i] = 0.0f;
            continue;
        }
        const float e = eps.p ? eps.sample(s)[d] : latent_noise(f, ins, s, d);
        float slope;
        const float sigma = sigma_of(ins, raw.sample(s)[row * raw.ld + d], &slope);
        if (noise.p) noise.p[i] = e;
        z.p[i] = mu.sample(s)[row * mu.ld + d] + sigma * e;
    }
}

OP_FN void op_gauss_noise(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View mu = view_in(ins, 0), raw = view_in(ins, 1), z = view_in(ins, 2), eps = view_out(ins, 0);
#pragma unroll 1
    for (int i = t.rank; i < f.S * eps.ld; i += t.size) {
        const int s = i / eps.ld, d = i % eps.ld;
        float slope, e = 0.0f;
        if (d < eps.cols)
            e = (z.sample(s)[d] - mu.sample(s)[d]) / sigma_of(ins, raw.sample(s)[d], &slope);
        eps.p[i] = e;
    }
}

/* Column d of the rows but `row` of a gradient that is written. */
FN void zero_other_rows(const View &v, int s, int row, int d, bool add) {
    if (!v.p || add) return;
#pragma unroll 1
    for (int r = 0; r < v.rows; r++)
        if (r != row) v.sample(s)[r * v.ld + d] = 0.0f;
}

OP_FN void op_gauss_sample_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    const View raw = view_in(ins, 1), eps = view_in(ins, 2), up = view_in(ins, 3);
    const View gmu = view_out(ins, 0), graw = view_out(ins, 1), geps = view_out(ins, 2);
    const int row = ins.i[DSAMPLE_ROW];
#pragma unroll 1
    for (int d = t.rank; d < up.ld; d += t.size)
#pragma unroll 1
        for (int s = 0; s < f.S; s++) { /* all loads first */
            const bool add_mu = adds(f, ins, 0) || (s > 0 && !gmu.sampled);
            const bool add_raw = adds(f, ins, 1) || (s > 0 && !graw.sampled);
            const bool add_eps = adds(f, ins, 2) || (s > 0 && !geps.sampled);
            const Target to_mu(gmu, s, row * gmu.ld + d, add_mu);
            const Target to_raw(graw, s, row * graw.ld + d, add_raw), to_eps(geps, s, d, add_eps);
            const bool in = d < up.cols;
            const float G = in ? up.sample(s)[d] : 0.0f, e = eps.p && in ? eps.sample(s)[d] : 0.0f;
            float slope;
            const float sigma = sigma_of(ins, in ? raw.sample(s)[row * raw.ld + d] : 0.0f, &slope);
            to_eps.put(G * sigma), to_mu.put(G), to_raw.put(G * e * slope);
            zero_other_rows(gmu, s, row, d, add_mu);
            zero_other_rows(graw, s, row, d, add_raw);
            zero_other_rows(geps, s, 0, d, add_eps);
        }
}

/* A thread per dimension. */
OP_FN void op_gauss_scalar(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    const bool ratio = ins.op == OPCODE_gauss_ratio;
    View mu = view_in(ins, 0), raw = view_in(ins, 1), z = view_in(ins, 2), out = view_out(ins, 0);
    for (int s = 0; s < (out.sampled ? f.S : 1); s++) {
        double total = 0;
#pragma unroll 1
        for (int d = t.rank; d < mu.cols; d += t.size) {
            float slope;
            const float m0 = mu.sample(s)[d], m1 = mu.sample(s)[mu.ld + d];
            const float w0 = raw.sample(s)[d], w1 = raw.sample(s)[raw.ld + d];
            const float v = ratio ? z.sample(s)[d] : 0.0f;
            const float s0 = sigma_of(ins, w0, &slope), s1 = sigma_of(ins, w1, &slope);
            if (ratio) {
                const float e0 = (v - m0) / s0, e1 = (v - m1) / s1;
                total += (double)(logf(s0 / s1) + 0.5f * (e0 * e0 - e1 * e1));
            } else {
                total += (double)kl_of(m0, s0, m1, s1);
            }
        }
        total = team_sum(total, t);
        if (t.rank == 0) out.d()[s] = total;
    }
}

/* Rows after the second of a gradient that is written, of all samples. */
FN void zero_further_rows(const View &v, bool add, int S, Team t) {
    if (!v.p || add) return;
#pragma unroll 1
    for (int i = t.rank; i < v.all_rows(S) * v.ld; i += t.size)
        if (i / v.ld % v.rows > 1) v.p[i] = 0.0f;
}

OP_FN void op_gauss_kl_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View mu = view_in(ins, 0), raw = view_in(ins, 1), up = view_in(ins, 2);
    View gmu = view_out(ins, 0), graw = view_out(ins, 1);
    const bool add_mu = adds(f, ins, 0), add_raw = adds(f, ins, 1);
    const int S = up.sampled ? f.S : 1;
#pragma unroll 1
    for (int d = t.rank; d < mu.ld; d += t.size)
#pragma unroll 1
        for (int s = 0; s < S; s++) {
            const bool more_mu = add_mu || (s > 0 && !gmu.sampled);
            const bool more_raw = add_raw || (s > 0 && !graw.sampled);
            const Target mu0(gmu, s, d, more_mu), mu1(gmu, s, gmu.ld + d, more_mu);
            const Target raw0(graw, s, d, more_raw), raw1(graw, s, graw.ld + d, more_raw);
            float a = 0, b0 = 0, b1 = 0;
            if (d < mu.cols) {
                float slope0, slope1;
                const float G = (float)*up.d(s);
                const float m0 = mu.sample(s)[d], m1 = mu.sample(s)[mu.ld + d];
                const float w0 = raw.sample(s)[d], w1 = raw.sample(s)[raw.ld + d];
                const float s0 = sigma_of(ins, w0, &slope0), s1 = sigma_of(ins, w1, &slope1);
                const KlSlopes k = kl_slopes(m0, s0, slope0, m1, s1, slope1);
                a = G * k.mean, b0 = G * k.raw0, b1 = G * k.raw1;
            }
            mu0.put(a), mu1.put(-a), raw0.put(b0), raw1.put(b1);
        }
    if (gmu.rows > 2) zero_further_rows(gmu, add_mu, f.S, t);
    if (graw.rows > 2) zero_further_rows(graw, add_raw, f.S, t);
}

OP_FN void op_gauss_ratio_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    View mu = view_in(ins, 0), raw = view_in(ins, 1), z = view_in(ins, 2);
    View up = view_in(ins, 3);
    View gmu = view_out(ins, 0), graw = view_out(ins, 1), gz = view_out(ins, 2);
    const bool add_mu = adds(f, ins, 0), add_raw = adds(f, ins, 1), add_z = adds(f, ins, 2);
    const int S = up.sampled ? f.S : 1;
    zero_further_rows(gmu, add_mu, f.S, t);
    zero_further_rows(graw, add_raw, f.S, t);
#pragma unroll 1
    for (int d = t.rank; d < mu.ld; d += t.size)
#pragma unroll 1
        for (int s = 0; s < S; s++) {
            float m[2] = {0, 0}, w[2] = {0, 0}, dz = 0;
            if (d < mu.cols) {
                const float G = (float)*up.d(s), v = z.sample(s)[d];
#pragma unroll 1
                for (int k = 0; k < 2; k++) {
                    float slope;
                    const float sig = sigma_of(ins, raw.sample(s)[k * raw.ld + d], &slope);
                    const float e = (v - mu.sample(s)[k * mu.ld + d]) / sig;
                    const float sign = k ? 1.0f : -1.0f; /* + log N(z; 1) - log N(z; 0) */
                    m[k] = sign * G * e / sig;
                    w[k] = sign * G * slope * (e * e - 1.0f) / sig;
                    dz -= sign * G * e / sig;
                }
            }
#pragma unroll 1
            for (int k = 0; k < 2; k++) {
                if (gmu.p)
                    put(gmu.sample(s) + k * gmu.ld + d, m[k], add_mu || (s > 0 && !gmu.sampled));
                if (graw.p)
                    put(graw.sample(s) + k * graw.ld + d, w[k],
                        add_raw || (s > 0 && !graw.sampled));
            }
            if (gz.p) put(gz.sample(s) + d, dz, add_z || (s > 0 && !gz.sampled));
        }
}

/* ---- points ---------------------------------------------------------------------------------- */

OP_FN void op_normal_logp(const dev_instr &ins) {
    const Frame &f = frame();
    View y = view_in(ins, 0), logdet = view_in(ins, 1), out = view_out(ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < out.all_rows(f.S); i += THREADS) {
        const int s = i / out.rows, r = i % out.rows;
        const float v = y.sample(s)[r];
        out.p[i] = normal_logp(v) + (logdet.p ? logdet.sample(s)[r] : 0.0f);
    }
}

OP_FN void op_normal_logp_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View y = view_in(ins, 0), up = view_in(ins, 1);
    View gy = view_out(ins, 0), glog = view_out(ins, 1);
    const bool add_y = adds(f, ins, 0), add_log = adds(f, ins, 1);
#pragma unroll 1
    for (int r = threadIdx.x; r < up.rows; r += THREADS)
#pragma unroll 1
        for (int s = 0; s < (up.sampled ? f.S : 1); s++) {
            const float G = up.sample(s)[r];
            if (gy.p) put(gy.sample(s) + r, -G * y.sample(s)[r], add_y || (s > 0 && !gy.sampled));
            if (glog.p) put(glog.sample(s) + r, G, add_log || (s > 0 && !glog.sampled));
        }
}

OP_FN void op_base_noise(const dev_instr &ins) {
    const Frame &f = frame();
    View out = view_out(ins, 0);
    const rng_key key = {f.seed};
#pragma unroll 1
    for (int i = threadIdx.x; i < out.all_rows(f.S); i += THREADS) {
        const int s = i / max(out.rows, 1), r = i % max(out.rows, 1);
        rng_at at = noise_place(f, ins.i[0], out.sampled ? f.sample0 + s : 0);
        at.point = (uint32_t)(f.run->first_row + r);
        out.p[i] = ins.i[1] ? 0.0f : rng_normal_at(key, at);
    }
}

/* ---- reductions ------------------------------------------------------------------------------ */

FN void row_span(const Frame &f, int range, int rows, int *lo, int *hi) {
    *lo = range == 1 ? f.m : range == 3 ? f.k : 0;
    *hi = range == 2 ? f.m : rows;
}

/* A warp per sample. */
OP_FN void op_sum_rows(const dev_instr &ins) {
    const Frame &f = frame();
    View x = view_in(ins, 0), y = view_out(ins, 0);
    int lo, hi;
    row_span(f, ins.i[0], x.rows, &lo, &hi);
#pragma unroll 1
    for (int s = threadIdx.x / 32; s < (y.sampled ? f.S : 1); s += WARPS) {
        double sum = 0;
        for (int r = lo + threadIdx.x % 32; r < hi; r += 32)
            sum += (double)x.sample(s)[(int64_t)r * x.ld];
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
        if (threadIdx.x % 32 == 0) y.d()[s] = sum;
    }
}

OP_FN void op_sum_rows_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View g = view_in(ins, 0), gx = view_out(ins, 0);
    int lo, hi;
    row_span(f, ins.i[0], gx.rows, &lo, &hi);
    const bool add = adds(f, ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < gx.all_rows(f.S) * gx.ld; i += THREADS) {
        const int r = i / gx.ld % gx.rows, s = i / gx.ld / gx.rows;
        const bool in = i % gx.ld == 0 && r >= lo && r < hi;
        if (in)
            put(gx.p + i, (float)*g.d(s), add);
        else if (!add)
            gx.p[i] = 0.0f;
    }
}

/* One thread: there are S numbers. */
OP_FN void op_scalars(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    if (t.rank != 0) return;
    View x = view_in(ins, 0), y = view_out(ins, 0);
    const bool add = adds(f, ins, 0);
    int lo, hi;
    row_span(f, ins.i[0], f.n, &lo, &hi);
    const double count = hi - lo > 1 ? (double)(hi - lo) : 1.0;
    if (ins.op == OPCODE_per_point || ins.op == OPCODE_per_point_grad) {
        const double scale = ins.f[0] / count;
#pragma unroll 1
        for (int s = 0; s < (y.sampled ? f.S : 1); s++) put(y.d() + s, scale * *x.d(s), add);
    } else if (ins.op == OPCODE_mean_samples) {
        const int S = x.sampled ? f.S : 1;
        double sum = 0;
#pragma unroll 1
        for (int s = 0; s < S; s++) sum += *x.d(s) / (double)S;
        put(y.d(), sum, add);
    } else if (ins.op == OPCODE_mean_samples_grad) {
        const int S = y.sampled ? f.S : 1;
#pragma unroll 1
        for (int s = 0; s < S; s++) put(y.d() + s, *x.d() / (double)S, add);
    } else { /* logmeanexp and its grad: in[1] is the forward input there */
        const bool grad = ins.op == OPCODE_logmeanexp_grad;
        View v = grad ? view_in(ins, 1) : x;
        const int S = v.sampled ? f.S : 1;
        double top = -INFINITY, sum = 0, plain = 0;
#pragma unroll 1
        for (int s = 0; s < S; s++) top = *v.d(s) > top ? *v.d(s) : top, plain += *v.d(s);
#pragma unroll 1
        for (int s = 0; s < S; s++) sum += exp(*v.d(s) - top);
        if (!grad) put(y.d(), isfinite(top) ? top + log(sum / (double)S) : plain, add);
#pragma unroll 1
        for (int s = 0; grad && s < S; s++) {
            const double w = top == -INFINITY ? 1.0 / (double)S : exp(*v.d(s) - top) / sum;
            put(y.d() + s, *x.d() * w, add);
        }
    }
}

#endif
