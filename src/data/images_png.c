/* images_png.c: see images_png.h. */
#include "data/images_png.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/fsio.h"
#include "util/png_read.h"

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_png(const char *name) {
    size_t length = strlen(name);
    return length > 4 && name[0] != '.' && strcasecmp(name + length - 4, ".png") == 0;
}

static mnp_status add(env *e, const char *dir, const char *name, png_list *list) {
    if (list->count == list->cap) {
        size_t cap = list->cap ? 2 * (size_t)list->cap : 64;
        char **paths = env_grow(e, list->paths, (size_t)list->cap, cap, sizeof *paths, "a folder");
        if (!paths) return MNP_ENOMEM;
        list->paths = paths;
        list->cap = (int64_t)cap;
    }
    buf path;
    buf_init(&path, e);
    mnp_status status = buf_printf(&path, "%s/%s", dir, name);
    if (status == MNP_OK && !(list->paths[list->count] = env_strdup(e, buf_str(&path))))
        status = MNP_ENOMEM;
    if (status == MNP_OK) list->count++;
    buf_free(&path);
    return status;
}

mnp_status png_list_open(env *e, const char *dir, png_list *out) {
    *out = (png_list){0};
    DIR *d = opendir(dir);
    if (!d) return env_fail(e, MNP_EIO, "%s: %s", dir, strerror(errno));
    mnp_status status = MNP_OK;
    for (struct dirent *entry; status == MNP_OK && (entry = readdir(d));)
        if (is_png(entry->d_name)) status = add(e, dir, entry->d_name, out);
    closedir(d);
    if (status == MNP_OK && out->count == 0)
        status =
            env_fail(e, MNP_EFORMAT,
                     "%s: neither images of 'mnp gen geofluvial' nor a file .png is in it", dir);
    if (status == MNP_OK) {
        qsort(out->paths, (size_t)out->count, sizeof *out->paths, by_name);
        status = png_measure(e, out->paths[0], &out->rows, &out->cols);
    }
    if (status != MNP_OK) png_list_close(e, out);
    return status;
}

void png_list_close(env *e, png_list *list) {
    for (int64_t k = 0; k < list->count; k++) env_free(e, list->paths[k]);
    env_free(e, list->paths);
    *list = (png_list){0};
}

static mnp_status same_sides(env *e, const png_list *list, int64_t k, int64_t rows, int64_t cols) {
    if (rows == list->rows && cols == list->cols) return MNP_OK;
    return env_fail(e, MNP_EFORMAT, "%s: %lld x %lld pixels, but %s has %lld x %lld",
                    list->paths[k], (long long)rows, (long long)cols, list->paths[0],
                    (long long)list->rows, (long long)list->cols);
}

mnp_status png_list_check(env *e, const png_list *list, int64_t k) {
    int64_t rows, cols;
    MNP_TRY(png_measure(e, list->paths[k], &rows, &cols));
    return same_sides(e, list, k, rows, cols);
}

mnp_status png_list_read(env *e, const png_list *list, int64_t k, float *y) {
    png_picture p;
    MNP_TRY(png_read(e, list->paths[k], &p));
    mnp_status status = same_sides(e, list, k, p.rows, p.cols);
    if (status == MNP_OK) memcpy(y, p.gray, (size_t)(p.rows * p.cols) * sizeof *y);
    png_free(e, &p);
    return status;
}
