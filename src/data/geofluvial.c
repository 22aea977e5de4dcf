/* geofluvial.c: options, one run, and the values of an image. See geofluvial.h. */
#include "data/geofluvial.h"

#include <math.h>

/* ---- options --------------------------------------------------------------------------------- */

static const option_def table[] = {
    OPTION_ENUM(geofluvial_opts, picture, "channel", "channel|channel+oxbows|belt",
                "what is drawn"),
    OPTION_REAL(geofluvial_opts, oxbow_age, "0", 0, 1e6, "oldest loops drawn, years; 0 = all"),
    OPTION_INT(geofluvial_opts, saved_ts, "20", 1, 1e6, "steps between the channels of a belt"),
    OPTION_RANGE(geofluvial_opts, x, "500:30500", -1e7, 1e7, "window along the valley, m"),
    OPTION_RANGE(geofluvial_opts, y, "-3000:3000", -1e7, 1e7, "window across the valley, m"),
    OPTION_REAL(geofluvial_opts, cell, "7.5", 1e-3, 1e6, "pixel of the raster, m"),
    OPTION_INT(geofluvial_opts, crop, "700", 2, MEANDER_SIDE_MAX, "side of a crop, raster pixels"),
    OPTION_INT(geofluvial_opts, crops, "3", 1, CROPS_MAX, "crops of a simulation"),
    OPTION_INT(geofluvial_opts, size, "128", 2, IMAGE_SIDE_MAX, "side of an image, pixels"),
    OPTION_REAL(geofluvial_opts, inside, "100", 0, 1e6, "slope of the values in the river"),
    OPTION_REAL(geofluvial_opts, outside, "20", 0, 1e6, "slope of the values on land"),
};

void geofluvial_views(geofluvial_opts *o, option_view views[GEOFLUVIAL_VIEWS]) {
    views[0] = (option_view){table, OPTION_COUNT(table), o};
    views[1] = meander_view(&o->river);
}

static mnp_status check(env *e, geofluvial_opts *o) {
    MNP_TRY(meander_settle(e, &o->river));
    double cols = round((o->x.hi - o->x.lo) / o->cell), rows = round((o->y.hi - o->y.lo) / o->cell);
    if (cols * rows > RASTER_MAX)
        return env_fail(e, MNP_EINVAL,
                        "x, y and cell make a raster of %.0f x %.0f pixels (%d at most)", rows,
                        cols, RASTER_MAX);
    o->cols = (int64_t)cols;
    o->rows = (int64_t)rows;
    if (o->crop > o->rows || o->crop * o->crops > o->cols)
        return env_fail(e, MNP_EINVAL,
                        "%lld crops of %lld pixels do not fit side by side into a raster of %lld x "
                        "%lld",
                        (long long)o->crops, (long long)o->crop, (long long)o->rows,
                        (long long)o->cols);
    if (o->size > o->crop)
        return env_fail(e, MNP_EINVAL, "size=%lld: images may not be larger than a crop of %lld",
                        (long long)o->size, (long long)o->crop);
    return MNP_OK;
}

mnp_status geofluvial_options(env *e, const char *settings, geofluvial_opts *out) {
    option_view views[GEOFLUVIAL_VIEWS];
    *out = (geofluvial_opts){0};
    geofluvial_views(out, views);
    MNP_TRY(options_defaults(e, views, GEOFLUVIAL_VIEWS));
    MNP_TRY(options_parse(e, views, GEOFLUVIAL_VIEWS, settings));
    return check(e, out);
}

mnp_status geofluvial_options_print(buf *out, const geofluvial_opts *o) {
    geofluvial_opts copy = *o;
    option_view views[GEOFLUVIAL_VIEWS];
    geofluvial_views(&copy, views);
    return options_print(out, views, GEOFLUVIAL_VIEWS);
}

/* ---- one run --------------------------------------------------------------------------------- */

/* The streams of a run. */
enum { STREAM_START, STREAM_CROPS };

static rng_stream run_stream(uint64_t seed, data_split split, int64_t run, uint32_t which) {
    return rng_stream_at((rng_key){seed}, (rng_at){.purpose = RNG_DATA,
                                                   .step = (uint32_t)split,
                                                   .function = (uint32_t)run,
                                                   .sample = which});
}

static void paint_loops(meander_raster *r, const geofluvial_opts *o, const meander *m) {
    const meander_loops *l = &m->loops;
    for (int64_t k = 0; k < l->count; k++) {
        double age = (double)(m->step - l->step[k]) * o->river.dt;
        if (o->oxbow_age > 0 && age > o->oxbow_age) continue;
        meander_paint(r, l->start[k + 1] - l->start[k], l->x + l->start[k], l->y + l->start[k],
                      o->river.W / 2);
    }
}

static mnp_status simulate(meander *m, const geofluvial_opts *o, rng_stream *s, meander_raster *r) {
    MNP_TRY(meander_start(m, s));
    while (m->step < o->river.nit) {
        MNP_TRY(meander_step(m));
        int64_t before = m->step - 1; /* steps are counted from 0; the first line is not kept */
        if (o->picture == GEOFLUVIAL_BELT && before > 0 && before % o->saved_ts == 0)
            meander_paint(r, m->n, m->x, m->y, o->river.W / 2);
    }
    if (o->picture != GEOFLUVIAL_CHANNEL) paint_loops(r, o, m);
    meander_paint(r, m->n, m->x, m->y, o->river.W / 2);
    return MNP_OK;
}

