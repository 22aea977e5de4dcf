/* minimal.c: a whole Markov Neural Process in one file of plain C, to be read from top to bottom.
 *
 *     cc -O2 examples/minimal.c -o minimal -lm && ./minimal
 *     ./minimal 500                      fewer training steps (default 3000, about a minute)
 *     ./minimal 3000 my.safetensors      and keep it; `mnp plot my.safetensors --out my.svg`
 *
 * It learns what increasing curves look like. Shown a few points of a new curve, it then says which
 * curves fit them. It uses none of the library, and computes the same: tests/golden/test_minimal.c
 * compares loss and gradients with those of the library's model
 *
 *     kind=mnp T=3 transition=rqs encoder=deepset rff=8 d_z=8 d_r=16 enc_width=24 ds_layers=2
 *     head_hidden=16 head_layers=1 flow_hidden=24 flow_layers=2 bins=6
 *
 * THE MODEL (Xu, Dupont, Maertens, Rainforth, Teh 2023). A function is drawn by pushing independent
 * normal numbers, one per point, through T random maps:
 *
 *     y_i^(0) ~ N(0, 1),     y_i^(t) = F_t(y_i^(t-1); x_i, z_t)  for t = 1 .. T,     y_i = y_i^(T)
 *
 * Each F_t is an increasing curve. The latents z_1 .. z_T are shared by all points: they make the
 * points one function. The maps that the networks describe go the other way, G_t = F_t^-1, from the
 * data to the noise. Given z a point has the density (change of variables)
 *
 *     log p(y | x, z) = log N(y^(0); 0, 1) + sum_t log dG_t/dy^(t)                            (1)
 *
 * INFERENCE. Which z belong to a set of points? A network walks from t = T down to 1. It sums up
 * the set {(x_i, y_i^(t))} in a vector r_t that does not depend on their order, and proposes
 *
 *     q(z_t | ...) = N(mu_t(r_t, z_{t+1}), sigma_t(r_t, z_{t+1})^2),        z_{T+1} = 0 (2)
 *
 * draws z_t, and moves every point one step towards the noise: y^(t-1) = G_t(y^(t); x, z_t).
 *
 * TRAINING. Of n points the first m are the context C; D are all n. With z drawn from q_D,
 *
 *     ELBO = sum_{i in D} log p(y_i | x_i, z) - sum_t KL(q_D(z_t) || q_C(z_t))                (3)
 *
 * is, in the mean, a lower bound of the log-density that the model predicts from the context. The
 * loss of a function is -ELBO / n. Its gradient is worked out by hand below, and Adam follows it.
 * docs/dev/math.md derives all of this. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

enum {
    T = 3,           /* Markov steps                                  */
    FREQS = 8,       /* random frequencies                            */
    F = 2 * FREQS,   /* features phi(x): their cosines, then sines    */
    DZ = 8,          /* width of a latent z_t                         */
    DR = 16,         /* width of a summary r_t                        */
    ENC = 24,        /* width of the encoder                          */
    HEAD = 16,       /* hidden width of mu_t and sigma_t              */
    FLOW = 24,       /* hidden width of the networks that make G_t    */
    K = 6,           /* bins of a spline                              */
    RAW = 3 * K - 1, /* numbers that describe it                      */
    N = 40,          /* most points of a function                     */
    KNOTS = 32,      /* most knots of a curve it is drawn from        */
    DRAWS = 199,     /* draws that make a prediction                  */
    WIDTH = 24,      /* the widest layer: input, hidden or output     */
    LAYERS = 3,      /* most layers of a network                      */
    BATCH = 16,      /* functions in a training step                  */
    TENSORS = 64,    /* of the model, at most                         */
    WEIGHTS = 9891   /* numbers in them, all together                 */
};
static const double PI = 3.14159265358979323846;
static const double BOUND = 5; /* a spline acts on [-BOUND, BOUND], outside it is y itself  */
static const double LEAST_BIN = 1e-3; /* least size of a bin, as a share of the interval */
static const double LEAST_SLOPE = 1e-3;
static const double LEAST_SIGMA = 0.05;

/* ---- random numbers -------------------------------------------------------------------------- */

typedef uint64_t dice;

