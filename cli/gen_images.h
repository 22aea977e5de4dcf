/* gen_images.h: mnp gen geofluvial: images of simulated rivers. */
#ifndef MNP_CLI_GEN_IMAGES_H
#define MNP_CLI_GEN_IMAGES_H

#include "cli/cli.h"

/* Is `what` geofluvial, with or without constants ("geofluvial:nit=400")? */
bool gen_images_named(const char *what);
int gen_images(cli *c);
void gen_images_help(FILE *to);

#endif
