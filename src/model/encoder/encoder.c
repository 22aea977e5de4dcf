/* encoder.c: the table of set encoders. */
#include "model/encoder/encoder.h"

#define ENCODER(name) extern const encoder_def encoder_##name;
#include "model/encoder/encoders.def"
#undef ENCODER

const encoder_def *encoder_at(int id) {
    static const encoder_def *const table[] = {
#define ENCODER(name) &encoder_##name,
#include "model/encoder/encoders.def"
#undef ENCODER
    };
    return id >= 0 && id < ENCODER_COUNT ? table[id] : table[0];
}