mnp_status geofluvial_river(env *e, const geofluvial_opts *o, uint64_t seed, data_split split,
                            int64_t run, meander_raster *r) {
    *r = (meander_raster){
        .rows = o->rows, .cols = o->cols, .x0 = o->x.lo, .y1 = o->y.hi, .cell = o->cell};
    rng_stream s = run_stream(seed, split, run, STREAM_START);
    meander *m = NULL;
    MNP_TRY(meander_create(e, &o->river, &m));
    mnp_status status = MNP_ENOMEM;
    r->mask = env_alloc(e, (size_t)(r->rows * r->cols), 1, "the raster of a river");
    if (r->mask) status = simulate(m, o, &s, r);
    if (status != MNP_OK) {
        env_free(e, r->mask);
        r->mask = NULL;
        env_context(e, status, "simulation %lld", (long long)run);
    }
    meander_destroy(m);
    return status;
}

/* Left columns of the crops, uniform over all placements without common columns: `crops` distinct
 * numbers below free + crops in ascending order, spread by the width of the crops before. */
static void place_columns(rng_stream *s, const geofluvial_opts *o, int64_t col[CROPS_MAX]) {
    uint64_t slots = (uint64_t)(o->cols - o->crops * o->crop + o->crops);
    for (int64_t k = 0; k < o->crops; k++) {
        int64_t v = 0, at = k;
        for (bool again = true; again;) {
            v = (int64_t)rng_below(s, slots);
            again = false;
            for (int64_t i = 0; i < k; i++) again |= col[i] == v;
        }
        for (; at > 0 && col[at - 1] > v; at--) col[at] = col[at - 1];
        col[at] = v;
    }
    for (int64_t k = 0; k < o->crops; k++) col[k] += k * (o->crop - 1);
}

static bool has_both(const float *gray, int64_t pixels) {
    int64_t river = 0;
    for (int64_t i = 0; i < pixels; i++) river += gray[i] >= 0.5f;
    return river > 0 && river < pixels;
}

/* One set of crops; false where one of them shows no bank. */
static bool cut_crops(rng_stream *s, const geofluvial_opts *o, const meander_raster *r,
                      int32_t *sums, float *gray) {
    int64_t col[CROPS_MAX], pixels = o->size * o->size;
    bool good = true;
    place_columns(s, o, col);
    for (int64_t k = 0; k < o->crops; k++) {
        int64_t row = (int64_t)rng_below(s, (uint64_t)(o->rows - o->crop + 1));
        meander_shrink(r->mask + row * r->cols + col[k], r->cols, o->crop, o->size, sums,
                       gray + k * pixels);
        good &= has_both(gray + k * pixels, pixels);
    }
    return good;
}

mnp_status geofluvial_run(env *e, const geofluvial_opts *o, uint64_t seed, data_split split,
                          int64_t run, float *gray) {
    enum { TRIES = 100 };
    meander_raster r;
    MNP_TRY(geofluvial_river(e, o, seed, split, run, &r));
    int32_t *sums = env_alloc(e, (size_t)o->size, sizeof *sums, "an image");
    rng_stream s = run_stream(seed, split, run, STREAM_CROPS);
    bool good = false;
    for (int tries = 0; sums && !good && tries < TRIES; tries++)
        good = cut_crops(&s, o, &r, sums, gray);
    mnp_status status = !sums ? MNP_ENOMEM : MNP_OK;
    if (sums && !good)
        status = env_fail(e, MNP_ENUMERIC,
                          "simulation %lld: no crops that all show river and land in %d tries (is "
                          "the window where the river is?)",
                          (long long)run, TRIES);
    env_free(e, sums);
    env_free(e, r.mask);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

void geofluvial_mask(const float *gray, int64_t pixels, uint8_t *mask) {
    for (int64_t i = 0; i < pixels; i++) mask[i] = gray[i] >= 0.5f;
}

mnp_status geofluvial_values(env *e, const geofluvial_opts *o, const uint8_t *mask, int64_t count,
                             float *y) {
    int64_t pixels = o->size * o->size;
    double *sdf = env_alloc(e, (size_t)pixels, sizeof *sdf, "signed distances");
    int32_t *scratch =
        env_alloc(e, (size_t)((o->size + 2) * o->size), sizeof *scratch, "signed distances");
    mnp_status status = sdf && scratch ? MNP_OK : MNP_ENOMEM;
    for (int64_t k = 0; k < count && status == MNP_OK; k++) {
        if (!meander_signed_distance(mask + k * pixels, o->size, scratch, sdf))
            status = env_fail(e, MNP_EINVAL, "image %lld shows no river or no land", (long long)k);
        for (int64_t i = 0; i < pixels && status == MNP_OK; i++)
            y[k * pixels + i] = (float)tanh((sdf[i] < 0 ? o->inside : o->outside) * sdf[i]);
    }
    env_free(e, sdf);
    env_free(e, scratch);
    return status;
}
