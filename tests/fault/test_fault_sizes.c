/* test_fault_sizes.c: small files that ask for much. Through the public interface, with an
 * allocator that counts: each is refused with a line that names the sizes, and little memory is
 * taken. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safetensors.h"
#include "check.h"
#include "deflated.h"
#include "mnp_bandit.h"
#include "small_run.h"
#include "util/npy.h"

enum { MOST = 50 * 1000 * 1000, CAP = 1 << 28 };

static env E;
static char folder[200];
static mnp_ctx *ctx;

/* ---- the counting allocator ------------------------------------------------------------------ */

static size_t held, peak;

/* The size stands in front of each block; beyond CAP there is no memory. */
static void *count_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    size_t room = (bytes + 2 * align - 1) / align * align;
    if (room > CAP - held) return NULL;
    char *block = aligned_alloc(align, room);
    if (!block) return NULL;
    memcpy(block, &room, sizeof room);
    held += room;
    if (held > peak) peak = held;
    return block + align;
}

static void count_free(void *user, void *ptr) {
    (void)user;
    size_t room;
    char *block = (char *)ptr - 64; /* all memory of the library is aligned so */
    memcpy(&room, block, sizeof room);
    held -= room;
    free(block);
}

static const char *in_folder(char out[300], const char *name) {
    snprintf(out, 300, "%s/%s", folder, name);
    return out;
}

static bool refused(mnp_status status, const char *first, const char *second) {
    const char *text = mnp_last_error(ctx);
    bool good = status == MNP_EFORMAT && strstr(text, first) && strstr(text, second);
    if (!good) fprintf(stderr, "     status %d: %s\n", (int)status, text);
    if (peak >= MOST) fprintf(stderr, "     %zu bytes at once\n", peak);
    return good && peak < MOST;
}

/* ---- models, states and agents --------------------------------------------------------------- */

static void put_file(const char *path, const safetensors_meta *meta, size_t count) {
    CHECK(safetensors_write(&E, path, meta, count, NULL, 0) == MNP_OK);
}

static mnp_status load(const char *options) {
    char path[300];
    safetensors_meta meta[] = {{"mnp.format", "1"}, {"mnp.options", options}};
    put_file(in_folder(path, "m.safetensors"), meta, 2);
    mnp_model *m = NULL;
    peak = held;
    mnp_status status = mnp_model_load(ctx, path, &m);
    CHECK(!m);
    return status;
}

static void a_model_of_gigabytes(void) {
    CHECK(refused(load("T=4 d_z=4096 d_r=4096 head_hidden=4096 head_layers=8 enc_width=4096 "
                       "flow_hidden=4096"),
                  "1616127360 weights (6.46 GB)", "the limit is 268435456 (1.07 GB)"));
    CHECK(refused(load("T=64 d_z=4096 d_r=4096 head_hidden=4096 head_layers=8 enc_width=4096 "
                       "flow_hidden=4096 flow_layers=8 n_sab=16"),
                  "weights (125 GB)", "the limit is 268435456"));
    /* below the limit, and still more than the file has */
    CHECK(refused(load("T=1 d_z=2048 d_r=2048 head_hidden=2048 enc_width=2048 flow_hidden=2048"),
                  "weights (", "it holds 0 numbers (0 B)"));
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, "mnp", NULL, "T=64 d_z=4096 head_hidden=4096 flow_hidden=4096",
                           NULL, 1, &m) == MNP_EINVAL);
    CHECK(!m && strstr(mnp_last_error(ctx), "the limit is 268435456"));
}

static void an_agent_of_megabytes(void) {
    static const char *const kinds[] = {"maml", "c-bruno"};
    for (int k = 0; k < 2; k++) {
        char path[300];
        safetensors_meta meta[] = {{"format", "mnp-agent"},
                                   {"agent", kinds[k]},
                                   {"options", "hidden=4096 layers=4"},
                                   {"inputs", "7"}};
        put_file(in_folder(path, "agent"), meta, 4);
        mnp_player *player = NULL;
        mnp_bandit_opts o = {.size = sizeof o, .agent = kinds[k], .agent_file = path};
        peak = held;
        CHECK(refused(mnp_player_create(ctx, NULL, &o, 2, 5, &player), path, "the array w0"));
        CHECK(!player);
    }
}

static void a_header_of_megabytes(void) {
    char path[300], *text = calloc(1, 1 << 23);
    uint64_t length = (1 << 23) - 8;
    memset(text, ' ', 1 << 23);
    memcpy(text, &length, 8);
    memcpy(text + 8, "{}", 2);
    CHECK(fsio_write(&E, in_folder(path, "h.safetensors"), text, 1 << 23) == MNP_OK);
    free(text);
    mnp_model *m = NULL;
    peak = held;
    CHECK(refused(mnp_model_load(ctx, path, &m), "a header of 8388600 bytes",
                  "the limit is 4194304"));
}

