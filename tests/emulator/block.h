/* block.h: a block of a kernel, from its first thread's begin to its last one's end. */
#ifndef MNP_EMULATOR_BLOCK_H
#define MNP_EMULATOR_BLOCK_H

#include <stdint.h>

#include <functional>

/* shared: bytes of shared memory */
void emulated_run_block(unsigned index, unsigned threads, uint32_t shared,
                        const std::function<void()> &body);

#endif
