/* env.c: memory, errors and callbacks of an env. See env.h for the contract. */
#include "util/env.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"

static void *default_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    size_t rounded = (bytes + align - 1) / align * align; /* aligned_alloc wants a multiple */
    return aligned_alloc(align, rounded ? rounded : align);
}

static void default_free(void *user, void *ptr) {
    (void)user;
    free(ptr);
}

void env_init(env *e) {
    *e = (env){.allocator = {default_alloc, default_free, NULL}};
}

static mnp_status no_memory(env *e, double bytes, const char *what) {
    char size[TEXT_NUMBER];
    return env_fail(e, MNP_ENOMEM, "out of memory: %s for %s could not be had",
                    bytes < 1e18 ? text_bytes(size, bytes) : "far too much", what);
}

void *env_alloc(env *e, size_t count, size_t size, const char *what) {
    if (size != 0 && count > (SIZE_MAX / 2 - ENV_ALIGN) / size) {
        no_memory(e, (double)count * (double)size, what);
        return NULL;
    }
    size_t bytes = count * size; /* never ask for 0: an allocator may answer that with NULL */
    void *p = e->allocator.alloc(e->allocator.user, bytes ? bytes : 1, ENV_ALIGN);
    if (!p) {
        no_memory(e, (double)count * (double)size, what);
        return NULL;
    }
    memset(p, 0, bytes);
    return p;
}

void env_free(env *e, void *ptr) {
    if (ptr) e->allocator.free(e->allocator.user, ptr);
}

void *env_grow(env *e, void *ptr, size_t old_count, size_t new_count, size_t size,
               const char *what) {
    void *fresh = env_alloc(e, new_count, size, what);
    if (!fresh) return NULL;
    if (ptr) memcpy(fresh, ptr, (old_count < new_count ? old_count : new_count) * size);
    env_free(e, ptr);
    return fresh;
}

char *env_strdup(env *e, const char *s) {
    size_t bytes = strlen(s) + 1;
    char *copy = env_alloc(e, bytes, 1, "a string");
    if (copy) memcpy(copy, s, bytes);
    return copy;
}

/* Every text for people is made here: names and excerpts of files may be in it, so that it is one
 * line without control characters only now. */
static void format_plain(char out[ENV_ERROR_MAX], const char *fmt, va_list ap) {
    char raw[ENV_ERROR_MAX];
    vsnprintf(raw, sizeof raw, fmt, ap);
    text_plain(out, ENV_ERROR_MAX, raw);
}

mnp_status env_fail(env *e, mnp_status code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    format_plain(e->error, fmt, ap);
    va_end(ap);
    return code;
}

mnp_status env_context(env *e, mnp_status code, const char *fmt, ...) {
    char outer[ENV_ERROR_MAX];
    va_list ap;
    va_start(ap, fmt);
    format_plain(outer, fmt, ap);
    va_end(ap);
    size_t used = strlen(outer), inner = strlen(e->error), room = sizeof e->error - 1 - used;
    if (room > 2) { /* the end of the inner text goes where both do not fit */
        if (inner > room - 2) inner = room - 2;
        memmove(e->error + used + 2, e->error, inner);
        memcpy(e->error + used, ": ", 2);
        e->error[used + 2 + inner] = '\0';
    } else {
        e->error[used] = '\0';
    }
    memcpy(e->error, outer, used);
    return code;
}

void env_log(env *e, mnp_log_level level, const char *fmt, ...) {
    if (!e->log) return;
    char text[ENV_ERROR_MAX];
    va_list ap;
    va_start(ap, fmt);
    format_plain(text, fmt, ap);
    va_end(ap);
    e->log(e->log_user, level, text);
}

bool env_cancelled(env *e) {
    return e->cancel && e->cancel(e->cancel_user);
}
