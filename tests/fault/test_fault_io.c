/* test_fault_io.c: every body below runs with the 1st, then the 2nd, 3rd ... allocation or system
 * call failing, until a run has nothing left to fail. Each failure must be a clean status with a
 * text, without a leak, without a left-over file, and with the old file as it was. */
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "base/safetensors.h"
#include "check.h"
#include "util/csv.h"
#include "util/json.h"
#include "util/npy.h"
#include "util/png.h"

typedef struct faults {
    long live;      /* allocations not yet freed */
    long left;      /* calls until the failing one; negative: none fails */
    bool in_alloc;  /* what is counted: allocations or system calls */
    bool failed;    /* the failing call was reached */
    bool committed; /* the new file was renamed into place before it */
    int error;      /* errno of the failing system call */
    bool limp;      /* every write is short and interrupted now and then */
    long writes;
} faults;

static faults F;
static env E;
static char folder[200], path[260];

/* ---- the failing world ----------------------------------------------------------------------- */

static bool fails(bool is_alloc) {
    if (F.in_alloc != is_alloc || F.left < 0 || F.left-- > 0) return false;
    F.failed = true;
    errno = F.error;
    return true;
}

static void *fault_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    if (fails(true)) return NULL;
    F.live++;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void fault_free(void *user, void *ptr) {
    (void)user;
    F.live--;
    free(ptr);
}

static long fault_write(void *user, int fd, const void *data, size_t bytes) {
    (void)user;
    if (fails(false)) {
        long torn = write(fd, data, bytes / 2); /* a full disk takes a part first */
        errno = F.error;
        return torn < 0 ? torn : -1;
    }
    if (!F.limp) return write(fd, data, bytes);
    errno = EINTR;
    return F.writes++ % 3 == 1 ? -1 : write(fd, data, bytes > 7 ? 7 : bytes);
}

static int fault_fsync(void *user, int fd) {
    (void)user, (void)fd; /* the disk itself is not under test */
    return fails(false) ? -1 : 0;
}

static int fault_rename(void *user, const char *from, const char *to) {
    (void)user;
    if (fails(false)) return -1;
    F.committed = true;
    return rename(from, to);
}

/* ---- the bodies ------------------------------------------------------------------------------ */

static const char table_text[] = "x,name\n1,\"a \"\"b\"\"\"\n,c\n";
static const float weights[3] = {1, 2, 3};

static mnp_status body_fsio_write(void) {
    return fsio_write(&E, path, "new", 3);
}

static mnp_status body_fsio_stream(void) {
    enum { BIG = 100000 };
    static const char big[BIG];
    fsio_writer w;
    MNP_TRY(fsio_begin(&E, path, &w));
    for (int i = 0; i < 3; i++) {
        mnp_status status = fsio_append(&w, big, i == 1 ? BIG : BIG / 2);
        if (status == MNP_OK) continue;
        fsio_abort(&w);
        return status;
    }
    return fsio_commit(&w);
}

static mnp_status body_fsio_read(void) {
    char *data;
    size_t bytes;
    MNP_TRY(fsio_read(&E, path, 1000, &data, &bytes));
    env_free(&E, data);
    return MNP_OK;
}

static mnp_status body_json(void) {
    static const char text[] = "{\"a\": [1, 2, {\"b\": \"c\\u00e9\"}], \"d\": {}, \"e\": null}";
    json_doc *doc;
    json_writer w;
    buf b;
    MNP_TRY(json_parse(&E, "text", text, sizeof text - 1, &doc));
    buf_init(&b, &E);
    json_writer_init(&w, &b, 2);
    json_object_begin(&w);
    for (int i = 0; i < 100; i++) {
        char key[20];
        snprintf(key, sizeof key, "k%d", i);
        json_key(&w, key);
        json_put_number(&w, i / 3.0);
    }
    json_object_end(&w);
    mnp_status status = b.status;
    if (status == MNP_OK) status = fsio_write(&E, path, b.data, b.len);
    buf_free(&b);
    json_destroy(doc);
    return status;
}

static mnp_status body_json_read(void) {
    json_doc *doc;
    MNP_TRY(json_read(&E, path, 1 << 20, &doc));
    mnp_status status = json_get(json_root(doc), "k99") ? MNP_OK : MNP_EFORMAT;
    json_destroy(doc);
    return status;
}

