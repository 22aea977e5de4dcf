/* outputs.c: see outputs.h. */
#define _XOPEN_SOURCE 700
#include "cli/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- standard output ------------------------------------------------------------------------- */

static const char stdout_name[] = "standard output";

void outputs_begin(outputs *o) {
    *o = (outputs){0};
    env_init(&o->e);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        if (fd == STDOUT_FILENO) o->closed = true;
        /* the lowest free number is this one; reading or writing it fails, as when it was closed */
        (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

void outputs_flush(outputs *o) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    if (o->stdout_error == 0) o->stdout_error = errno ? errno : EIO;
}

int outputs_end(outputs *o, int status) {
    errno = 0;
    outputs_flush(o);
    errno = 0;
    if (fclose(stdout) != 0 && o->stdout_error == 0) o->stdout_error = errno ? errno : EIO;
    if (o->stdout_error && status == 0) {
        status = EXIT_FAILED;
        fsio_error(&o->e, stdout_name, "write", o->stdout_error);
        if (!o->told) fprintf(stderr, "mnp: %s\n", o->e.error);
    }
    for (size_t k = 0; k < o->count; k++) env_free(&o->e, o->files[k].name);
    env_free(&o->e, o->files);
    return status;
}

int cli_printed(cli *c) {
    outputs *o = c->outputs;
    outputs_flush(o);
    if (o->stdout_error == 0) return 0;
    fsio_error(&o->e, stdout_name, "write", o->stdout_error);
    if (!o->told) cli_fail(c, EXIT_FAILED, "%s", o->e.error);
    o->told = true;
    return EXIT_FAILED;
}

int cli_check_stdout(cli *c) {
    if (!c->outputs->closed || (c->quiet && !c->json)) return 0;
    return cli_fail(c, EXIT_FAILED,
                    "%s is closed: send it to a file or to /dev/null, or say --quiet", stdout_name);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool ends_in_png(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcasecmp(name + length - 4, ".png") == 0;
}

/* Is `folder` the one in which the file `path` lies? */
static bool lies_in(const char *path, const outputs_file *folder) {
    char parent[4096];
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof parent) return false;
    snprintf(parent, sizeof parent, "%.*s", (int)length, path);
    if (!slash) strcpy(parent, ".");
    if (slash == path) strcpy(parent, "/");
    return stat(parent, &st) == 0 && st.st_dev == folder->device && st.st_ino == folder->number;
}

static int clash(cli *c, const outputs_file *out, const outputs_file *in) {
    bool same = out->number == in->number && out->device == in->device && out->number != 0;
    if (same && in->folder)
        return cli_fail(c, EXIT_USAGE,
                        "%s would be written into %s, which this run reads: choose "
                        "another folder for the output",
                        out->name, in->name);
    if (same)
        return cli_fail(c, EXIT_USAGE,
                        "%s would be written over %s, which this run reads: choose "
                        "another name for the output",
                        out->name, in->name);
    if (in->folder && !out->folder && ends_in_png(out->name) && lies_in(out->name, in))
        return cli_fail(c, EXIT_USAGE,
                        "%s would become one of the images of %s, which this run "
                        "reads: choose another folder for the output",
                        out->name, in->name);
    return 0;
}

/* Keeps the file and compares it with those of the other kind. */
static int add(cli *c, outputs_file file, const char *name) {
    outputs *o = c->outputs;
    if (o->count == o->cap) {
        size_t cap = o->cap ? 2 * o->cap : 16;
        void *files = env_grow(&o->e, o->files, o->cap, cap, sizeof *o->files, "names of files");
        if (!files) return cli_fail(c, EXIT_FAILED, "%s", o->e.error);
        o->files = files;
        o->cap = cap;
    }
    file.name = env_strdup(&o->e, name);
    if (!file.name) return cli_fail(c, EXIT_FAILED, "%s", o->e.error);
    o->files[o->count++] = file;
    for (size_t k = 0; k + 1 < o->count; k++) {
        const outputs_file *other = &o->files[k];
        if (other->written == file.written) continue;
        int code = file.written ? clash(c, &file, other) : clash(c, other, &file);
        if (code) return code;
    }
    return 0;
}

/* Standard output may go to a file too: known once, before the first other file. */
static int add_stdout(cli *c) {
    struct stat st;
    if (c->outputs->count > 0 || c->outputs->closed) return 0;
    if (fstat(STDOUT_FILENO, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
    outputs_file out = {.device = st.st_dev, .number = st.st_ino, .written = true};
    return add(c, out, stdout_name);
}

int cli_input(cli *c, const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) return 0;
    outputs_file in = {
        .device = st.st_dev, .number = st.st_ino, .folder = S_ISDIR(st.st_mode) != 0};
    int code = add_stdout(c);
    return code ? code : add(c, in, path);
}

int cli_input_data(cli *c, const char *what) {
    const char *path = mnp_data_path(what);
    return path ? cli_input(c, path) : 0;
}

int cli_output(cli *c, const char *path) {
    struct stat st;
    outputs_file out = {.written = true};
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) out.device = st.st_dev, out.number = st.st_ino;
    int code = add_stdout(c);
    if (code == 0) code = add(c, out, path);
    if (code || !cli_writes(c) || fsio_check(&c->env, path) == MNP_OK) return code;
    return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
}

static int folder_failed(cli *c, const char *path, const char *verb, int err) {
    fsio_error(&c->env, path, verb, err);
    return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
}

int cli_output_folder(cli *c, const char *path) {
    if (cli_writes(c) && mkdir(path, 0777) != 0 && errno != EEXIST)
        return folder_failed(c, path, "make the folder", errno);
    struct stat st = {0};
    bool there = stat(path, &st) == 0;
    outputs_file out = {.device = st.st_dev, .number = st.st_ino, .written = true, .folder = true};
    int code = add_stdout(c);
    if (code == 0) code = add(c, out, path);
    if (code || !cli_writes(c)) return code;
    if (there && !S_ISDIR(st.st_mode)) return folder_failed(c, path, "write into", ENOTDIR);
    return access(path, W_OK | X_OK) == 0 ? 0 : folder_failed(c, path, "write into", errno);
}
