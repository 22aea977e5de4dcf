/* ablation.h: one model with one option changed at a time. Cells v * seeds to (v + 1) * seeds - 1
 * are variant v.
 *
 *     ablation.c  the variants as cells;  write.c  tables and picture */
#ifndef MNP_LAB_ABLATION_H
#define MNP_LAB_ABLATION_H

#include "lab/runs.h"

int ablation_base(const study *s); /* steps T of the model the others vary */
int ablation_pictures(study *s);
void ablation_markdown(buf *b, const study *s);
void ablation_json(cli_json *j, const study *s);

#endif
