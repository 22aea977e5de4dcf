/* microhttpd.c: see microhttpd.h. */
#include "serve/microhttpd.h"

#include "util/syslib.h"

mnp_status mhd_load(env *e, mhd_api *out) {
    static const syslib_word words[] = {
#define LIBRARY(file)                SYSLIB_FILE(file)
#define FUNCTION(result, name, args) SYSLIB_NAME("MHD_" #name)
#include "serve/microhttpd.def"
        {0}};
    char why[SYSLIB_WHY];
    if (syslib_load(words, out, why)) return MNP_OK;
    return env_fail(e, MNP_EUNSUPPORTED,
                    "the server needs %s: apt-get install libmicrohttpd12 (%s)", words[0].file,
                    why);
}
