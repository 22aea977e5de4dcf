/* rivers.c: images of simulated rivers. */
#include "api/api_internal.h"
#include "comm/comm.h"
#include "data/geofluvial_set.h"

/* What a call was asked for. */
typedef struct rivers {
    mnp_rivers_opts o;
    geofluvial_opts g;
    pool *pool;
    int64_t total;
    geofluvial_watch watch;
} rivers;

static void progress(void *user, int64_t done) {
    const rivers *r = user;
    if (r->o.progress) r->o.progress(r->o.progress_user, done, r->total);
}

static mnp_status take(mnp_ctx *ctx, const mnp_rivers_opts *opts, rivers *r) {
    env *e = &ctx->env;
    *r = (rivers){.watch = {progress, r}};
    MNP_TRY(TAKE_OPTS(e, mnp_rivers_opts, opts, &r->o));
    MNP_TRY(geofluvial_options(e, r->o.options ? r->o.options : "", &r->g));
    return ctx_pool(ctx, &r->pool);
}

mnp_status mnp_rivers_side(mnp_ctx *ctx, const mnp_rivers_opts *opts, int64_t *side) {
    if (!ctx) return MNP_EINVAL;
    rivers r;
    MNP_TRY(check_given(&ctx->env, side, "side"));
    MNP_TRY(take(ctx, opts, &r));
    *side = r.g.size;
    return MNP_OK;
}

/* Each rank draws whole simulations. */
static mnp_status draw_gray(env *e, rivers *r, mnp_split split, int64_t images, float *gray) {
    int64_t pixels = r->g.size * r->g.size;
    comm_span own = comm_split(e, images, r->g.crops);
    r->total = (images + r->g.crops - 1) / r->g.crops;
    MNP_TRY(geofluvial_draw(e, r->pool, &r->g, r->o.seed, (data_split)split, own.lo,
                            own.hi - own.lo, &r->watch, gray + own.lo * pixels));
    return comm_gather_parts(e, gray, images, r->g.crops, (size_t)pixels * sizeof *gray,
                             "images of all ranks");
}

/* Gray to another value, in place. */
static mnp_status convert(env *e, const rivers *r, mnp_rivers_value value, int64_t images,
                          float *y) {
    int64_t pixels = r->g.size * r->g.size;
    if (value == MNP_RIVERS_GRAY) return MNP_OK;
    uint8_t *mask = env_alloc(e, (size_t)pixels, 1, "an image");
    mnp_status status = mask ? MNP_OK : MNP_ENOMEM;
    for (int64_t k = 0; k < images && status == MNP_OK; k++, y += pixels) {
        geofluvial_mask(y, pixels, mask);
        if (value == MNP_RIVERS_SDF)
            status = geofluvial_values(e, &r->g, mask, 1, y);
        else
            for (int64_t i = 0; i < pixels; i++) y[i] = mask[i];
    }
    env_free(e, mask);
    return status;
}

mnp_status mnp_rivers_draw(mnp_ctx *ctx, mnp_split split, int64_t images, mnp_rivers_value value,
                           const mnp_rivers_opts *opts, float *y) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    rivers r;
    MNP_TRY(check_enum(e, split, MNP_TEST + 1, "split"));
    MNP_TRY(check_range(e, images, 1, INT32_MAX, "images"));
    MNP_TRY(check_enum(e, value, MNP_RIVERS_MASK + 1, "value"));
    MNP_TRY(take(ctx, opts, &r));
    MNP_TRY(check_array(e, y, images, r.g.size * r.g.size, "y"));
    MNP_TRY(draw_gray(e, &r, split, images, y));
    return convert(e, &r, value, images, y);
}

static mnp_status take_dir(env *e, const char *dir, char out[GEOFLUVIAL_PATH]) {
    MNP_TRY(check_given(e, dir, "dir"));
    if (snprintf(out, GEOFLUVIAL_PATH, "%s", dir) < GEOFLUVIAL_PATH - 64) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "%.60s...: too long a path", dir);
}

mnp_status mnp_rivers_write(mnp_ctx *ctx, const char *dir, const int64_t images[3],
                            const mnp_rivers_opts *opts, int64_t *drawn) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    rivers r;
    geofluvial_set set = {0};
    MNP_TRY(take_dir(e, dir, set.dir));
    MNP_TRY(check_given(e, images, "images"));
    MNP_TRY(check_given(e, drawn, "drawn"));
    MNP_TRY(take(ctx, opts, &r));
    for (int k = 0; k < GEOFLUVIAL_SPLITS; k++) {
        MNP_TRY(check_range(e, images[k], 0, INT32_MAX, "images"));
        r.total += set.images[k] = images[k];
    }
    set.o = r.g;
    set.seed = r.o.seed;
    int64_t made = 0;
    MNP_TRY(geofluvial_set_share(e, r.pool, &set, &r.watch, &made));
    *drawn = made;
    return MNP_OK;
}

mnp_status mnp_rivers_read(mnp_ctx *ctx, const char *dir, mnp_split split, int64_t first,
                           int64_t count, uint8_t *mask) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    geofluvial_set set = {0};
    char path[GEOFLUVIAL_PATH];
    MNP_TRY(take_dir(e, dir, path));
    MNP_TRY(check_enum(e, split, MNP_TEST + 1, "split"));
    MNP_TRY(check_range(e, first, 0, INT32_MAX, "first"));
    MNP_TRY(check_range(e, count, 0, INT32_MAX, "count"));
    MNP_TRY(geofluvial_set_open(e, path, &set));
    MNP_TRY(check_bytes(e, mask, check_times((size_t)count, (size_t)(set.o.size * set.o.size)),
                        "mask"));
    return geofluvial_set_read(e, &set, (data_split)split, first, count, mask);
}
