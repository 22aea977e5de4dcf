/* service_map.h: what is doubtful about a map: the same for the command and for a request. */
#ifndef MNP_SERVE_MAP_H
#define MNP_SERVE_MAP_H

#include "util/fsio.h"

/* Of images with values from lo to hi: a line where one picture is drawn again and again, while the
 * sd (n) is large. differ: as in mnp_map. */
void map_alike(double lo, double hi, int64_t samples, const double *sd, int64_t n, double differ,
               buf *to);

#endif
