/* gen_images.h: mnp gen geofluvial: images of simulated rivers. */
#ifndef MNP_CLI_GEN_IMAGES_H
#define MNP_CLI_GEN_IMAGES_H

#include "cli/cli.h"

int gen_images(cli *c);
void gen_images_help(FILE *to);

#endif
