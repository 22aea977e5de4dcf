/* world.h: what the targets that go through the public interface share: a context whose allocator
 * has a limit and is empty at the end, and a folder in memory for the files under test. */
#ifndef MNP_TESTS_FUZZ_WORLD_H
#define MNP_TESTS_FUZZ_WORLD_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "mnp.h"

enum { WORLD_CAP = 64 << 20, WORLD_PATH = 128, WORLD_ALIGN = 64 };

static size_t world_held;

/* The size stands in front of each block, whose last byte is the last of what the C library gives:
 * a sanitizer sees the first byte after it. */
static void *world_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    void *block = NULL;
    FUZZ_CHECK(align == WORLD_ALIGN && bytes > 0);
    if (bytes > WORLD_CAP - world_held) return NULL;
    if (posix_memalign(&block, align, align + bytes) != 0) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    world_held += bytes;
    return (char *)block + align;
}

static void world_free(void *user, void *ptr) {
    (void)user;
    size_t bytes;
    char *block = (char *)ptr - WORLD_ALIGN;
    memcpy(&bytes, block, sizeof bytes);
    world_held -= bytes;
    free(block);
}

static mnp_ctx *world_open(void) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1, .allocator = {world_alloc, world_free, NULL}};
    FUZZ_CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    return ctx;
}

static inline void world_close(mnp_ctx *ctx) {
    mnp_ctx_destroy(ctx);
    FUZZ_CHECK(world_held == 0);
}

/* A failure has a text of one line. */
static inline mnp_status world_said(const mnp_ctx *ctx, mnp_status status) {
    if (status == MNP_OK) return status;
    const char *text = mnp_last_error(ctx);
    FUZZ_CHECK(text[0] != '\0' && !strchr(text, '\n'));
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char world_folder[64];

static void world_remove(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", world_folder);
    (void)!system(command);
}

/* PATH of a file of the folder, which is made at the first call and removed at the end. */
static const char *world_path(char out[WORLD_PATH], const char *name) {
    if (!world_folder[0]) {
        bool shm = access("/dev/shm", W_OK) == 0;
        snprintf(world_folder, sizeof world_folder, "%s/mnp-fuzz-XXXXXX",
                 shm ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(world_folder));
        atexit(world_remove);
    }
    snprintf(out, WORLD_PATH, "%s/%s", world_folder, name);
    return out;
}

static inline const char *world_write(char out[WORLD_PATH], const char *name, const uint8_t *data,
                                      size_t bytes) {
    int fd = open(world_path(out, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
    return out;
}

/* A seed from a file that the library wrote; FUZZ_SEED_MAX bytes at most. */
static inline size_t world_read(const char *name, uint8_t *data) {
    char path[WORLD_PATH];
    int fd = open(world_path(path, name), O_RDONLY | O_CLOEXEC);
    FUZZ_CHECK(fd >= 0);
    ssize_t got = read(fd, data, FUZZ_SEED_MAX);
    FUZZ_CHECK(got > 0 && got < FUZZ_SEED_MAX);
    close(fd);
    return (size_t)got;
}

/* Seeds that take time to make are made once, and kept here. */
typedef struct world_seeds {
    size_t bytes[FUZZ_SEEDS];
    uint8_t data[FUZZ_SEEDS][FUZZ_SEED_MAX];
} world_seeds;

static inline size_t world_seed(world_seeds *kept, size_t i, size_t count,
                                size_t (*make)(size_t i, uint8_t *out), uint8_t *out) {
    if (i >= count) return 0;
    if (!kept->bytes[i]) kept->bytes[i] = make(i, kept->data[i]);
    memcpy(out, kept->data[i], kept->bytes[i]);
    return kept->bytes[i];
}

#endif
