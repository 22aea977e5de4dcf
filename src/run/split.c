/* split.c: see split.h. */
#include "run/split.h"

#include "op/permute.h"
#include "util/least.h"

split_sizes split_usual(const dataset *d) {
    const data_policy *p = &d->policy;
    return (split_sizes){p->context_lo, p->context_hi, p->targets_lo, p->targets_hi};
}

static int64_t between(rng_stream *s, int64_t lo, int64_t hi) {
    return lo + (int64_t)rng_below(s, (uint64_t)(hi - lo + 1));
}

curve_split split_curve(const dataset *d, const split_sizes *sizes, uint64_t seed, int64_t i,
                        int32_t *memory) {
    int64_t points = d->start[i + 1] - d->start[i];
    rng_at at = {.purpose = RNG_SPLIT_EVAL, .function = (uint32_t)i};
    rng_stream s = rng_stream_at((rng_key){seed}, at);
    curve_split out = {.n = points};
    int64_t hi = least(sizes->hi, points - 1), lo = least(sizes->lo, hi);
    out.m = between(&s, lo, hi);
    out.order = permute_prefix(&s, points, points, memory);
    if (sizes->targets_hi > 0) {
        at.sample = 1; /* of its own, so that the order is the same for any number of targets */
        s = rng_stream_at((rng_key){seed}, at);
        hi = least(sizes->targets_hi, points - out.m), lo = least(sizes->targets_lo, hi);
        out.n = out.m + between(&s, lo, hi);
    }
    return out;
}
