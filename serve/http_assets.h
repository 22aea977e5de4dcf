/* http_assets.h: the files of the page, which are part of the command (scripts/embed.sh writes
 * their bytes as C at build time). */
#ifndef MNP_SERVE_HTTP_ASSETS_H
#define MNP_SERVE_HTTP_ASSETS_H

#include <stddef.h>

typedef struct http_asset {
    const char *path; /* "/style.css" */
    const char *type; /* media type */
    const char *tag;  /* of these bytes, in quotes (ETag); NULL: none */
    const void *data;
    size_t bytes;
} http_asset;

extern const http_asset http_assets[]; /* a NULL path ends them */

/* NULL: there is no such file. "/" is "/index.html". */
const http_asset *http_asset_find(const char *path);

#endif
