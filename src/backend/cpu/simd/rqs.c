/* rqs.c: the spline map and its reverse, VL points at a time and without branches (equations in
 * op/rqs_math.h). A block's raw rows are turned so that a vector holds one raw number of VL points;
 * the bin is found by comparing with every knot and selecting, which also picks the two raw end
 * slopes, so that only those two go through softplus. The reverse pass does the forward again:
 * that is cheaper than storing what it needs.
 *
 * g = s^2 M / D^2 stays well inside a float, so L = log g is one logarithm. A point's result does
 * not depend on its place in the block. */
#include "backend/cpu/simd/simd_math.h"
#include "backend/cpu/simd/table.h"

enum { BINS_MAX = 64, COLS_MAX = 192 }; /* 3 BINS_MAX - 1, padded */

SIMD_INLINE vf vsqrt(vf x) {
    vf r;
    for (int i = 0; i < VL; i++) r[i] = __builtin_sqrtf(x[i]);
    return r;
}

typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

SIMD_INLINE void turn4(const float *src, int64_t lds, float *dst, int64_t ldd) {
    const v4 a = *(const v4 *)src, b = *(const v4 *)(src + lds);
    const v4 c = *(const v4 *)(src + 2 * lds), d = *(const v4 *)(src + 3 * lds);
    const v4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const v4 ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const v4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const v4 cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(v4 *)dst = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(v4 *)(dst + ldd) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(v4 *)(dst + 2 * ldd) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    *(v4 *)(dst + 3 * ldd) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

/* lanes[c] = column c of VL rows; cols is a multiple of 4. */
SIMD_INLINE void to_lanes(const float *rows, int64_t ld, int64_t cols, vf *lanes) {
    for (int64_t c = 0; c < cols; c += 4)
        for (int64_t r = 0; r < VL; r += 4)
            turn4(rows + r * ld + c, ld, (float *)(lanes + c) + r, VL);
}

SIMD_INLINE void from_lanes(const vf *lanes, int64_t cols, float *rows, int64_t ld) {
    for (int64_t r = 0; r < VL; r += 4)
        for (int64_t c = 0; c < cols; c += 4)
            turn4((const float *)(lanes + c) + r, VL, rows + r * ld + c, ld);
}

/* The knots of one axis: u holds raw numbers and becomes exp(u - max); the inverse of their sum. */
SIMD_INLINE vf softmax_parts(int K, vf *u) {
    vf top = u[0], sum = vset(0);
    for (int j = 1; j < K; j++) top = vmax(u[j], top);
    for (int j = 0; j < K; j++) {
        u[j] = vexp(u[j] - top); /* its last bits move the knots: no cheaper one will do */
        sum += u[j];
    }
    return 1.0f / sum;
}

typedef struct place {
    vi k;
    vf x0, y0, w, h, s;    /* corner and sizes of the bin                           */
    vf q0, q1, d0, d1;     /* raw and true slopes at its ends                       */
    vf share_x, share_y;   /* its shares of the axes ...                            */
    vf before_x, before_y; /* ... and those of the bins before it                   */
    vf inv_x, inv_y;       /* 1 / sum of the exponentials                           */
    vf theta, p, D, M, g;
} place;

/* Finds the bin of v among the x knots (or the y knots) and gathers its corner, sizes, slopes. */
SIMD_INLINE void find_bin(const rqs_args *a, bool by_y, vf v, vf *lanes, place *t) {
    const int K = a->bins;
    vf *ux = lanes, *uy = lanes + K, *q = lanes + 2 * K;
    const float B = a->bound, lx = 2 * B * a->min_width, ly = 2 * B * a->min_height;
    t->inv_x = softmax_parts(K, ux);
    t->inv_y = softmax_parts(K, uy);
    const vf rx = t->inv_x * a->room_x, ry = t->inv_y * a->room_y;
    vf sum_x = lx + rx * ux[0], sum_y = ly + ry * uy[0];
    vf all_x = ux[0], all_y = uy[0];
    vf x1 = K > 1 ? sum_x - B : vset(B), y1 = K > 1 ? sum_y - B : vset(B);
    t->x0 = t->y0 = vset(-B);
    t->k = (vi){0};
    t->q0 = vset(0), t->q1 = K > 1 ? q[0] : vset(0);
    t->before_x = t->before_y = vset(0);
    t->share_x = ux[0], t->share_y = uy[0];
    for (int k = 1; k < K; k++) {
        const vf knot_x = sum_x - B, knot_y = sum_y - B;
        const bool last = k + 1 == K;
        const vi past = by_y ? knot_y <= v : knot_x <= v;
        sum_x += lx + rx * ux[k];
        sum_y += ly + ry * uy[k];
        t->k -= past;
        t->x0 = vselect(past, knot_x, t->x0);
        t->y0 = vselect(past, knot_y, t->y0);
        x1 = vselect(past, last ? vset(B) : sum_x - B, x1);
        y1 = vselect(past, last ? vset(B) : sum_y - B, y1);
        t->q0 = vselect(past, q[k - 1], t->q0);
        t->q1 = vselect(past, last ? vset(0) : q[k], t->q1);
        t->before_x = vselect(past, all_x, t->before_x);
        t->before_y = vselect(past, all_y, t->before_y);
        t->share_x = vselect(past, ux[k], t->share_x);
        t->share_y = vselect(past, uy[k], t->share_y);
        all_x += ux[k];
        all_y += uy[k];
    }
    t->w = x1 - t->x0;
    t->h = y1 - t->y0;
    t->s = t->h / t->w;
    const vf top = vset(1e12f); /* RQS_SLOPE_MAX */
    const vf s0 = vmin(a->min_derivative + vsoftplus(t->q0), top);
    const vf s1 = vmin(a->min_derivative + vsoftplus(t->q1), top);
    t->d0 = vselect(t->k == 0, vset(1), s0);
    t->d1 = vselect(t->k == K - 1, vset(1), s1);
}

SIMD_INLINE vf root(const place *t, vf y) {
    const vf e = y - t->y0;
    const vf b = t->h * t->d0 - e * (t->d0 + t->d1 - 2.0f * t->s);
    const vf a = t->h * t->s - b, c = -t->s * e;
    const vf q = vsqrt(vmax(b * b - 4.0f * a * c, vset(0)));
    const vi plus = b >= vset(0);
    const vf theta = vselect(plus, 2.0f * c, q - b) / vselect(plus, -b - q, 2.0f * a);
    return vmin(vmax(theta, vset(0)), vset(1));
}

SIMD_INLINE void locate(const rqs_args *a, bool by_y, vf v, vf *lanes, place *t) {
    find_bin(a, by_y, v, lanes, t);
    const vf theta = by_y ? root(t, v) : (v - t->x0) / t->w;
    const vf rest = 1.0f - theta, p = theta * rest;
    t->theta = theta;
    t->p = p;
    t->D = t->s * (1.0f - 2.0f * p) + (t->d0 + t->d1) * p;
    t->M = t->d1 * theta * theta + 2.0f * t->s * p + t->d0 * rest * rest;
    const vf slope = t->s / t->D;
    t->g = slope * slope * t->M;
}

SIMD_INLINE vi is_inside(const rqs_args *a, vf v) {
    return (v >= vset(-a->bound)) & (v <= vset(a->bound));
}

/* ---- forward --------------------------------------------------------------------------------- */

SIMD_INLINE void map_block(const rqs_args *a, bool by_y, const float *y, const float *raw,
                           const float *logdet, float *out, float *logdet_out) {
    vf lanes[COLS_MAX];
    place t;
    const vf v = vload(y);
    to_lanes(raw, a->ldr, a->ldr, lanes);
    locate(a, by_y, v, lanes, &t);
    const vf r = (t.s * t.theta * t.theta + t.d0 * t.p) / t.D;
    const vf image = by_y ? t.x0 + t.theta * t.w : t.y0 + t.h * r;
    const vf L = by_y ? -vlog(t.g) : vlog(t.g);
    const vi inside = is_inside(a, v);
    /* a NaN stays visible: NOLINTNEXTLINE(misc-redundant-expression) */
    const vf tail = vselect(v == v, vset(0), v);
    vstore(out, vselect(inside, image, v));
    vstore(logdet_out, vload(logdet) + vselect(inside, L, tail));
}

SIMD_INLINE void map_all(const rqs_args *a, bool by_y) {
    static const float zeros[VL];
    int64_t i = 0;
    for (; i + VL <= a->rows; i += VL)
        map_block(a, by_y, a->y + i, a->raw + i * a->ldr, a->logdet ? a->logdet + i : zeros,
                  a->out + i, a->logdet_out + i);
    if (i == a->rows) return;
    const size_t left = (size_t)(a->rows - i) * sizeof(float);
    float y[VL] = {0}, logdet[VL] = {0}, out[VL], logdet_out[VL], raw[VL * COLS_MAX];
    memset(raw, 0, VL * (size_t)a->ldr * sizeof(float));
    memcpy(raw, a->raw + i * a->ldr, left * (size_t)a->ldr);
    memcpy(y, a->y + i, left);
    if (a->logdet) memcpy(logdet, a->logdet + i, left);
    map_block(a, by_y, y, raw, logdet, out, logdet_out);
    memcpy(a->out + i, out, left);
    memcpy(a->logdet_out + i, logdet_out, left);
}

void ISA(cpu_rqs)(const rqs_args *a) {
    if (a->by_y)
        map_all(a, true);
    else
        map_all(a, false);
}

/* ---- reverse --------------------------------------------------------------------------------- */

/* Gradients of the bin's quantities. */
typedef struct bin_grad {
    vf v, x0, y0, w, h, d0, d1;
} bin_grad;

SIMD_INLINE bin_grad derive(const place *t, bool by_y, vf G, vf H) {
    const vf s = t->s, th = t->theta, p = t->p, rest = 1.0f - th, u = 1.0f - 2.0f * th;
    const vf iD = 1.0f / t->D, iM = 1.0f / t->M, iw = 1.0f / t->w, u2 = 1.0f - 2.0f * p;
    const vf r = (s * th * th + t->d0 * p) * iD, sigma = t->d0 + t->d1 - 2.0f * s;
    const vf r_s = (th * th - r * u2) * iD;
    const vf L_t = 2.0f * ((t->d1 * th + s * u - t->d0 * rest) * iM - sigma * u * iD);
    const vf L_s = 2.0f * (1.0f / s + p * iM - u2 * iD);
    const vf L_x = L_t * iw, pD = p * iD;
    /* out = f: weights (G, H) on (y, L); out = f^-1: (-E/g, -H) */
    const vf E = (G - H * L_x) / t->g;
    const vf a = by_y ? -E : G, b = by_y ? -H : H;
    bin_grad q;
    q.x0 = -(a * t->g + b * L_x);
    q.v = by_y ? E : -q.x0;
    q.y0 = a;
    q.w = -a * (th * t->g + s * s * r_s) - b * (th * L_t + s * L_s) * iw;
    q.h = a * (r + s * r_s) + b * L_s * iw;
    q.d0 = a * t->h * pD * (1.0f - r) + b * (rest * rest * iM - 2.0f * pD);
    q.d1 = -a * t->h * pD * r + b * (th * th * iM - 2.0f * pD);
    return q;
}

/* e_j (exponentials) becomes the gradient of raw number j: share_j (gamma_j - mean). */
SIMD_INLINE void axis_grad(int K, vi k, vf *e, vf inv, float room, vf share, vf before, vf size,
                           vf corner) {
    size *= room, corner *= room;
    const vf mean = (share * size + before * corner) * inv;
    const vf here = (size - mean) * inv, left = (corner - mean) * inv, right = -mean * inv;
    for (int j = 0; j < K; j++) {
        const vf gamma = vselect(k == j, here, vselect(k > j, left, right));
        e[j] *= gamma;
    }
}

SIMD_INLINE void slopes_grad(const rqs_args *a, const place *t, const bin_grad *q, vf *raw) {
    const vf top = vset(1e12f);
    const vf g0 = vselect(t->q0 < top, q->d0 * vsigmoid(t->q0), vset(0));
    const vf g1 = vselect(t->q1 < top, q->d1 * vsigmoid(t->q1), vset(0));
    for (int j = 1; j < a->bins; j++)
        raw[j - 1] = vselect(t->k == j, g0, vselect(t->k == j - 1, g1, vset(0)));
}

SIMD_INLINE vf grad_block(const rqs_args *a, bool by_y, const float *y, const float *raw, vf G,
                          vf H, vf *lanes) {
    place t;
    const int K = a->bins;
    const vf v = vload(y);
    const vi inside = is_inside(a, v);
    to_lanes(raw, a->ldr, a->ldr, lanes);
    locate(a, by_y, v, lanes, &t);
    bin_grad q = derive(&t, by_y, G, H);
    vf *part[6] = {&q.x0, &q.y0, &q.w, &q.h, &q.d0, &q.d1};
    for (int j = 0; j < 6; j++) *part[j] = vselect(inside, *part[j], vset(0));
    axis_grad(K, t.k, lanes, t.inv_x, a->room_x, t.share_x, t.before_x, q.w, q.x0);
    axis_grad(K, t.k, lanes + K, t.inv_y, a->room_y, t.share_y, t.before_y, q.h, q.y0);
    slopes_grad(a, &t, &q, lanes + 2 * K);
    return vselect(inside, q.v, G);
}

SIMD_INLINE void put(float *to, const float *from, int64_t count, bool add) {
    for (int64_t c = 0; c < count; c++) to[c] = add ? to[c] + from[c] : from[c];
}

/* Reads and writes `live` of VL points starting at point i. */
SIMD_INLINE void grad_some(const rqs_grad_args *g, bool by_y, int64_t i, int64_t live) {
    const rqs_args *a = &g->map;
    const bool whole = live == VL;
    const size_t bytes = (size_t)live * sizeof(float);
    float y[VL] = {0}, G[VL] = {0}, H[VL] = {0}, rows[VL * COLS_MAX];
    vf lanes[COLS_MAX];
    memcpy(y, a->y + i, bytes);
    if (g->up) memcpy(G, g->up + i, bytes);
    if (g->up_log) memcpy(H, g->up_log + i, bytes);
    if (!whole) {
        memset(rows, 0, VL * (size_t)a->ldr * sizeof(float));
        memcpy(rows, a->raw + i * a->ldr, bytes * (size_t)a->ldr);
    }
    const float *raw = whole ? a->raw + i * a->ldr : rows;
    float gy[VL];
    vstore(gy, grad_block(a, by_y, y, raw, vload(G), vload(H), lanes));
    if (g->gy) put(g->gy + i, gy, live, g->acc_y);
    if (g->glogdet) put(g->glogdet + i, H, live, g->acc_logdet);
    if (!g->graw) return;
    float *to = g->graw + i * a->ldr;
    from_lanes(lanes, a->ldr, whole && !g->acc_raw ? to : rows, a->ldr);
    if (!whole || g->acc_raw) put(to, rows, live * a->ldr, g->acc_raw);
}

SIMD_INLINE void grad_all(const rqs_grad_args *g, bool by_y) {
    for (int64_t i = 0; i < g->map.rows; i += VL)
        grad_some(g, by_y, i, g->map.rows - i < VL ? g->map.rows - i : VL);
}

void ISA(cpu_rqs_grad)(const rqs_grad_args *g) {
    if (g->map.by_y)
        grad_all(g, true);
    else
        grad_all(g, false);
}