/* A state has the size of its trainer's; a file with a hole of 200 MB is not read. */
static void a_state_of_megabytes(void) {
    char path[300];
    small_run r = small_run_open(ctx, "steps=2 batch=1");
    CHECK(mnp_trainer_save(r.trainer, in_folder(path, "m.train")) == MNP_OK);
    CHECK(mnp_trainer_resume(r.trainer, path, false) == MNP_OK);
    CHECK(truncate(path, 200000000) == 0);
    peak = held;
    CHECK(refused(mnp_trainer_resume(r.trainer, path, false), "200000000 bytes, more than the",
                  path));
    small_run_close(&r);
}

/* ---- images ---------------------------------------------------------------------------------- */

static mnp_status open_images(const char *name) {
    char what[320];
    mnp_data *data = NULL;
    mnp_data_opts o = {.size = sizeof o, .holdout = -1};
    snprintf(what, sizeof what, "images:%s/%s", folder, name);
    peak = held;
    mnp_status status = mnp_data_open(ctx, what, &o, &data);
    CHECK((status == MNP_OK) == (data != NULL));
    mnp_data_destroy(data);
    return status;
}

static void make_folder(const char *name) {
    char path[300];
    CHECK(mkdir(in_folder(path, name), 0777) == 0);
}

static size_t put_png(const char *name, uint32_t rows, uint32_t cols, bool whole) {
    char path[300];
    buf b;
    buf_init(&b, &E);
    put_black_png(&b, rows, cols, whole);
    CHECK(fsio_write(&E, in_folder(path, name), b.data, b.len) == MNP_OK);
    size_t bytes = b.len;
    buf_free(&b);
    return bytes;
}

static void a_picture_of_gigabytes(void) {
    make_folder("large");
    CHECK(put_png("large/a.png", 20000, 20000, true) < 49000);
    CHECK(refused(open_images("large"), "a picture of 20000 x 20000 pixels", "1 to 4096"));
}

/* The pictures of a folder must be there before memory is taken for all of them. */
static void pictures_that_are_not_there(void) {
    make_folder("few");
    put_png("few/a.png", 600, 600, true);
    CHECK(open_images("few") == MNP_OK); /* the generator's file is a good one */
    make_folder("many");
    put_png("many/0.png", 4096, 4096, true);
    put_png("many/1.png", 4096, 4096, false);
    put_png("many/2.png", 4096, 4096, false);
    CHECK(refused(open_images("many"), "1.png: a damaged PNG file (4096 x 4096 pixels need 2101248",
                  "at most"));
}

/* Good pictures, all of them, of a few KB each; together they are beyond what a set may be. */
static void too_many_pictures(void) {
    char first[300], name[32], path[300];
    make_folder("all");
    put_png("all/000.png", 4096, 4096, true);
    for (int k = 1; k < 129; k++) {
        snprintf(name, sizeof name, "all/%03d.png", k);
        CHECK(link(in_folder(first, "all/000.png"), in_folder(path, name)) == 0);
    }
    CHECK(refused(open_images("all"), "129 images of 4096 x 4096 have 2164260864 pixels",
                  "the limit is 2147483648"));
}

static void a_folder_of_rivers_that_are_not_there(void) {
    char path[300];
    static const char text[] = "{\"format\":\"mnp-geofluvial-1\",\"seed\":\"1\",\"options\":\"\","
                               "\"train\":2000000000,\"valid\":9,\"test\":9,\"complete\":true}";
    make_folder("rivers");
    CHECK(fsio_write(&E, in_folder(path, "rivers/geofluvial.json"), text, sizeof text - 1) ==
          MNP_OK);
    uint8_t bits[128 * 16] = {0};
    npy_array one = {.type = NPY_U1, .ndim = 3, .shape = {1, 128, 16}, .data = bits};
    CHECK(npy_write(&E, in_folder(path, "rivers/train-00000.npy"), &one) == MNP_OK);
    CHECK(refused(open_images("rivers"), "train-00000.npy: 2176 bytes",
                  "300 images of 128 x 128 need 614400"));
}

/* No pixel, and sides whose product no number holds. */
static void an_array_of_nothing(void) {
    char path[300];
    npy_array none = {.type = NPY_U1, .ndim = 3, .shape = {0, 1LL << 29, 1LL << 31}};
    CHECK(npy_write(&E, in_folder(path, "none.npy"), &none) == MNP_OK);
    CHECK(refused(open_images("none.npy"), "images of 536870912 x 2147483648 pixels", "2 to 4096"));
}

int main(void) {
    env_init(&E);
    snprintf(folder, sizeof folder, "/tmp/mnp-sizes-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1, .allocator = {count_alloc, count_free, NULL}};
    if (mnp_ctx_create(&o, &ctx) != MNP_OK) return 1;
    RUN(a_model_of_gigabytes);
    RUN(an_agent_of_megabytes);
    RUN(a_header_of_megabytes);
    RUN(a_state_of_megabytes);
    RUN(a_picture_of_gigabytes);
    RUN(pictures_that_are_not_there);
    RUN(too_many_pictures);
    RUN(a_folder_of_rivers_that_are_not_there);
    RUN(an_array_of_nothing);
    mnp_ctx_destroy(ctx);
    char remove[260];
    snprintf(remove, sizeof remove, "rm -r '%s'", folder);
    return system(remove) != 0 || held ? 1 : check_done();
}
