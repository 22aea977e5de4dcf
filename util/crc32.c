/* crc32.c: see crc32.h. */
#include "util/crc32.h"

/* CRC-32 with the reflected polynomial 0xEDB88320, four bits at a time. */
uint32_t crc32(const uint8_t *data, size_t bytes) {
    uint32_t table[16], crc = 0xFFFFFFFFu;
    for (uint32_t k = 0; k < 16; k++) {
        table[k] = k;
        for (int bit = 0; bit < 4; bit++)
            table[k] = table[k] & 1 ? 0xEDB88320u ^ (table[k] >> 1) : table[k] >> 1;
    }
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}
