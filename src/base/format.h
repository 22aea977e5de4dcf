/* format.h: files that outlive a version. docs/dev/formats.md, "How formats change", has the rules.
 */
#ifndef MNP_BASE_FORMAT_H
#define MNP_BASE_FORMAT_H

#include "base/options.h"

/* `found` is the format number that a file states, NULL where it states none; `known` is the one
 * that this version writes. A higher number is refused as a newer version's file. */
mnp_status format_check(env *e, const char *what, const char *found, const char *known);

/* The options that a file holds as text. One that it lacks is newer than the file and has its
 * default. A name or value that is not known here is refused, as a newer version's too. */
mnp_status format_options(env *e, const option_view *view, const char *text);

#endif
