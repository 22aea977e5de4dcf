/* inflate.h: undoing zlib's compression (RFC 1950 and 1951). */
#ifndef MNP_BASE_INFLATE_H
#define MNP_BASE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Expands a zlib stream into exactly `size` bytes. False where the stream is damaged, has another
 * length, or its checksum is wrong. */
bool inflate_zlib(const uint8_t *in, size_t bytes, uint8_t *out, size_t size);

#endif
