/* folds.c: see folds.h. */
#include "fit/folds.h"

#include "base/rng.h"
#include "util/least.h"

mnp_status folds_make(env *e, int64_t curves, int64_t asked, uint64_t seed, folds *out) {
    *out = (folds){.e = e, .curves = curves};
    out->of = env_alloc(e, (size_t)curves, sizeof *out->of, "the folds");
    if (!out->of) return MNP_ENOMEM;
    bool usual = asked == 0, one = usual ? curves >= FOLDS_CURVES : asked == 1;
    out->count = one ? 1 : least(usual ? FOLDS_USUAL : asked, curves);
    int64_t parts = one ? least(FOLDS_USUAL, curves) : out->count;
    rng_perm p =
        rng_perm_make((rng_key){seed}, (rng_at){.purpose = RNG_DATA, .step = 1}, (uint64_t)curves);
    for (int64_t i = 0; i < curves; i++) {
        int64_t part = (int64_t)rng_perm_apply(&p, (uint64_t)i) % parts;
        out->of[i] = part < out->count ? part : -1;
    }
    return MNP_OK;
}

void folds_free(folds *f) {
    if (f->e) env_free(f->e, f->of);
    *f = (folds){0};
}

int64_t folds_scored(const folds *f, int64_t k, int64_t *which) {
    int64_t count = 0;
    for (int64_t i = 0; i < f->curves; i++)
        if (f->of[i] == k) which[count++] = i;
    return count;
}

int64_t folds_learned(const folds *f, int64_t k, int64_t *which) {
    int64_t count = 0;
    for (int64_t i = 0; i < f->curves; i++)
        if (f->of[i] != k) which[count++] = i;
    return count;
}
