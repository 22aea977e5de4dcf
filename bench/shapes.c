/* shapes.c: see shapes.h. */
#include "bench/shapes.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"

#define BASE "batch=100 context=2:50"
#define PAPER(name, data, model, train)                                                            \
    { name, "mnp", "paper", data, model, BASE train, 0, false }
#define OF_MODEL(model)    PAPER(model, "rbf", model, "")
#define OF_TRAINING(train) PAPER(train, "rbf", "", " " train)
#define OF_POINTS(n)       PAPER("points=" n, "rbf:points=" n, "", "")
#define PREDICTOR_ROW(model)                                                                       \
    { model, model, "paper", "rbf", "", BASE, 0, false }

/* Add a line for a new option; the names are what --shapes takes. */
static const shape table[] = {
    PAPER("paper", "rbf", "", ""),
    OF_MODEL("enc_width=32"),
    OF_MODEL("enc_width=96"),
    OF_MODEL("enc_width=128"),
    OF_MODEL("enc_width=256"),
    PAPER("heads=8", "rbf", "enc_width=128 heads=8", ""),
    OF_POINTS("256"),
    OF_POINTS("512"),
    OF_POINTS("1024"),
    OF_TRAINING("context=2:100"),
    OF_MODEL("T=14"),
    OF_MODEL("d_z=64"),
    OF_MODEL("flow_hidden=256"),
    OF_MODEL("encoder=isab"),
    OF_MODEL("encoder=deepset"),
    OF_MODEL("transition=affine"),
    OF_MODEL("layer_norm=on"),
    OF_MODEL("attend=on"),
    PAPER("iwae", "rbf", "objective=iwae", " train_samples=4"),
    OF_TRAINING("batch=400"),
    {"image", "mnp", "image", "geofluvial:size=128", "", "batch=100 context=5:180", 32, false},
    {"general", "mnp", "paper", "rbf", "", BASE, 0, true},
    PREDICTOR_ROW("cnp"),
    PREDICTOR_ROW("tnp"),
    PREDICTOR_ROW("convcnp"),
};

const shape *shape_at(int k) {
    return k >= 0 && (size_t)k < sizeof table / sizeof *table ? &table[k] : NULL;
}

/* ---- combinations ---------------------------------------------------------------------------- */

static int even(rng_stream *s, int lo, int hi) {
    return lo + (int)rng_below(s, (uint64_t)hi - (uint64_t)lo + 1);
}

/* As often between 64 and 128 as between 512 and 1024. */
static int by_size(rng_stream *s, int lo, int hi) {
    const double at = log(lo) + rng_u01(s) * log((hi + 1.0) / lo);
    const int v = (int)floor(exp(at));
    return v < lo ? lo : v > hi ? hi : v;
}

void shape_random(uint64_t seed, int k, shape *out) {
    static const char *const encoders[] = {"sab", "isab", "deepset"};
    static const char *const maps[] = {"rqs", "affine"};
    rng_stream s = rng_stream_make((rng_key){seed}, RNG_TEST, (uint32_t)k);
    *out = (shape){.kind = "mnp", .preset = "paper"};
    snprintf(out->name, sizeof out->name, "random-%d", k);
    const int T = even(&s, 1, 14), d_z = even(&s, 16, 256), heads = even(&s, 1, 8);
    const int width = heads * even(&s, (32 + heads - 1) / heads, 256 / heads);
    const int flow = even(&s, 64, 256), n = by_size(&s, 64, 1024), m = even(&s, 2, n);
    const int batch = by_size(&s, 25, 400);
    const char *encoder = encoders[rng_below(&s, 3)], *map = maps[rng_below(&s, 2)];
    const char *norm = rng_below(&s, 2) ? "on" : "off";
    snprintf(out->data, sizeof out->data, "rbf:points=%d", n);
    snprintf(out->model, sizeof out->model,
             "T=%d d_z=%d heads=%d enc_width=%d flow_hidden=%d encoder=%s transition=%s "
             "layer_norm=%s",
             T, d_z, heads, width, flow, encoder, map, norm);
    snprintf(out->train, sizeof out->train, "batch=%d context=2:%d", batch, m);
}