static mnp_status body_safetensors_write(void) {
    safetensors_meta meta = {"options", "steps=7"};
    safetensors_tensor t[2] = {
        {.name = "w", .dtype = SAFETENSORS_F32, .ndim = 1, .shape = {3}, .data = weights},
        {.name = "u", .dtype = SAFETENSORS_U8, .ndim = 1, .shape = {5}, .data = "12345"}};
    return safetensors_write(&E, path, &meta, 1, t, 2);
}

static mnp_status body_safetensors_read(void) {
    safetensors_file *f;
    MNP_TRY(safetensors_read(&E, path, 1 << 20, &f));
    safetensors_destroy(f);
    return MNP_OK;
}

static mnp_status body_csv(void) {
    csv_table *t;
    csv_writer w;
    buf b;
    MNP_TRY(csv_parse(&E, "table", table_text, sizeof table_text - 1, '\0', &t));
    buf_init(&b, &E);
    csv_writer_init(&w, &b, '\0');
    for (int i = 0; i < 50; i++) {
        csv_put_text(&w, csv_cell(t, 0, 1));
        csv_put_double(&w, 0.1 * i);
        csv_end_row(&w);
    }
    mnp_status status = b.status;
    if (status == MNP_OK) status = fsio_write(&E, path, b.data, b.len);
    buf_free(&b);
    csv_destroy(t);
    return status;
}

static mnp_status body_csv_read(void) {
    csv_table *t;
    MNP_TRY(csv_read(&E, path, '\0', &t));
    csv_destroy(t);
    return MNP_OK;
}

static mnp_status body_npy_write(void) {
    npy_array a = {.type = NPY_F4, .ndim = 1, .shape = {3}, .data = (void *)(uintptr_t)weights};
    return npy_write(&E, path, &a);
}

static mnp_status body_npy_read(void) {
    npy_array a;
    MNP_TRY(npy_read(&E, path, 1 << 20, &a));
    npy_free(&E, &a);
    return MNP_OK;
}

static mnp_status body_fsio_check(void) {
    return fsio_check(&E, path);
}

static mnp_status body_png(void) {
    static const uint8_t pixels[12];
    return png_write_gray(&E, path, 4, 3, 8, pixels);
}

/* Names in reports are escaped on the way. */
static mnp_status body_plain(void) {
    buf b;
    buf_init(&b, &E);
    for (int i = 0; i < 300; i++) buf_plain(&b, "\033a");
    mnp_status status = b.status;
    if (status == MNP_OK) status = fsio_write(&E, path, b.data, b.len);
    buf_free(&b);
    return status;
}

/* ---- the runs -------------------------------------------------------------------------------- */

static const char old_text[] = "old,content\na,b\n";

static int files_in_folder(void) {
    DIR *d = opendir(folder);
    int n = -2;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static bool old_is_intact(void) {
    char text[sizeof old_text] = "";
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f) fclose(f);
    return n == sizeof old_text - 1 && memcmp(text, old_text, n) == 0;
}

/* What the path holds before each run: the old text, or a file made by another body. */
static void prepare(mnp_status (*before)(void)) {
    F = (faults){.left = -1};
    env_init(&E);
    E.allocator = (mnp_allocator){fault_alloc, fault_free, NULL};
    E.io = (env_io){fault_write, fault_fsync, fault_rename, NULL};
    CHECK((before ? before() : fsio_write(&E, path, old_text, sizeof old_text - 1)) == MNP_OK);
    F = (faults){.left = -1};
    E.error[0] = '\0';
}

static long fail_each(const char *name, mnp_status (*before)(void), mnp_status (*body)(void),
                      bool in_alloc, int error) {
    CASE(name);
    for (long n = 0; n < 1000; n++) {
        prepare(before);
        F.in_alloc = in_alloc;
        F.left = n;
        F.error = error;
        mnp_status status = body();
        CHECK(F.live == 0);
        CHECK(files_in_folder() == 1);
        if (!F.failed) {
            CHECK(status == MNP_OK);
            return n;
        }
        CHECK(status == (in_alloc ? MNP_ENOMEM : MNP_EIO) && E.error[0]);
        if (!before && !F.committed) CHECK(old_is_intact());
        if (!in_alloc) CHECK(strstr(E.error, path) && strstr(E.error, strerror(error)));
    }
    CHECK(false); /* the body never ran through */
    return 0;
}

