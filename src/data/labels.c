/* labels.c: see labels.h. Open addressing; it never grows, since the caller knows a bound. */
#include "data/labels.h"

#include <string.h>

mnp_status labels_init(labels *l, env *e, size_t most) {
    *l = (labels){.e = e, .cap = 16};
    while (l->cap < 2 * most) l->cap *= 2;
    l->slots = env_alloc(e, l->cap, sizeof *l->slots, "the names of functions");
    l->text = env_alloc(e, most + 1, sizeof *l->text, "the names of functions");
    if (l->slots && l->text) return MNP_OK;
    labels_free(l);
    return MNP_ENOMEM;
}

void labels_free(labels *l) {
    if (!l->e) return;
    env_free(l->e, l->slots);
    env_free(l->e, l->text);
    *l = (labels){0};
}

/* FNV-1a from a place in memory: no file can be written so that all its texts meet in one slot. The
 * numbers do not depend on it. */
static uint64_t hash(const labels *l, const char *s) {
    uint64_t h = 0xCBF29CE484222325u ^ (uint64_t)(uintptr_t)l->slots * 0x9E3779B97F4A7C15u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001B3u;
    return h ^ h >> 32;
}

size_t labels_number(labels *l, const char *text) {
    size_t at = (size_t)hash(l, text) & (l->cap - 1);
    for (; l->slots[at]; at = (at + 1) & (l->cap - 1))
        if (strcmp(l->text[l->slots[at] - 1], text) == 0) return l->slots[at] - 1;
    l->text[l->count] = text;
    l->slots[at] = ++l->count;
    return l->count - 1;
}
