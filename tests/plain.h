/* plain.h: networks of a lab's model in double precision and plain loops, from their definitions:
 * to compare recorded graphs with. Widths are small and fixed. */
#ifndef MNP_TESTS_PLAIN_H
#define MNP_TESTS_PLAIN_H

#include "lab.h"

enum { PLAIN_WIDTH = 16, PLAIN_FEATURES = 16, PLAIN_POINTS = 24 };

/* out += in W for the weight of this name. */
__attribute__((unused)) static void plain_add(const lab *l, const char *name, const double *in,
                                              double *out) {
    const param *w = lab_param(l, name);
    CHECK(w != NULL);
    for (int32_t r = 0; w && r < w->rows; r++)
        for (int32_t c = 0; c < w->cols; c++)
            out[c] += in[r] * l->w[w->offset + (int64_t)r * w->ld + c];
}

__attribute__((unused)) static void plain_add_to(const lab *l, const char *name, const char *suffix,
                                                 const double *in, double *out) {
    char path[128];
    snprintf(path, sizeof path, "%.80s.%.40s", name, suffix);
    plain_add(l, path, in, out);
}

__attribute__((unused)) static void plain_layer(const lab *l, const char *name, const double *in,
                                                int width, bool relu, double *out) {
    const double one = 1;
    for (int c = 0; c < width; c++) out[c] = 0;
    plain_add_to(l, name, "w", in, out);
    plain_add_to(l, name, "b", &one, out);
    for (int c = 0; relu && c < width; c++) out[c] = fmax(out[c], 0);
}

/* Cosines, sines, and (with_x) x itself, of F frequencies and X inputs. */
__attribute__((unused)) static void plain_features(const lab *l, const double *x, int F, int X,
                                                   bool with_x, double *phi) {
    const param *freq = lab_param(l, "features.freq");
    for (int f = 0; f < F; f++) {
        double angle = 0;
        for (int c = 0; c < X; c++) angle += l->w[freq->offset + (int64_t)f * freq->ld + c] * x[c];
        phi[f] = cos(2 * M_PI * angle);
        phi[F + f] = sin(2 * M_PI * angle);
    }
    for (int c = 0; with_x && c < X; c++) phi[2 * F + c] = x[c];
}

/* ---- attention from a point to the context (model/attend.h) ---------------------------------- */

typedef struct plain_tokens {
    const char *prefix;
    int width, heads, blocks;
} plain_tokens;

__attribute__((unused)) static const char *plain_name(const plain_tokens *o, char path[64],
                                                      const char *name) {
    snprintf(path, 64, "%s%s", o->prefix, name);
    return path;
}

/* y NULL: a target. */
__attribute__((unused)) static void plain_token(const lab *l, const plain_tokens *o,
                                                const double *phi, const double *y, double *out) {
    double h[PLAIN_WIDTH] = {0};
    const double one = 1;
    char path[64];
    plain_name(o, path, "token.0");
    plain_add_to(l, path, "wx", phi, h);
    plain_add_to(l, path, "b", &one, h);
    if (y) plain_add_to(l, path, "wy", y, h);
    if (y) plain_add_to(l, path, "wc", &one, h);
    for (int c = 0; c < o->width; c++) h[c] = fmax(h[c], 0);
    plain_layer(l, plain_name(o, path, "token.1"), h, o->width, false, out);
}

__attribute__((unused)) static void plain_norm(const lab *l, const char *name, int D,
                                               const double *h, double *out) {
    double mean = 0, var = 0, gain[PLAIN_WIDTH] = {0}, shift[PLAIN_WIDTH] = {0};
    const double one = 1;
    for (int c = 0; c < D; c++) mean += h[c] / D;
    for (int c = 0; c < D; c++) var += (h[c] - mean) * (h[c] - mean) / D;
    plain_add_to(l, name, "gain", &one, gain);
    plain_add_to(l, name, "shift", &one, shift);
    for (int c = 0; c < D; c++) out[c] = (h[c] - mean) / sqrt(var + 1e-5) * gain[c] + shift[c];
}

/* h (D) after block k, with keys and values kv (m, 2 D). */
__attribute__((unused)) static void plain_block(const lab *l, const plain_tokens *o, int k,
                                                const double (*kv)[2 * PLAIN_WIDTH], int m,
                                                double *h) {
    const int D = o->width, W = D / o->heads;
    char name[32], path[64];
    double normed[PLAIN_WIDTH] = {0}, q[PLAIN_WIDTH], a[PLAIN_WIDTH] = {0}, u[2 * PLAIN_WIDTH],
           back[PLAIN_WIDTH];
    snprintf(name, sizeof name, "%sblock.%d", o->prefix, k);
    snprintf(path, sizeof path, "%s.norm0", name);
    plain_norm(l, path, D, h, normed);
    snprintf(path, sizeof path, "%s.q", name);
    plain_layer(l, path, normed, D, false, q);
    for (int c = 0; c < D; c++) {
        double sum = 0, all = 0;
        for (int j = 0; j < m; j++) {
            double dot = 0;
            for (int e = c / W * W; e < (c / W + 1) * W; e++) dot += q[e] * kv[j][e];
            all += exp(dot / sqrt(D)), sum += exp(dot / sqrt(D)) * kv[j][D + c];
        }
        a[c] = q[c] + (m ? sum / all : 0);
    }
    snprintf(path, sizeof path, "%s.out", name);
    plain_layer(l, path, a, D, false, back);
    for (int c = 0; c < D; c++) h[c] += back[c];
    snprintf(path, sizeof path, "%s.norm1", name);
    plain_norm(l, path, D, h, normed);
    snprintf(path, sizeof path, "%s.hidden", name);
    plain_layer(l, path, normed, 2 * D, true, u);
    snprintf(path, sizeof path, "%s.onto", name);
    plain_layer(l, path, u, D, false, back);
    for (int c = 0; c < D; c++) h[c] += back[c];
}

/* What point i is told, of features phi and the context's m points. */
__attribute__((unused)) static void plain_told(const lab *l, const plain_tokens *o,
                                               const double (*phi)[PLAIN_FEATURES], const double *y,
                                               int m, int i, double *told) {
    double context[PLAIN_POINTS][PLAIN_WIDTH], kv[PLAIN_POINTS][2 * PLAIN_WIDTH], h[PLAIN_WIDTH],
        normed[PLAIN_WIDTH] = {0};
    char path[64];
    for (int j = 0; j < m; j++) plain_token(l, o, phi[j], y + j, context[j]);
    plain_token(l, o, phi[i], NULL, h);
    for (int k = 0; k < o->blocks; k++) {
        for (int j = 0; j < m; j++) {
            snprintf(path, sizeof path, "%sblock.%d.norm0", o->prefix, k);
            plain_norm(l, path, o->width, context[j], normed);
            snprintf(path, sizeof path, "%sblock.%d.kv", o->prefix, k);
            plain_layer(l, path, normed, 2 * o->width, false, kv[j]);
        }
        plain_block(l, o, k, kv, m, h);
        for (int j = 0; j < m; j++) plain_block(l, o, k, kv, m, context[j]);
    }
    plain_norm(l, plain_name(o, path, "norm"), o->width, h, told);
}

#endif
