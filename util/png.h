/* png.h: grey pictures as PNG files, without other libraries. The data are stored, not compressed:
 * a picture has width * height * bits / 8 bytes and a few more. */
#ifndef MNP_BASE_PNG_H
#define MNP_BASE_PNG_H

#include "util/fsio.h"
#include "util/limits.h"

/* Appends the file. pixels (height, width): 0 is black; white is 255 with 8 bits a pixel, and any
 * other number with 1 bit. */
mnp_status png_gray(buf *out, int64_t width, int64_t height, int bits, const uint8_t *pixels);
/* The same into a file, which is replaced whole. */
mnp_status png_write_gray(env *e, const char *path, int64_t width, int64_t height, int bits,
                          const uint8_t *pixels);

#endif
