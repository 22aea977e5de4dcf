/* http_assets.c: see http_assets.h. Paths are compared as a whole: there is no folder to leave. */
#include "serve/http_assets.h"

#include <string.h>

const http_asset *http_asset_find(const char *path) {
    if (strcmp(path, "/") == 0) path = "/index.html";
    for (const http_asset *a = http_assets; a->path; a++)
        if (strcmp(a->path, path) == 0) return a;
    return NULL;
}
