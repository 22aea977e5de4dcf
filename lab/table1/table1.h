/* table1.h: table 1: every model on every data set with every seed. The cells of model m on data
 * set d begin at table1_first(s, m, d).
 *
 *     table1.c  flags, cells;  write.c  the tables and their picture;  curves.c  the scores by
 *     context size */
#ifndef MNP_LAB_TABLE1_H
#define MNP_LAB_TABLE1_H

#include "lab/runs.h"

static inline int table1_first(const runs *s, int m, int d) {
    return (m * s->data.count + d) * s->seeds;
}

int table1_pictures(study *s);
void table1_markdown(buf *b, const study *s);
void table1_json(cli_json *j, const study *s);

/* Model m on data set d: the mean curve of its seeds; as Markdown; as a picture. */
curve table1_curve(const runs *s, int m, int d, int protocol);
void table1_curves(buf *b, const runs *s, int protocol);
void table1_draw_curves(const runs *s, int d, int protocol, mnp_panel *p);

#endif
