/* about.h: what a model's notes say of the data it was trained on: its own table, a built-in family
 * or images. They are read anew at each call: none is made often. */
#ifndef MNP_RUN_ABOUT_H
#define MNP_RUN_ABOUT_H

#include "model/model.h"

/* The range of input k, or of the output where k is the number of inputs. False: not known, or a
 * category. */
bool about_range(const model *m, int64_t k, double *lo, double *hi);
/* The most points that training showed as a context; 0: not known. */
int64_t about_context_max(const model *m);
/* sd of the noise on y, in units of y; NaN: not known, or there is none. */
double about_noise(const model *m);
/* Images, whose inputs are a row and a column; of rivers; and their size. */
bool about_images(const model *m);
bool about_rivers(const model *m);
bool about_pixels(const model *m, int64_t *rows, int64_t *cols);

#endif
