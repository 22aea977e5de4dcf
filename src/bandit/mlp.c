/* mlp.c: see mlp.h. The products are the CPU backend's kernels, so a row's bits do not depend on
 * the rows beside it. */
#include "bandit/mlp.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

static int64_t padded(int64_t columns) {
    return (columns + 15) / 16 * 16;
}

mlp mlp_make(int layers, int32_t inputs, int32_t hidden, int32_t outputs) {
    mlp net = {.layers = layers};
    for (int l = 0; l <= layers; l++) {
        net.width[l] = l == 0 ? inputs : l == layers ? outputs : hidden;
        net.ld[l] = padded(net.width[l]);
    }
    for (int l = 0; l < layers; l++) {
        net.weight[l] = net.words;
        net.bias[l] = net.words + net.width[l] * net.ld[l + 1];
        net.words = net.bias[l] + net.ld[l + 1];
    }
    return net;
}

void mlp_init(const mlp *net, uint64_t seed, uint32_t stream, float *weights) {
    rng_stream s = rng_stream_make((rng_key){seed}, RNG_INIT, stream);
    memset(weights, 0, (size_t)net->words * sizeof *weights);
    for (int l = 0; l < net->layers; l++) {
        double scale = sqrt(2.0 / net->width[l]) * (l == net->layers - 1 ? 0.1 : 1);
        for (int32_t i = 0; i < net->width[l]; i++)
            for (int32_t j = 0; j < net->width[l + 1]; j++)
                weights[net->weight[l] + i * net->ld[l + 1] + j] = (float)(scale * rng_normal(&s));
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

mnp_status mlp_pass_create(env *e, const mlp *net, int64_t rows, mlp_pass *p) {
    *p = (mlp_pass){.e = e, .net = net, .kernels = cpu_kernels_best(NULL), .rows = rows};
    int64_t largest = 0;
    bool whole = true;
    for (int l = 0; l <= net->layers; l++) {
        size_t count = (size_t)(rows * net->ld[l]);
        p->h[l] = env_alloc(e, count, sizeof(float), "a network's activations");
        p->g[l] = env_alloc(e, count, sizeof(float), "a network's gradients");
        whole = whole && p->h[l] && p->g[l];
        if (l > 0 && net->width[l] * net->ld[l - 1] > largest)
            largest = net->width[l] * net->ld[l - 1];
    }
    p->turned = env_alloc(e, (size_t)largest, sizeof(float), "a network's transposed weights");
    if (whole && p->turned) return MNP_OK;
    mlp_pass_free(p);
    return MNP_ENOMEM;
}

void mlp_pass_free(mlp_pass *p) {
    if (!p->e) return;
    for (int l = 0; l <= MLP_LAYERS_MAX; l++) {
        env_free(p->e, p->h[l]);
        env_free(p->e, p->g[l]);
    }
    env_free(p->e, p->turned);
    *p = (mlp_pass){0};
}

void mlp_forward(mlp_pass *p, const float *weights, int64_t n) {
    const mlp *net = p->net;
    for (int l = 0; l < net->layers; l++) {
        gemm_epilogue to = {.bias = weights + net->bias[l], .relu = l < net->layers - 1};
        p->kernels->gemm_nn(n, net->width[l], net->width[l + 1], p->h[l], net->ld[l],
                            weights + net->weight[l], net->ld[l + 1], p->h[l + 1], net->ld[l + 1],
                            &to);
    }
}

void mlp_backward(mlp_pass *p, const float *weights, int64_t n, float *gradient) {
    const mlp *net = p->net;
    const cpu_kernels *k = p->kernels;
    for (int l = net->layers - 1; l >= 0; l--) {
        int32_t in = net->width[l], out = net->width[l + 1];
        int64_t ld_in = net->ld[l], ld_out = net->ld[l + 1];
        k->gemm_tn(n, in, out, p->h[l], ld_in, p->g[l + 1], ld_out, gradient + net->weight[l],
                   ld_out);
        k->colsum(n, out, p->g[l + 1], ld_out, gradient + net->bias[l]);
        if (l == 0) break;
        gemm_epilogue plain = {0};
        k->transpose(in, out, weights + net->weight[l], ld_out, p->turned, ld_in);
        k->gemm_nn(n, out, in, p->g[l + 1], ld_out, p->turned, ld_in, p->g[l], ld_in, &plain);
        k->relu_grad(n * ld_in, p->h[l], p->g[l], NULL, false);
    }
}

/* ---- Adam ------------------------------------------------------------------------------------ */

mnp_status mlp_adam_create(env *e, int64_t words, mlp_adam *a) {
    *a = (mlp_adam){.words = words};
    a->m = env_alloc(e, (size_t)words, sizeof *a->m, "an optimiser's moments");
    a->v = env_alloc(e, (size_t)words, sizeof *a->v, "an optimiser's moments");
    if (a->m && a->v) return MNP_OK;
    mlp_adam_free(e, a);
    return MNP_ENOMEM;
}

void mlp_adam_free(env *e, mlp_adam *a) {
    env_free(e, a->m);
    env_free(e, a->v);
    *a = (mlp_adam){0};
}

void mlp_adam_step(mlp_adam *a, double rate, double clip, const float *gradient, float *weights) {
    const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    double norm = 0;
    for (int64_t i = 0; i < a->words; i++) norm += (double)gradient[i] * (double)gradient[i];
    norm = sqrt(norm);
    if (!isfinite(norm)) return; /* a bad batch moves nothing */
    double scale = norm > clip ? clip / norm : 1;
    a->step++;
    double unbias1 = 1 - pow(beta1, (double)a->step), unbias2 = 1 - pow(beta2, (double)a->step);
    for (int64_t i = 0; i < a->words; i++) {
        double g = scale * (double)gradient[i];
        double m = beta1 * (double)a->m[i] + (1 - beta1) * g;
        double v = beta2 * (double)a->v[i] + (1 - beta2) * g * g;
        a->m[i] = (float)m;
        a->v[i] = (float)v;
        weights[i] -= (float)(rate * (m / unbias1) / (sqrt(v / unbias2) + eps));
    }
}
