/* io.cuh: what enters and leaves a function: feed, emit, zeros, the one that starts the reverse
 * pass, report, and the draw from the resident data: x (n, X) and y (n) of a function, its points
 * in random order, and n, k and m for all instructions that follow (op/draw.c).
 *
 * The draw gives the integers of op/permute.c and base/rng.c: the same streams, the same shuffle.
 * Shared memory: what was drawn (Drawn), from word 64 on three lists of n if they fit. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, feed, op_feed(ins))
CUDA_OP(BLOCK, emit, op_emit(ins))
CUDA_OP(BLOCK, zeros, op_fill(ins))
CUDA_OP(BLOCK, fill_one, op_fill(ins))
CUDA_OP(BLOCK, draw, op_draw(ins))
CUDA_OP(BLOCK, report, op_report(ins))
#elif !defined(MNP_CUDA_OPS_IO_CUH)
#define MNP_CUDA_OPS_IO_CUH

#include "backend/cuda/device/frame.cuh"
#include "base/rng.h"
#include "base/rng_normal.h"
#include "op/draw.h"
#include "op/mirror.h"
#include "op/region.h"

/* ---- streams and permutations, as in base/rng.c ---------------------------------------------- */

struct Stream {
    rng_key key;
    rng_at at;
    rng_words words;
    int left;
};

OP_FN void refill(Stream &s) {
    s.words = rng_words_at(s.key, s.at);
    s.left = 4;
    if (++s.at.point == 0) s.at.dim += 4;
}
FN uint32_t next_u32(Stream &s) {
    if (s.left == 0) refill(s);
    return s.words.w[4 - s.left--];
}
FN uint64_t next_u64(Stream &s) {
    const uint64_t hi = next_u32(s);
    return hi << 32 | next_u32(s);
}
/* Draws below 2^64 % k, all of which are below k, are rejected. */
OP_FN uint64_t next_below(Stream &s, uint64_t k) {
    for (;;) {
        const uint64_t x = next_u64(s);
        if (x >= k || x >= (0 - k) % k) return x % k;
    }
}

FN uint32_t perm_mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

/* rng_perm_index(): lane r of the first warp has the key of round r. All its lanes get the result.
 */
FN uint64_t perm_index(rng_key key, rng_at at, uint64_t n, uint64_t i) {
    enum { ROUNDS = 12 };
    int half = 1;
    while (n > (uint64_t)1 << 2 * half) half++;
    at.dim = threadIdx.x % 32;
    const uint32_t own = threadIdx.x % 32 < ROUNDS ? rng_u32_at(key, at) : 0;
    const uint32_t mask = (uint32_t)(((uint64_t)1 << half) - 1);
    do {
        uint32_t left = (uint32_t)(i >> half), right = (uint32_t)i & mask;
#pragma unroll 4
        for (int r = 0; r < ROUNDS; r++) {
            const uint32_t k = __shfl_sync(~0u, own, r);
            const uint32_t next = left ^ (perm_mix(perm_mix(right ^ k) + k) & mask);
            left = right;
            right = next;
        }
        i = (uint64_t)left << half | right;
    } while (i >= n);
    return i;
}

/* ---- draw ------------------------------------------------------------------------------------ */

struct Drawn {
    int64_t first, points;
    int n, k, m;
    int64_t first_x;
    Stream stream;
    rng_at noise_at;
    double u, v; /* which region the context comes from, and how much of it; u = 1: none */
    double w;    /* below the share of prefixes: the context is one */
    uint32_t mirrored;
    int ok; /* no draw of the shuffle was rejected */
};

