/* origin.c: see origin.h. */
#include "data/origin.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "util/real.h"

static int ascending(const void *a, const void *b) {
    double u = *(const double *)a, v = *(const double *)b;
    return (u > v) - (u < v);
}

/* Different ones among sorted values, and among (value - from) / unit as floats. */
static void count_distinct(const double *sorted, int64_t count, double from, double unit,
                           origin *o) {
    o->distinct = o->kept = count > 0;
    for (int64_t i = 1; i < count; i++) {
        o->distinct += sorted[i] != sorted[i - 1];
        o->kept += (float)((sorted[i] - from) / unit) != (float)((sorted[i - 1] - from) / unit);
    }
}

/* Half of the steps between values are lost. Chance alone makes some of very many values equal. */
static bool blurred(const origin *o) {
    return o->kept < o->distinct && 2 * (o->distinct - o->kept) >= o->distinct - 1;
}

origin origin_find(double *values, int64_t count) {
    origin o = {0};
    if (count < 1) return o;
    qsort(values, (size_t)count, sizeof *values, ascending);
    double lo = values[0], hi = values[count - 1], span = hi - lo;
    count_distinct(values, count, 0, 1, &o);
    /* 2^-24: half a unit in the last place */
    bool offset = span > 0 && fmax(fabs(lo), fabs(hi)) * 0x1p-24 > 1e-4 * span;
    if ((offset || blurred(&o)) && real_fits(span)) o.at = lo;
    /* what is left of it for a network, which sees the column in units of its spread */
    if (span > 0 && isfinite(span)) count_distinct(values, count, lo - span, span, &o);
    return o;
}

void origin_say(const origin *o, const char *name, buf *to) {
    if (o->at != 0) {
        buf_text(to, "note: ");
        buf_plain(to, name);
        buf_text(to, " is counted from ");
        buf_double(to, o->at);
        buf_text(to, ": single precision would blur it otherwise\n");
    }
    if (!blurred(o)) return;
    buf_printf(to, "note: %" PRId64 " of %" PRId64 " different values of ", o->distinct - o->kept,
               o->distinct);
    buf_plain(to, name);
    buf_text(to, " become equal in single precision (a few numbers lie far from all others)\n");
}
