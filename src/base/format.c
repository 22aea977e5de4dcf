/* format.c: see format.h. */
#include "base/format.h"

#include "util/text.h"

mnp_status format_check(env *e, const char *what, const char *found, const char *known) {
    uint64_t number = 0, newest = 0;
    (void)text_parse_uint64(known, &newest);
    if (!found || text_parse_uint64(found, &number) != TEXT_OK || number == 0)
        return env_fail(e, MNP_EFORMAT, "this is not %s of this program", what);
    if (number <= newest) return MNP_OK;
    return env_fail(e, MNP_EFORMAT,
                    "this is %s of format %s, made by a newer version; mnp %s reads format %s: "
                    "update mnp",
                    what, found, MNP_VERSION, known);
}

mnp_status format_options(env *e, const option_view *view, const char *text) {
    MNP_TRY(options_defaults(e, view, 1));
    mnp_status status = options_parse(e, view, 1, text);
    if (status != MNP_EINVAL) return status;
    return env_fail(e, MNP_EFORMAT, "%.300s (mnp %s: is the file from a newer version?)", e->error,
                    MNP_VERSION);
}
