/* check.c: see check.h. */
#include "api/check.h"

#include <math.h>
#include <string.h>

/* No process has an array beyond this; products of sizes below it do not overflow. */
static const int64_t ARRAY_BYTES_MAX = INT64_C(1) << 48;

/* ---- structs --------------------------------------------------------------------------------- */

static size_t size_of(const void *s) {
    size_t size;
    memcpy(&size, s, sizeof size);
    return size;
}

static mnp_status check_size(env *e, const char *name, size_t size, size_t first) {
    if (size >= first && size <= STRUCT_MAX) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "%s.size is %zu: set it to sizeof(%s)", name, size, name);
}

mnp_status check_opts(env *e, const char *name, size_t first, size_t now, const void *from,
                      void *to) {
    memset(to, 0, now);
    if (!from) return MNP_OK;
    size_t size = size_of(from);
    MNP_TRY(check_size(e, name, size, first));
    for (size_t k = now; k < size; k++)
        if (((const unsigned char *)from)[k])
            return env_fail(e, MNP_EINVAL,
                            "%s sets fields that libmnp " MNP_VERSION
                            " does not know: the program was built with a newer mnp.h",
                            name);
    memcpy(to, from, size < now ? size : now);
    return MNP_OK;
}

mnp_status check_result(env *e, const char *name, size_t first, const void *out) {
    if (!out) return env_fail(e, MNP_EINVAL, "the place for a %s is NULL", name);
    return check_size(e, name, size_of(out), first);
}

void give_result(void *out, const void *from, size_t now) {
    size_t size = size_of(out), head = sizeof size, known = size < now ? size : now;
    memcpy((char *)out + head, (const char *)from + head, known - head);
    memset((char *)out + known, 0, size - known);
}

/* ---- single arguments ------------------------------------------------------------------------ */

mnp_status check_given(env *e, const void *p, const char *name) {
    return p ? MNP_OK : env_fail(e, MNP_EINVAL, "%s is NULL", name);
}

mnp_status check_range(env *e, int64_t v, int64_t lo, int64_t hi, const char *name) {
    if (v >= lo && v <= hi) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "%s is %lld, and must be from %lld to %lld", name, (long long)v,
                    (long long)lo, (long long)hi);
}

mnp_status check_enum(env *e, int64_t v, int64_t count, const char *name) {
    return check_range(e, v, 0, count - 1, name);
}

mnp_status check_finite(env *e, double v, const char *name) {
    return isfinite(v) ? MNP_OK : env_fail(e, MNP_EINVAL, "%s is not a finite number", name);
}

mnp_status check_array(env *e, const void *p, int64_t a, int64_t b, int64_t c, const char *name) {
    MNP_TRY(check_given(e, p, name));
    double bytes = (double)a * (double)b * (double)c * 8; /* near enough to the bound */
    if (bytes <= (double)ARRAY_BYTES_MAX) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "%s would have %lld x %lld x %lld numbers", name, (long long)a,
                    (long long)b, (long long)c);
}

mnp_status check_buffer(env *e, const char *out, size_t size, const char *name) {
    return size == 0 ? MNP_OK : check_given(e, out, name);
}