static const struct {
    const char *name;
    mnp_status (*before)(void), (*body)(void);
    bool writes;
} bodies[] = {
    {"fsio_write", NULL, body_fsio_write, true},
    {"fsio stream", NULL, body_fsio_stream, true},
    {"fsio_read", NULL, body_fsio_read, false},
    {"json", NULL, body_json, true},
    {"json_read", body_json, body_json_read, false},
    {"safetensors_write", NULL, body_safetensors_write, true},
    {"safetensors_read", body_safetensors_write, body_safetensors_read, false},
    {"csv", NULL, body_csv, true},
    {"csv_read", NULL, body_csv_read, false},
    {"npy_write", NULL, body_npy_write, true},
    {"npy_read", body_npy_write, body_npy_read, false},
    {"fsio_check", NULL, body_fsio_check, false},
    {"png_write_gray", NULL, body_png, true},
    {"buf_plain", NULL, body_plain, true},
};
enum { BODIES = sizeof bodies / sizeof bodies[0] };

static void every_allocation_may_fail(void) {
    for (size_t i = 0; i < BODIES; i++) {
        long points = fail_each(bodies[i].name, bodies[i].before, bodies[i].body, true, 0);
        CHECK(points >= 1);
    }
}

static void every_system_call_may_fail(void) {
    static const int errors[] = {ENOSPC, EIO, EDQUOT};
    for (size_t i = 0; i < BODIES; i++)
        for (size_t k = 0; k < sizeof errors / sizeof errors[0]; k++) {
            long points =
                fail_each(bodies[i].name, bodies[i].before, bodies[i].body, false, errors[k]);
            /* at least a write, two fsyncs (file, directory) and a rename */
            CHECK(bodies[i].writes ? points >= 4 : points == 0);
        }
}

static void a_full_disk_is_called_so(void) {
    prepare(NULL);
    F.left = 0;
    F.error = ENOSPC;
    CHECK(body_safetensors_write() == MNP_EIO);
    CHECK(strstr(E.error, "cannot write") && strstr(E.error, "the disk is full: free some space"));
}

static void a_lost_directory_sync_leaves_the_whole_new_file(void) {
    prepare(NULL);
    F.left = 3; /* write, fsync and rename succeed */
    F.error = EIO;
    CHECK(fsio_write(&E, path, "whole", 5) == MNP_EIO && F.committed);
    CHECK(strstr(E.error, "written, but its directory cannot be synced"));
    char *data = NULL;
    size_t bytes = 0;
    CHECK(fsio_read(&E, path, 100, &data, &bytes) == MNP_OK && bytes == 5);
    env_free(&E, data);
    CHECK(F.live == 0);
}

static void short_and_interrupted_writes_lose_nothing(void) {
    prepare(NULL);
    F.limp = true;
    CHECK(body_safetensors_write() == MNP_OK && F.writes > 20);
    safetensors_file *f = NULL;
    CHECK(safetensors_read(&E, path, 1 << 20, &f) == MNP_OK);
    if (f) CHECK(memcmp(safetensors_find(f, "w")->data, weights, sizeof weights) == 0);
    safetensors_destroy(f);
    CHECK(F.live == 0 && files_in_folder() == 1);
}

static void a_system_without_fsync_is_no_failure(void) {
    prepare(NULL);
    F.left = 1; /* the fsync of the file */
    F.error = EINVAL;
    CHECK(fsio_write(&E, path, "fine", 4) == MNP_OK && F.failed);
}

int main(void) {
    const char *base = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%.150s/fault-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    RUN(every_allocation_may_fail);
    RUN(every_system_call_may_fail);
    RUN(a_full_disk_is_called_so);
    RUN(a_lost_directory_sync_leaves_the_whole_new_file);
    RUN(short_and_interrupted_writes_lose_nothing);
    RUN(a_system_without_fsync_is_no_failure);
    unlink(path);
    rmdir(folder);
    return check_done();
}