FN void draw_lengths(const Frame &f, const dev_instr &ins, Drawn &d) {
    const int64_t hi = min((int64_t)min((int64_t)ins.i[DRAW_HI], (int64_t)d.n), f.run->cap_m);
    const int64_t lo = min((int64_t)ins.i[DRAW_LO], hi);
    const uint32_t u_hi = next_u32(d.stream), u_lo = next_u32(d.stream);
    const double u = rng_u64_to_double(u_hi, u_lo);
    d.m = (int)(lo + (int64_t)next_below(d.stream, (uint64_t)(hi - lo + 1)));
    if (ins.i[DRAW_TRAIN] && u < ins.f[DRAW_P_EMPTY]) d.m = 0;
    if (ins.i[DRAW_FEW])
        d.n =
            (int)min((int64_t)d.n,
                     d.m + 1 + (int64_t)next_below(d.stream, (uint64_t)(ins.i[DRAW_HI] + 1 - d.m)));
    d.k = ins.i[DRAW_SEEN] > 0 ? min(max(ins.i[DRAW_SEEN], d.m), d.n) : d.n;
    d.u = 1, d.v = 0;
    if (ins.f[DRAW_P_REGION] > 0) {
        const uint32_t a_hi = next_u32(d.stream), a_lo = next_u32(d.stream);
        const uint32_t b_hi = next_u32(d.stream), b_lo = next_u32(d.stream);
        d.u = rng_u64_to_double(a_hi, a_lo), d.v = rng_u64_to_double(b_hi, b_lo);
    }
    d.w = 1;
    if (ins.f[DRAW_PREFIX] > 0) {
        const uint32_t w_hi = next_u32(d.stream), w_lo = next_u32(d.stream);
        d.w = rng_u64_to_double(w_hi, w_lo);
    }
}

/* Which function, its lengths, and the stream the shuffle goes on with; by the first warp. */
FN void draw_choose(const Frame &f, const dev_instr &ins, Drawn &d) {
    const dev_run *run = f.run;
    const rng_key key = {f.seed};
    const int64_t step = f.step, chunks = run->chunks > 1 ? run->chunks : 1;
    int64_t function = run->first_function + f.item / chunks;
    rng_at at = {};
    at.purpose = RNG_SPLIT_EVAL, at.function = (uint32_t)function;
    if (ins.i[DRAW_TRAIN]) {
        const int64_t position = step * (f.items / chunks) + f.item / chunks;
        rng_at epoch = {};
        epoch.purpose = RNG_BATCH, epoch.step = (uint32_t)(position / run->data_functions);
        function = (int64_t)perm_index(key, epoch, (uint64_t)run->data_functions,
                                       (uint64_t)(position % run->data_functions));
        at = {};
        at.purpose = RNG_SPLIT, at.step = (uint32_t)step, at.function = (uint32_t)(f.item / chunks);
    }
    if (threadIdx.x != 0) return;
    d.first = run->data_start[function];
    d.first_x = run->data_shared_x ? 0 : d.first;
    d.noise_at = at;
    d.noise_at.purpose = RNG_NOISE;
    d.points = run->data_start[function + 1] - d.first;
    d.n = (int)min(d.points, run->cap_n);
    d.mirrored = ins.i[DRAW_MIRROR] > 0 ? mirror_draw(key, at, ins.i[DRAW_MIRROR]) : 0;
    if (ins.i[DRAW_MAX] > 0) d.n = min(d.n, ins.i[DRAW_MAX]);
    d.stream = {};
    d.stream.key = key, d.stream.at = at;
    draw_lengths(f, ins, d);
    d.ok = 1;
}

/* jump[i]: the place that swap i of permute_prefix() takes its number from, i < k. All threads draw
 * at once. A rejected draw (one in 2^56) would shift those after it: where there may be one, one
 * thread draws all of them again. */
FN void draw_jumps(Drawn &d, int32_t *jump) {
    const int k = d.n;
    const int64_t used = 4 * (int64_t)d.stream.at.point - d.stream.left; /* words, always even */
#pragma unroll 1
    for (int i = threadIdx.x; i < k; i += THREADS) {
        rng_at at = d.stream.at;
        const int64_t word = used + 2 * i;
        at.point = (uint32_t)(word / 4), at.dim = 0;
        const rng_words w = rng_words_at(d.stream.key, at);
        const uint64_t x =
            word % 4 ? (uint64_t)w.w[2] << 32 | w.w[3] : (uint64_t)w.w[0] << 32 | w.w[1];
        const uint64_t left = (uint64_t)(d.points - i);
        if (x < left && left > 1) d.ok = 0;
        jump[i] = i + (int32_t)(x % left);
    }
    __syncthreads();
    if (d.ok) return;
    if (threadIdx.x == 0)
#pragma unroll 1
        for (int i = 0; i < k && i < d.points - 1; i++)
            jump[i] = i + (int32_t)next_below(d.stream, (uint64_t)(d.points - i));
    __syncthreads();
}

