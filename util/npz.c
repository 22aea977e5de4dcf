/* npz.c: see npz.h. A ZIP file: for each member a local header, the name and the bytes; then the
 * same headers again with the places of the first, the central directory; then where that begins.
 * All numbers are little-endian. */
#include "util/npz.h"

#include <string.h>

#include "util/crc32.h"
#include "util/fsio.h"

enum { VERSION = 20, DATE = 0x21 /* 1 January 1980: the file is the same later */ };
#define FILE_MAX ((size_t)2 << 30)

static void put(buf *out, uint32_t v, int bytes) {
    for (int k = 0; k < bytes; k++) buf_append(out, &(uint8_t){(uint8_t)(v >> (8 * k))}, 1);
}

/* What both headers have: version, flags, no compression, time, CRC, sizes, lengths of the name and
 * of what follows it. */
static void put_common(buf *out, uint32_t crc, size_t bytes, size_t name) {
    put(out, VERSION, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, DATE, 2);
    put(out, crc, 4);
    put(out, (uint32_t)bytes, 4);
    put(out, (uint32_t)bytes, 4);
    put(out, (uint32_t)name, 2);
    put(out, 0, 2);
}

static void put_name(buf *out, const char *name) {
    buf_text(out, name);
    buf_text(out, ".npy");
}

static mnp_status put_member(buf *out, buf *directory, const npz_member *m) {
    buf file;
    buf_init(&file, out->e);
    mnp_status status = npy_encode(&file, &m->array);
    if (status == MNP_OK && out->len + file.len > FILE_MAX)
        status =
            env_fail(out->e, MNP_EINVAL, "an .npz file of more than 2 GB; take fewer functions");
    if (status == MNP_OK) {
        uint32_t crc = crc32((const uint8_t *)file.data, file.len);
        size_t name = strlen(m->name) + 4, at = out->len;
        put(out, 0x04034b50, 4);
        put_common(out, crc, file.len, name);
        put_name(out, m->name);
        buf_append(out, file.data, file.len);
        put(directory, 0x02014b50, 4);
        put(directory, VERSION, 2);
        put_common(directory, crc, file.len, name);
        put(directory, 0, 2); /* comment, disk, attributes of the file */
        put(directory, 0, 2);
        put(directory, 0, 2);
        put(directory, 0, 4);
        put(directory, (uint32_t)at, 4);
        put_name(directory, m->name);
        status = out->status != MNP_OK ? out->status : directory->status;
    }
    buf_free(&file);
    return status;
}

mnp_status npz_write(env *e, const char *path, const npz_member *members, int count) {
    buf out, directory;
    buf_init(&out, e);
    buf_init(&directory, e);
    mnp_status status = MNP_OK;
    for (int k = 0; k < count && status == MNP_OK; k++)
        status = put_member(&out, &directory, &members[k]);
    if (status == MNP_OK) {
        size_t at = out.len;
        buf_append(&out, buf_str(&directory), directory.len);
        put(&out, 0x06054b50, 4);
        put(&out, 0, 4); /* one disk */
        put(&out, (uint32_t)count, 2);
        put(&out, (uint32_t)count, 2);
        put(&out, (uint32_t)directory.len, 4);
        put(&out, (uint32_t)at, 4);
        put(&out, 0, 2);
        status = out.status;
    }
    if (status == MNP_OK) status = fsio_write(e, path, out.data, out.len);
    buf_free(&out);
    buf_free(&directory);
    return status;
}