/* Uniform in (0, 1): splitmix64. */
static double uniform(dice *d) {
    uint64_t v = *d += 0x9e3779b97f4a7c15u;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return ((double)((v ^ (v >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double normal(dice *d) { /* Box and Muller */
    double radius = sqrt(-2 * log(uniform(d)));
    return radius * cos(2 * PI * uniform(d));
}

static double exponential(dice *d) {
    return -log(uniform(d));
}

/* ---- data: increasing curves ----------------------------------------------------------------- */

/* One function of n points, in no order; the first m are the context. */
typedef struct function {
    int n, m;
    double x[N], y[N];
} function;

/* A curve through knots: x and y rise, `slope` is its slope there. */
typedef struct curve {
    int knots;
    double x[KNOTS], y[KNOTS], slope[KNOTS];
} curve;

/* About five knots at random places in [-2, 2], each higher than the one before by a Gamma(2). The
 * slope at an inner knot is the harmonic mean of the two secants beside it (weighted by their
 * lengths), which keeps the cubics between them increasing: Fritsch and Butland (1984). */
static curve curve_draw(dice *d) {
    curve c = {.knots = 2};
    double gap[KNOTS], secant[KNOTS], total = 0, at = -2, height = 0;
    for (double p = uniform(d); p > exp(-5.0) && c.knots < KNOTS; p *= uniform(d)) c.knots++;
    for (int k = 0; k + 1 < c.knots; k++) total += gap[k] = exponential(d) + 0.01;
    for (int k = 0; k < c.knots; k++) {
        c.x[k] = at;
        c.y[k] = height += exponential(d) + exponential(d);
        if (k > 0) secant[k - 1] = (c.y[k] - c.y[k - 1]) / (c.x[k] - c.x[k - 1]);
        if (k + 1 < c.knots) at += gap[k] *= 4 / total;
    }
    for (int k = 0; k < c.knots; k++) {
        bool end = k == 0 || k + 1 == c.knots;
        double before = end ? 1 : gap[k - 1], after = end ? 1 : gap[k];
        double one = 2 * after + before, two = after + 2 * before;
        c.slope[k] = end ? secant[k == 0 ? 0 : k - 1]
                         : (one + two) / (one / secant[k - 1] + two / secant[k]);
    }
    return c;
}

static double curve_at(const curve *c, double x) {
    int k = 0;
    while (k + 2 < c->knots && c->x[k + 1] <= x) k++;
    double h = c->x[k + 1] - c->x[k], u = (x - c->x[k]) / h, v = 1 - u;
    return v * v * ((1 + 2 * u) * c->y[k] + u * h * c->slope[k]) +
           u * u * ((1 + 2 * v) * c->y[k + 1] - v * h * c->slope[k + 1]);
}

/* Values are mapped onto [-1, 1], plus a little noise. No context at all in a 20th of the cases. */
static void function_draw(dice *d, function *f) {
    curve c = curve_draw(d);
    double lo = curve_at(&c, -2), hi = curve_at(&c, 2);
    f->n = N;
    f->m = uniform(d) < 0.05 ? 0 : 2 + (int)(19 * uniform(d));
    for (int i = 0; i < N; i++) {
        f->x[i] = 4 * uniform(d) - 2;
        f->y[i] = 2 * (curve_at(&c, f->x[i]) - lo) / (hi - lo) - 1 + 0.01 * normal(d);
    }
}

/* ---- weights --------------------------------------------------------------------------------- */

/* All weights lie in one block of numbers. A tensor is a named part of it, with the library's
 * name; a layer on a concatenation [a, b] has one tensor for each part, one after the other. */
typedef struct tensor {
    char name[16];
    int rows, cols, at;
} tensor;

typedef struct layer {
    int in, out, w, b; /* W (in, out) and b (out) begin there in the block */
} layer;

/* Layers with a ReLU between them; `relu`: after the last one too. */
typedef struct mlp {
    int layers;
    bool relu;
    layer at[LAYERS];
} mlp;

typedef struct net {
    int tensors, words;
    tensor list[TENSORS];
    int freq, empty;                          /* frequencies (FREQS); r of the empty set (DR) */
    mlp point, sum;                           /* the set encoder                              */
    mlp mu[T + 1], sigma[T + 1], flow[T + 1]; /* of step t = 1 .. T                           */
    double w[WEIGHTS], grad[WEIGHTS];         /* weights, and the gradient of the loss        */
    double m1[WEIGHTS], m2[WEIGHTS];          /* Adam's moments                               */
} net;

static int net_add(net *p, const char *name, const char *part, int rows, int cols) {
    tensor *t = &p->list[p->tensors++];
    *t = (tensor){.rows = rows, .cols = cols, .at = p->words};
    snprintf(t->name, sizeof t->name, "%s%s%s", name, *part ? "." : "", part);
    p->words += rows * cols;
    return t->at;
}

/* Uniform in +-gain sqrt(6 / (in + out)): Xavier. */
static void start(double *w, int in, int out, double gain, dice *d) {
    double half = gain * sqrt(6.0 / (in + out));
    for (int k = 0; k < in * out; k++) w[k] = half * (2 * uniform(d) - 1);
}

/* A layer on [a, b], of widths in_a and in_b; without b where in_b is 0. Biases begin at 0. */
static void layer_add(net *p, mlp *f, const char *name, const char *a, int in_a, const char *b,
                      int in_b, int out, double gain, dice *d) {
    layer *l = &f->at[f->layers++];
    *l = (layer){.in = in_a + in_b, .out = out, .w = net_add(p, name, a, in_a, out)};
    if (in_b > 0) net_add(p, name, b, in_b, out);
    l->b = net_add(p, name, "b", 1, out);
    start(p->w + l->w, l->in, out, gain, d);
}

/* The top step T has no z_{T+1}, so its heads have no weights for one. The last layer of a flow
 * begins small: its maps are then nearly the same for all x and z. */
static void step_add(net *p, int t, dice *d) {
    char name[16];
    for (int head = 0; head < 2; head++) {
        mlp *f = head ? &p->sigma[t] : &p->mu[t];
        snprintf(name, sizeof name, "%s.%d.0", head ? "sigma" : "mu", t);
        layer_add(p, f, name, "wr", DR, "wz", t < T ? DZ : 0, HEAD, 1, d);
        snprintf(name, sizeof name, "%s.%d.1", head ? "sigma" : "mu", t);
        layer_add(p, f, name, "w", HEAD, "", 0, DZ, 1, d);
    }
    for (int k = 0; k < LAYERS; k++) {
        bool last = k == LAYERS - 1;
        snprintf(name, sizeof name, "flow.%d.%d", t, k);
        layer_add(p, &p->flow[t], name, k ? "w" : "wx", k ? FLOW : F, "wz", k ? 0 : DZ,
                  last ? RAW : FLOW, last ? 0.1 : 1, d);
    }
}

static void net_make(net *p, dice *d) {
    *p = (net){.sum = {.relu = true}};
    p->freq = net_add(p, "features.freq", "", FREQS, 1);
    p->empty = net_add(p, "enc.empty", "", 1, DR);
    for (int k = 0; k < FREQS; k++) p->w[p->freq + k] = normal(d);
    start(p->w + p->empty, 1, DR, 1, d);
    layer_add(p, &p->point, "enc.0", "wphi", F, "wy", 1, ENC, 1, d);
    layer_add(p, &p->point, "enc.1", "w", ENC, "", 0, ENC, 1, d);
    layer_add(p, &p->point, "enc.2", "w", ENC, "", 0, ENC, 1, d);
    layer_add(p, &p->sum, "enc.r", "w", ENC, "", 0, DR, 1, d);
    for (int t = 1; t <= T; t++) step_add(p, t, d);
}

/* ---- networks, forward and in reverse -------------------------------------------------------- */

/* What a network computed on some rows: h[0] is its input, h[layers] its output; and the gradient
 * of the loss with respect to each of these numbers. */
typedef struct trace {
    double h[LAYERS + 1][N][WIDTH], g[LAYERS + 1][N][WIDTH];
} trace;

/* h' = h W + b, then ReLU where it is asked for. */
static void forward(const mlp *f, const double *w, int rows, trace *a) {
    for (int k = 0; k < f->layers; k++) {
        const layer *l = &f->at[k];
        bool relu = k + 1 < f->layers || f->relu;
        for (int i = 0; i < rows; i++) {
            double *to = a->h[k + 1][i];
            for (int j = 0; j < l->out; j++) to[j] = w[l->b + j];
            for (int c = 0; c < l->in; c++)
                for (int j = 0; j < l->out; j++) to[j] += a->h[k][i][c] * w[l->w + c * l->out + j];
            for (int j = 0; j < l->out; j++) to[j] = relu ? fmax(to[j], 0) : to[j];
        }
    }
}

/* One row of one layer, g' being the gradient of its output: the gradients of W, b and the input
 * are h' g'^T, g' and W g'. A ReLU lets through what its output was positive for. */
static void layer_reverse(const layer *l, const double *w, double *grad, bool relu, const double *h,
                          const double *out, double *g_out, double *g_in) {
    for (int j = 0; j < l->out; j++) {
        if (relu && !(out[j] > 0)) g_out[j] = 0;
        grad[l->b + j] += g_out[j];
    }
    for (int c = 0; c < l->in; c++) {
        const double *row = w + l->w + c * l->out;
        double *grad_row = grad + l->w + c * l->out, sum = 0;
        for (int j = 0; j < l->out; j++) {
            sum += row[j] * g_out[j];
            grad_row[j] += h[c] * g_out[j];
        }
        g_in[c] = sum;
    }
}

/* From g[layers] to g[0]; gradients of weights are added to `grad`. */
static void reverse(const mlp *f, const double *w, double *grad, int rows, trace *a) {
    for (int k = f->layers - 1; k >= 0; k--)
        for (int i = 0; i < rows; i++)
            layer_reverse(&f->at[k], w, grad, k + 1 < f->layers || f->relu, a->h[k][i],
                          a->h[k + 1][i], a->g[k + 1][i], a->g[k][i]);
}

/* ---- the map of one step: a monotone rational-quadratic spline ------------------------------- */

/* An increasing curve on [-BOUND, BOUND] with K bins, knots (a_k, b_k) and slopes d_k there
 * (Gregory and Delbourgo 1982; as a flow Durkan et al. 2019). It is made from RAW numbers: K for
 * the widths, K for the heights, K - 1 for the slopes at inner knots. */
typedef struct spline {
    double a[K + 1], b[K + 1], d[K + 1];
    double share_a[K], share_b[K]; /* softmax of the raw widths and heights */
    double d_raw[K + 1];           /* derivative of a slope by its raw number */
} spline;

static double sigmoid(double v) {
    return v < 0 ? exp(v) / (1 + exp(v)) : 1 / (1 + exp(-v));
}

/* width_j = 2 BOUND (least + (1 - K least) softmax_j(raw)); knots are their running sum. */
static void axis_make(const double raw[K], double share[K], double knot[K + 1]) {
    double top = raw[0], sum = 0, at = 0;
    for (int j = 1; j < K; j++) top = fmax(top, raw[j]);
    for (int j = 0; j < K; j++) sum += share[j] = exp(raw[j] - top);
    knot[0] = -BOUND;
    for (int j = 0; j < K; j++) {
        share[j] /= sum;
        at += 2 * BOUND * (LEAST_BIN + (1 - K * LEAST_BIN) * share[j]);
        knot[j + 1] = at - BOUND;
    }
    knot[K] = BOUND;
}

static void spline_make(const double raw[RAW], spline *f) {
    axis_make(raw, f->share_a, f->a);
    axis_make(raw + K, f->share_b, f->b);
    f->d[0] = f->d[K] = 1; /* it joins the identity outside */
    for (int k = 1; k < K; k++) {
        double v = raw[2 * K + k - 1];
        f->d[k] = LEAST_SLOPE + fmax(v, 0) + log1p(exp(-fabs(v))); /* softplus */
        f->d_raw[k] = sigmoid(v);
    }
}

/* Bin k, the place theta in it, and what the formulas share. */
typedef struct place {
    int k;
    double w, h, s, d0, d1, theta, p, A, D, M;
} place;

static place bin_of(const spline *f, const double knot[K + 1], double v) {
    place q = {.k = 0};
    while (q.k + 1 < K && knot[q.k + 1] <= v) q.k++;
    q.w = f->a[q.k + 1] - f->a[q.k];
    q.h = f->b[q.k + 1] - f->b[q.k];
    q.s = q.h / q.w;
    q.d0 = f->d[q.k];
    q.d1 = f->d[q.k + 1];
    return q;
}

static place place_of(const spline *f, double y) {
    place q = bin_of(f, f->a, y);
    double u = q.theta = (y - f->a[q.k]) / q.w, v = 1 - u;
    q.p = u * v;
    q.A = q.s * u * u + q.d0 * q.p;
    q.D = q.s * (1 - 2 * q.p) + (q.d0 + q.d1) * q.p;
    q.M = q.d1 * u * u + 2 * q.s * q.p + q.d0 * v * v;
    return q;
}

/* G(y) and log G'(y): from the data towards the noise. */
static double to_noise(const spline *f, double y, double *log_slope) {
    *log_slope = 0;
    if (fabs(y) > BOUND) return y;
    place q = place_of(f, y);
    *log_slope = 2 * log(q.s) + log(q.M) - 2 * log(q.D);
    return f->b[q.k] + q.h * q.A / q.D;
}

/* F(v) = G^-1(v): from the noise towards the data, the root of a quadratic in theta. */
static double to_data(const spline *f, double v) {
    if (fabs(v) > BOUND) return v;
    place q = bin_of(f, f->b, v);
    double e = v - f->b[q.k];
    double beta = q.h * q.d0 - e * (q.d0 + q.d1 - 2 * q.s);
    double alpha = q.h * q.s - beta, gamma = -q.s * e;
    double root = sqrt(fmax(beta * beta - 4 * alpha * gamma, 0));
    double theta = beta >= 0 ? 2 * gamma / (-beta - root) : (root - beta) / (2 * alpha);
    return f->a[q.k] + fmin(fmax(theta, 0), 1) * q.w;
}

/* A width moves its own bin (`size`) or, before it, its corner; then through the softmax. */
static void axis_reverse(int k, double corner, double size, const double share[K], double g[K]) {
    double mean = 0;
    for (int j = 0; j < K; j++) {
        double moved = j == k ? size : j < k ? corner : 0;
        g[j] = 2 * BOUND * (1 - K * LEAST_BIN) * moved;
        mean += share[j] * g[j];
    }
    for (int j = 0; j < K; j++) g[j] = share[j] * (g[j] - mean);
}

/* P and Q are the gradients of the loss by G(y) and by log G'(y). Returns the one by y and puts the
 * one by the raw numbers into g. The partial derivatives: docs/dev/math.md, section 4. */
static double spline_reverse(const spline *f, double y, double P, double Q, double g[RAW]) {
    for (int j = 0; j < RAW; j++) g[j] = 0;
    if (fabs(y) > BOUND) return P;
    place q = place_of(f, y);
    double s = q.s, u = q.theta, v = 1 - u, p = q.p, D = q.D, M = q.M;
    double ratio = q.A / D, ratio_s = (u * u - ratio * (1 - 2 * p)) / D;
    double slope = s * s * M / (D * D);
    double L_u = (2 * q.d1 * u + 2 * s * (1 - 2 * u) - 2 * q.d0 * v) / M -
                 2 * (q.d0 + q.d1 - 2 * s) * (1 - 2 * u) / D;
    double L_s = 2 / s + 2 * p / M - 2 * (1 - 2 * p) / D;
    double by_y = P * slope + Q * L_u / q.w;
    double by_w = P * (-u * slope - s * s * ratio_s) - Q * (u * L_u + s * L_s) / q.w;
    double by_h = P * (ratio + s * ratio_s) + Q * L_s / q.w;
    double by_d0 = P * q.h * p * (1 - ratio) / D + Q * (v * v / M - 2 * p / D);
    double by_d1 = -P * q.h * ratio * p / D + Q * (u * u / M - 2 * p / D);
    axis_reverse(q.k, -by_y, by_w, f->share_a, g); /* the corner a_k moves against y */
    axis_reverse(q.k, P, by_h, f->share_b, g + K);
    if (q.k > 0) g[2 * K + q.k - 1] += by_d0 * f->d_raw[q.k];
    if (q.k + 1 < K) g[2 * K + q.k] += by_d1 * f->d_raw[q.k + 1];
    return by_y;
}

/* ---- the walk from the data to the noise ----------------------------------------------------- */

/* phi(x) = [cos 2 pi f_1 x .., sin 2 pi f_1 x ..]: rapid changes become easy to express. */
static void features(const net *p, double x, double phi[F]) {
    for (int k = 0; k < FREQS; k++) {
        double turns = p->w[p->freq + k] * x;
        phi[k] = cos(2 * PI * turns);
        phi[FREQS + k] = sin(2 * PI * turns);
    }
}

/* Rows of everything that sums up a set: 0 for all points D, 1 for the context C. */
enum { ALL, CONTEXT, ROWS };

/* What step t computed, for the reverse pass. */
typedef struct step {
    trace point, sum, mu, sigma, flow;
    double sd[ROWS][DZ], z[DZ], g_z[DZ]; /* standard deviations, the latent, its gradient */
} step;

typedef struct walk {
    double phi[N][F], y[T + 1][N]; /* features of x; y^(t) */
    step at[T + 1];                /* 1 .. T               */
    double loglik, kl;             /* the two parts of (3) */
} walk;

/* r_t of both sets: a network on every point, the mean over the set, a layer on the mean. */
static void summaries(const net *p, const function *f, walk *a, int t) {
    step *s = &a->at[t];
    const int count[ROWS] = {f->n, f->m};
    for (int i = 0; i < f->n; i++) {
        memcpy(s->point.h[0][i], a->phi[i], sizeof a->phi[i]);
        s->point.h[0][i][F] = a->y[t][i];
    }
    forward(&p->point, p->w, f->n, &s->point);
    for (int row = 0; row < ROWS; row++)
        for (int j = 0; j < ENC; j++) {
            double sum = 0;
            for (int i = 0; i < count[row]; i++) sum += s->point.h[LAYERS][i][j];
            s->sum.h[0][row][j] = count[row] ? sum / count[row] : 0;
        }
    forward(&p->sum, p->w, ROWS, &s->sum);
    if (f->m == 0) memcpy(s->sum.h[1][CONTEXT], p->w + p->empty, DR * sizeof *p->w);
}

/* mu_t and sigma_t of both sets: (ROWS, DZ) each. sigma = least + (1 - least) sigmoid(raw). */
static void heads(const net *p, walk *a, int t) {
    step *s = &a->at[t];
    for (int row = 0; row < ROWS; row++) {
        double *in = s->mu.h[0][row];
        memcpy(in, s->sum.h[1][row], DR * sizeof *in);
        if (t < T) memcpy(in + DR, a->at[t + 1].z, DZ * sizeof *in);
        memcpy(s->sigma.h[0][row], in, (DR + DZ) * sizeof *in);
    }
    forward(&p->mu[t], p->w, ROWS, &s->mu);
    forward(&p->sigma[t], p->w, ROWS, &s->sigma);
    for (int row = 0; row < ROWS; row++)
        for (int j = 0; j < DZ; j++)
            s->sd[row][j] = LEAST_SIGMA + (1 - LEAST_SIGMA) * sigmoid(s->sigma.h[2][row][j]);
}

/* KL(N(mu_D, sd_D^2) || N(mu_C, sd_C^2)), summed over the dimensions of z. */
static double divergence(const step *s) {
    double sum = 0;
    for (int j = 0; j < DZ; j++) {
        double q = s->sd[ALL][j], c = s->sd[CONTEXT][j];
        double apart = s->mu.h[2][ALL][j] - s->mu.h[2][CONTEXT][j];
        sum += log(c / q) + (q * q + apart * apart) / (2 * c * c) - 0.5;
    }
    return sum;
}

/* The numbers that make G_t at n places: networks on [phi(x_i), z_t], one spline for each point. */
static void conditioner(const net *p, int t, int n, double phi[][F], const double z[DZ], trace *a) {
    for (int i = 0; i < n; i++) {
        memcpy(a->h[0][i], phi[i], sizeof phi[i]);
        memcpy(a->h[0][i] + F, z, DZ * sizeof *z);
    }
    forward(&p->flow[t], p->w, n, a);
}

/* (2) for t = T .. 1, with z_t = mu_t + sigma_t eps_t from the set `from`, and (1). Returns the
 * loss, -ELBO / n of (3). */
static double walk_down(const net *p, const function *f, int from, const double eps[T + 1][DZ],
                        walk *a) {
    double log_slope;
    spline g;
    a->loglik = a->kl = 0;
    memcpy(a->y[T], f->y, sizeof f->y);
    for (int i = 0; i < f->n; i++) features(p, f->x[i], a->phi[i]);
    for (int t = T; t >= 1; t--) {
        step *s = &a->at[t];
        summaries(p, f, a, t);
        heads(p, a, t);
        for (int j = 0; j < DZ; j++) s->z[j] = s->mu.h[2][from][j] + s->sd[from][j] * eps[t][j];
        a->kl += divergence(s);
        conditioner(p, t, f->n, a->phi, s->z, &s->flow);
        for (int i = 0; i < f->n; i++) {
            spline_make(s->flow.h[LAYERS][i], &g);
            a->y[t - 1][i] = to_noise(&g, a->y[t][i], &log_slope);
            a->loglik += log_slope;
        }
    }
    for (int i = 0; i < f->n; i++) a->loglik -= 0.5 * a->y[0][i] * a->y[0][i] + 0.5 * log(2 * PI);
    return f->n ? -(a->loglik - a->kl) / f->n : 0;
}

/* ---- the reverse pass ------------------------------------------------------------------------ */

/* Gradients of the loss travel the walk backwards, from t = 1 up to T: g_y holds that of y^(t-1)
 * and becomes that of y^(t). Each function undoes one of those above. */

static void reverse_flow(net *p, const function *f, int t, walk *a, double g_y[N]) {
    step *s = &a->at[t];
    spline g;
    for (int i = 0; i < f->n; i++) {
        spline_make(s->flow.h[LAYERS][i], &g);
        g_y[i] = spline_reverse(&g, a->y[t][i], g_y[i], -1.0 / f->n, s->flow.g[LAYERS][i]);
    }
    reverse(&p->flow[t], p->w, p->grad, f->n, &s->flow);
    for (int i = 0; i < f->n; i++)
        for (int j = 0; j < DZ; j++) s->g_z[j] += s->flow.g[0][i][F + j]; /* z_t is in every row */
}

/* z = mu_D + sd_D eps, and the KL, which weighs 1 / n; then through the two heads. */
static void reverse_latent(net *p, const function *f, int t, walk *a, const double eps[DZ]) {
    step *s = &a->at[t];
    double k = 1.0 / f->n, g_sd[ROWS];
    for (int j = 0; j < DZ; j++) {
        double q = s->sd[ALL][j], c = s->sd[CONTEXT][j];
        double apart = s->mu.h[2][ALL][j] - s->mu.h[2][CONTEXT][j];
        s->mu.g[2][ALL][j] = s->g_z[j] + k * apart / (c * c);
        s->mu.g[2][CONTEXT][j] = -k * apart / (c * c);
        g_sd[ALL] = s->g_z[j] * eps[j] + k * (q / (c * c) - 1 / q);
        g_sd[CONTEXT] = k * (1 / c - (q * q + apart * apart) / (c * c * c));
        for (int row = 0; row < ROWS; row++) {
            double part = (s->sd[row][j] - LEAST_SIGMA) / (1 - LEAST_SIGMA); /* the sigmoid */
            s->sigma.g[2][row][j] = g_sd[row] * (1 - LEAST_SIGMA) * part * (1 - part);
        }
    }
    reverse(&p->mu[t], p->w, p->grad, ROWS, &s->mu);
    reverse(&p->sigma[t], p->w, p->grad, ROWS, &s->sigma);
    for (int row = 0; row < ROWS; row++) {
        const double *one = s->mu.g[0][row], *two = s->sigma.g[0][row];
        for (int j = 0; j < DR; j++) s->sum.g[1][row][j] = one[j] + two[j];
        for (int j = 0; j < DZ && t < T; j++) a->at[t + 1].g_z[j] += one[DR + j] + two[DR + j];
    }
}

static void reverse_summaries(net *p, const function *f, step *s, double g_y[N]) {
    const int count[ROWS] = {f->n, f->m};
    if (f->m == 0) /* the context's row was the learned one */
        for (int j = 0; j < DR; j++) {
            p->grad[p->empty + j] += s->sum.g[1][CONTEXT][j];
            s->sum.g[1][CONTEXT][j] = 0;
        }
    reverse(&p->sum, p->w, p->grad, ROWS, &s->sum);
    for (int i = 0; i < f->n; i++)
        for (int j = 0; j < ENC; j++) {
            s->point.g[LAYERS][i][j] = 0;
            for (int row = 0; row < ROWS; row++)
                if (i < count[row]) s->point.g[LAYERS][i][j] += s->sum.g[0][row][j] / count[row];
        }
    reverse(&p->point, p->w, p->grad, f->n, &s->point);
    for (int i = 0; i < f->n; i++) g_y[i] += s->point.g[0][i][F];
}

/* Adds the gradient of the loss of walk_down(.., ALL, eps, a) to p->grad. */
static void walk_reverse(net *p, const function *f, const double eps[T + 1][DZ], walk *a) {
    double g_y[N];
    for (int t = 1; t <= T; t++) memset(a->at[t].g_z, 0, sizeof a->at[t].g_z);
    for (int i = 0; i < f->n; i++) g_y[i] = a->y[0][i] / f->n; /* of the normal density */
    for (int t = 1; t <= T; t++) {
        reverse_flow(p, f, t, a, g_y);
        reverse_latent(p, f, t, a, eps[t]);
        reverse_summaries(p, f, &a->at[t], g_y);
    }
}

/* ---- training -------------------------------------------------------------------------------- */

static void noise_draw(dice *d, double eps[T + 1][DZ]) {
    for (int t = 1; t <= T; t++)
        for (int j = 0; j < DZ; j++) eps[t][j] = normal(d);
}

/* Adam (Kingma and Ba 2015), step k = 0, 1, ..; the frequencies stay as they are. */
static void adam(net *p, int k, double rate) {
    const double beta1 = 0.9, beta2 = 0.999, tiny = 1e-8;
    double c1 = 1 - pow(beta1, k + 1), c2 = 1 - pow(beta2, k + 1);
    for (int i = 0; i < p->words; i++) {
        if (i >= p->freq && i < p->freq + FREQS) continue;
        double g = p->grad[i];
        p->m1[i] = beta1 * p->m1[i] + (1 - beta1) * g;
        p->m2[i] = beta2 * p->m2[i] + (1 - beta2) * g * g;
        p->w[i] -= rate * (p->m1[i] / c1) / (sqrt(p->m2[i] / c2) + tiny);
    }
}

/* One step on BATCH new functions; returns their mean ELBO per point before it. */
static double train_step(net *p, int k, int steps, dice *d, walk *a) {
    double eps[T + 1][DZ], loss = 0;
    function f;
    memset(p->grad, 0, (size_t)p->words * sizeof *p->grad);
    for (int b = 0; b < BATCH; b++) {
        function_draw(d, &f);
        noise_draw(d, eps);
        loss += walk_down(p, &f, ALL, eps, a) / BATCH;
        walk_reverse(p, &f, eps, a);
    }
    for (int i = 0; i < p->words; i++) p->grad[i] /= BATCH;
    int warm = steps / 20 + 1; /* the rate rises for a 20th of the steps, and falls like a cosine */
    double rate = 3e-3 * (k + 1 < warm ? (double)(k + 1) / warm : 1);
    adam(p, k, rate * 0.5 * (1 + cos(PI * k / steps)));
    return -loss;
}

/* Mean ELBO per point of functions that it was not trained on: the same ones at every call. */
static double test_elbo(const net *p, int functions, walk *a) {
    dice d = 99;
    double eps[T + 1][DZ], sum = 0;
    for (int k = 0; k < functions; k++) {
        function f;
        function_draw(&d, &f);
        noise_draw(&d, eps);
        sum -= walk_down(p, &f, ALL, eps, a);
    }
    return sum / functions;
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* One function given f's first m points: z from q_C, then fresh noise pushed through F_1 .. F_T at
 * `count` places x, at most N. */
static void predict(const net *p, const function *f, dice *d, const double *x, int count, double *y,
                    walk *a) {
    function known = *f;
    double eps[T + 1][DZ], phi[N][F];
    spline g;
    known.n = known.m;
    noise_draw(d, eps);
    walk_down(p, &known, CONTEXT, eps, a);
    for (int i = 0; i < count; i++) {
        features(p, x[i], phi[i]);
        y[i] = normal(d);
    }
    for (int t = 1; t <= T; t++) {
        trace *flow = &a->at[t].flow;
        conditioner(p, t, count, phi, a->at[t].z, flow);
        for (int i = 0; i < count; i++) {
            spline_make(flow->h[LAYERS][i], &g);
            y[i] = to_data(&g, y[i]);
        }
    }
}

static int ascending(const void *a, const void *b) {
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

/* 10 %, 50 % and 90 % of DRAWS predictions at each place: quantile (3, count). */
static void quantiles(const net *p, const function *f, dice *d, const double *x, int count,
                      double quantile[3][N], walk *a) {
    static const int rank[3] = {19, 99, 179};
    double draw[N], all[N][DRAWS];
    for (int s = 0; s < DRAWS; s++) {
        predict(p, f, d, x, count, draw, a);
        for (int i = 0; i < count; i++) all[i][s] = draw[i];
    }
    for (int i = 0; i < count; i++) {
        qsort(all[i], DRAWS, sizeof all[i][0], ascending);
        for (int k = 0; k < 3; k++) quantile[k][i] = all[i][rank[k]];
    }
}

/* Of new functions' points outside the context: which share lies between the 10 % and 90 %? */
static double coverage(const net *p, int functions, walk *a) {
    dice d = 77;
    int inside = 0, points = 0;
    for (int k = 0; k < functions; k++) {
        function f;
        double q[3][N];
        function_draw(&d, &f);
        quantiles(p, &f, &d, f.x + f.m, f.n - f.m, q, a);
        for (int i = 0; i < f.n - f.m; i++, points++)
            inside += f.y[f.m + i] >= q[0][i] && f.y[f.m + i] <= q[2][i];
    }
    return (double)inside / points;
}

/* A picture: context points O, other points of the curve *, median -, the 80 % band in dots. */
static void picture(const net *p, walk *a) {
    enum { LINES = 19 };
    char canvas[LINES][2 * N + 1];
    double x[N], q[3][N];
    dice d = 5;
    function f;
    function_draw(&d, &f);
    f.m = 4;
    for (int i = 0; i < N; i++) x[i] = -2 + 4 * (i + 0.5) / N;
    quantiles(p, &f, &d, x, N, q, a);
    for (int r = 0; r < LINES; r++) {
        double hi = 1.35 - 2.7 * r / LINES, lo = 1.35 - 2.7 * (r + 1) / LINES;
        for (int c = 0; c < 2 * N; c++) {
            int i = c / 2;
            bool median = q[1][i] >= lo && q[1][i] < hi, band = q[0][i] < hi && q[2][i] >= lo;
            canvas[r][c] = median ? '-' : band ? '.' : ' ';
        }
        canvas[r][2 * N] = '\0';
        for (int i = N - 1; i >= 0; i--) {
            int c = (int)((f.x[i] + 2) / 4 * 2 * N);
            if (f.y[i] >= lo && f.y[i] < hi) canvas[r][c] = i < f.m ? 'O' : '*';
        }
        puts(canvas[r]);
    }
    puts("O seen by the model   * not seen   - median   . 80 % of its functions lie here");
}

/* ---- a file that the library reads ----------------------------------------------------------- */

/* safetensors: the length of a JSON header, the header, the numbers. docs/dev/formats.md */
static bool save(const net *p, const char *path) {
    static const char options[] =
        "kind=mnp T=3 transition=rqs encoder=deepset rff=8 d_z=8 d_r=16 enc_width=24 ds_layers=2 "
        "head_hidden=16 head_layers=1 flow_hidden=24 flow_layers=2 bins=6";
    char header[8192];
    int used = snprintf(header, sizeof header,
                        "{\"__metadata__\":{\"mnp.format\":\"1\",\"mnp.options\":\"%s\","
                        "\"data\":\"monotonic\"},"
                        "\"scale.x\":{\"dtype\":\"F64\",\"shape\":[2,1],\"data_offsets\":[0,16]},"
                        "\"scale.y\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[16,32]}",
                        options);
    for (int k = 0; k < p->tensors && used < (int)sizeof header - 128; k++) {
        const tensor *t = &p->list[k];
        int from = 32 + 4 * t->at;
        used += snprintf(header + used, 128,
                         ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%d,%d]}",
                         t->name, t->rows, t->cols, from, from + 4 * t->rows * t->cols);
    }
    header[used++] = '}';
    while (used % 8) header[used++] = ' ';
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    const double scale[4] = {0, 1, 0, 1}; /* shift and scale of x, of y: none */
    uint64_t length = (uint64_t)used;     /* little-endian, as most machines have it */
    fwrite(&length, sizeof length, 1, file);
    fwrite(header, 1, (size_t)used, file);
    fwrite(scale, sizeof scale, 1, file);
    for (int i = 0; i < p->words; i++) fwrite(&(float){(float)p->w[i]}, sizeof(float), 1, file);
    bool good = !ferror(file);
    return fclose(file) == 0 && good;
}

/* ---- all of it ------------------------------------------------------------------------------- */

#ifndef MINIMAL_NO_MAIN
int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 3000, show = steps / 20 > 0 ? steps / 20 : 1;
    if (steps < 1 || argc > 3) return puts("usage: minimal [STEPS [MODEL.safetensors]]"), 1;
    net *p = malloc(sizeof *p);
    walk *a = calloc(1, sizeof *a);
    if (!p || !a) return puts("out of memory"), 1;
    dice d = 1;
    double sum = 0;
    net_make(p, &d);
    printf("%d weights; ELBO per point of new functions: %.3f\n", p->words, test_elbo(p, 200, a));
    for (int k = 0; k < steps; k++) {
        sum += train_step(p, k, steps, &d, a) / show;
        if ((k + 1) % show) continue;
        printf("step %5d  ELBO per point %7.3f\n", k + 1, sum);
        fflush(stdout);
        sum = 0;
    }
    printf("ELBO per point of new functions: %.3f\n", test_elbo(p, 200, a));
    printf("their points inside the 80 %% band: %.0f %%\n", 100 * coverage(p, 40, a));
    picture(p, a);
    bool saved = argc < 3 || save(p, argv[2]);
    if (!saved) fprintf(stderr, "%s: cannot write\n", argv[2]);
    free(p);
    free(a);
    return saved ? 0 : 1;
}
#endif