/* The last swap before number `end` that took its number from `place` (and left there what it had
 * itself), -1: none did. Four lanes share the search. */
FN int last_swap(const int32_t *jump, int place, int end) {
    int last = -1;
#pragma unroll 4
    for (int s = threadIdx.x % 4; s < end; s += 4)
        if (jump[s] == place) last = s;
    last = max(last, __shfl_xor_sync(~0u, last, 1));
    return max(last, __shfl_xor_sync(~0u, last, 2));
}

/* The first n places of the shuffle. Swaps go one after the other, but where each number of the
 * result comes from can be told by itself: place i gets what lies at jump[i] when its turn comes.
 * The last swap that took from there left what lay at its own place by then; so back from swap to
 * swap, until a place is found that none had touched. */
FN int32_t *shuffle(Drawn &d, int32_t *memory) {
    const int k = d.n;
    int32_t *order = memory, *jump = memory + k, *came = jump + k;
    draw_jumps(d, jump);
#pragma unroll 1
    for (int i0 = 0; i0 < k; i0 += THREADS / 4) {
        const int i = min(i0 + (int)threadIdx.x / 4, k - 1);
        const int own = last_swap(jump, i, i), before = last_swap(jump, jump[i], i);
        if (threadIdx.x % 4 == 0) came[i] = own, order[i] = before;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < k; i += THREADS) {
        int place = order[i];
        if (place < 0) {
            place = jump[i];
        } else {
#pragma unroll 1
            for (int next; (next = came[place]) >= 0;) place = next;
        }
        order[i] = place;
    }
    __syncthreads();
    return order;
}

/* permute_first(): each point counts those before it, then one thread moves. */
FN void draw_first(const Frame &f, const dev_instr &ins, Drawn &d, int32_t *order) {
    if (!(d.w < ins.f[DRAW_PREFIX]) || d.m < 1 || d.m >= d.n) return;
    int32_t *flag = order + d.n, *spare = flag + d.n;
    const int64_t X = f.run->data_x_dim;
    const float *x = f.run->data_x + d.first_x * X + ins.i[DRAW_TIME];
    const float sign = d.mirrored >> (ins.i[DRAW_TIME] & 31) & 1 ? -1.0f : 1.0f;
#pragma unroll 1
    for (int i = threadIdx.x; i < d.n; i += THREADS) {
        const float own = sign * x[order[i] * X];
        int before = 0;
#pragma unroll 1
        for (int j = 0; j < d.n; j++) {
            const float other = sign * x[order[j] * X];
            before += other < own || (other == own && order[j] < order[i]);
        }
        flag[i] = before < d.m;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int inside = 0, outside = 0;
#pragma unroll 1
        for (int i = 0; i < d.n; i++) {
            if (flag[i])
                order[inside++] = order[i];
            else
                spare[outside++] = order[i];
        }
#pragma unroll 1
        for (int i = 0; i < outside; i++) order[inside + i] = spare[i];
    }
    __syncthreads();
}

/* permute_region() and what draw_region() makes of it: flags by all threads, then one moves. */
FN void draw_region(const Frame &f, const dev_instr &ins, Drawn &d, int32_t *order) {
    const double p = ins.f[DRAW_P_REGION];
    if (!(d.u < p) || (d.m == 0 && ins.i[DRAW_TRAIN])) return;
    const int which = min((int)(d.u / p * REGION_COUNT), (int)REGION_COUNT - 1);
    int32_t *flag = order + d.n, *spare = flag + d.n;
    const float *x = f.run->data_x + 2 * d.first_x;
#pragma unroll 1
    for (int i = threadIdx.x; i < d.k; i += THREADS) {
        const float *at = x + 2 * (int64_t)order[i];
        flag[i] = region_holds(which, mirror_input(d.mirrored, 0, at[0]),
                               mirror_input(d.mirrored, 1, at[1]));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int inside = 0, outside = 0;
#pragma unroll 1
        for (int i = 0; i < d.k; i++) {
            if (flag[i])
                order[inside++] = order[i];
            else
                spare[outside++] = order[i];
        }
#pragma unroll 1
        for (int i = 0; i < outside; i++) order[inside + i] = spare[i];
        d.m = (int)min(inside - (int64_t)(d.v * (double)(inside / 2 + 1)), f.run->cap_m);
    }
    __syncthreads();
}

