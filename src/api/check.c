/* check.c: see check.h. */
#include "api/check.h"

#include <math.h>
#include <string.h>

#include "util/limits.h"

/* no process has an array beyond this */
#define BYTES_MAX ((size_t)(8 * CHECK_COUNT_MAX < PTRDIFF_MAX ? 8 * CHECK_COUNT_MAX : PTRDIFF_MAX))

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

mnp_status check_results(env *e, const char *name, size_t first, const void *out, int64_t count) {
    MNP_TRY(check_result(e, name, first, out));
    size_t size = size_of(out);
    if (size % sizeof(double))
        return env_fail(e, MNP_EINVAL, "%s.size is %zu: set it to sizeof(%s)", name, size, name);
    for (int64_t k = 1; k < count; k++)
        if (size_of((const char *)out + (size_t)k * size) != size)
            return env_fail(e, MNP_EINVAL, "the size of %s %lld is not that of the first", name,
                            (long long)k);
    return MNP_OK;
}

void give_result(void *out, const void *from, size_t now) {
    size_t size = size_of(out), head = sizeof size, known = size < now ? size : now;
    memcpy((char *)out + head, (const char *)from + head, known - head);
    memset((char *)out + known, 0, size - known);
}

void give_results(void *out, const void *from, size_t now, int64_t count) {
    size_t apart = size_of(out);
    for (size_t k = 0; k < (size_t)count; k++)
        give_result((char *)out + k * apart, (const char *)from + k * now, now);
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

size_t check_times(size_t a, size_t b) {
    return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

mnp_status check_bytes(env *e, const void *p, size_t bytes, const char *name) {
    if (bytes > BYTES_MAX)
        return env_fail(e, MNP_EINVAL, "%s would be larger than any memory: check its size", name);
    return bytes ? check_given(e, p, name) : MNP_OK;
}

mnp_status check_array(env *e, const void *p, int64_t a, int64_t b, const char *name) {
    return check_bytes(e, p, check_times(check_times((size_t)a, (size_t)b), 8), name);
}

mnp_status check_set(env *e, const mnp_set *s, int64_t least, int64_t dims, const char *name) {
    MNP_TRY(check_given(e, s, name));
    if (s->n < least)
        return env_fail(e, MNP_EINVAL, "%s: n is %lld, and must be at least %lld", name,
                        (long long)s->n, (long long)least);
    char part[64];
    snprintf(part, sizeof part, "x of %.50s", name);
    MNP_TRY(check_array(e, s->x, s->n, dims, part));
    part[0] = 'y';
    return check_array(e, s->y, s->n, 1, part);
}

mnp_status check_condition(env *e, mnp_condition condition, int64_t gradients) {
    MNP_TRY(check_enum(e, condition, MNP_EXACT + 1, "condition"));
    return check_range(e, gradients, 0, GRADIENTS_MAX, "gradients");
}

mnp_status check_turn(env *e, const mnp_draw_opts *o) {
    MNP_TRY(check_finite(e, o->angle, "angle"));
    if (o->angle == 0) return MNP_OK;
    if (o->condition != MNP_NETWORK)
        return env_fail(e, MNP_EINVAL,
                        "angle is %g: only draws of the network turn, those of refine and exact "
                        "have angle 0",
                        o->angle);
    if (o->towards == o->seed)
        return env_fail(e, MNP_EINVAL,
                        "angle is %g, and towards is the seed itself, %llu: turn to another seed",
                        o->angle, (unsigned long long)o->seed);
    return MNP_OK;
}

void check_print(char *out, size_t size, const char *text) {
    if (!out || size == 0) return;
    size_t length = strlen(text), kept = length < size ? length : size - 1;
    memcpy(out, text, kept);
    out[kept] = '\0';
}
