/* crc32.h: the checksum of PNG and ZIP files. */
#ifndef MNP_BASE_CRC32_H
#define MNP_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32(const uint8_t *data, size_t bytes);

#endif