OP_FN void op_draw(const dev_instr &ins) {
    Frame &f = frame();
    const dev_run *run = f.run;
    Drawn &d = *(Drawn *)work();
    if (threadIdx.x < 32) draw_choose(f, ins, d);
    __syncthreads();
    const View x = resolve(f, ins.out[DRAW_X]);
    float *y = resolve(f, ins.out[DRAW_Y]).p;
    const float *y_row = run->data_y + d.first, *x_row = run->data_x + d.first_x * x.cols;
    if (x.ld > x.cols) zero_words(x.p, d.n * x.ld, whole_block()); /* what is beyond its columns */
    /* three lists of n; which memory it is should be known where they are read */
    int32_t *order;
    if (3 * (int64_t)d.n + 64 <= WORK_WORDS)
        order = shuffle(d, (int32_t *)work() + 64);
    else
        order = shuffle(d, f.scratch);
    draw_region(f, ins, d, order);
    draw_first(f, ins, d, order);
    if (threadIdx.x == 0) f.n = d.n, f.k = d.k, f.m = d.m;
    __syncthreads();
#pragma unroll 1
    for (int r = threadIdx.x; r < d.n; r += THREADS) {
        const int64_t at = order[r];
        float value = y_row[at];
#pragma unroll 1
        for (int c = 0; c < x.cols; c++)
            x.p[r * x.ld + c] = mirror_input(d.mirrored, c, x_row[at * x.cols + c]);
        if (ins.f[DRAW_NOISE] > 0 && r >= d.m) {
            rng_at at = d.noise_at;
            at.point = (uint32_t)r;
            const rng_key key = {f.seed};
            value = RNG_FMA((float)ins.f[DRAW_NOISE], rng_normal_at(key, at), value);
        }
        y[r] = value;
    }
}

/* ---- feed, emit, constants, report ----------------------------------------------------------- */

OP_FN void op_feed(const dev_instr &ins) {
    const Frame &f = frame();
    View v = view_out(ins, 0);
    const int k = ins.i[0];
    const double *from = f.run->feed[k] + f.item * f.run->feed_stride[k];
    const int rows = v.all_rows(f.S);
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * v.ld; i += THREADS) {
        const int r = i / v.ld, c = i % v.ld;
        const double x = c < v.cols ? from[r * v.cols + c] : 0.0;
        if (ins.out[0].is_double)
            v.d()[i] = x;
        else
            v.p[i] = (float)x;
    }
}

OP_FN void op_emit(const dev_instr &ins) {
    const Frame &f = frame();
    View v = view_in(ins, 0);
    const int k = ins.i[0];
    double *to = f.run->emit[k];
    if (!to) return; /* the caller does not want it this time */
    to += f.item * f.run->emit_stride[k];
    const int count = v.all_rows(f.S) * v.cols;
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const int at = i / v.cols * v.ld + i % v.cols;
        to[i] = ins.in[0].is_double ? v.d()[at] : (double)v.p[at];
    }
}

OP_FN void op_fill(const dev_instr &ins) {
    const Frame &f = frame();
    View v = view_out(ins, 0);
    const float one = ins.op == OPCODE_fill_one ? 1.0f : 0.0f;
#pragma unroll 1
    for (int i = threadIdx.x; i < v.all_rows(f.S) * v.ld; i += THREADS) {
        if (ins.out[0].is_double)
            v.d()[i] = one;
        else
            v.p[i] = i % v.ld < v.cols ? one : 0.0f;
    }
}

OP_FN void op_report(const dev_instr &ins) {
    const Frame &f = frame();
    if (threadIdx.x >= DREPORT_COUNT) return;
    View v = view_in(ins, threadIdx.x);
    f.run->item_scalars[f.item * DREPORT_COUNT + threadIdx.x] = v.p ? v.d()[0] : 0.0;
}

#endif
