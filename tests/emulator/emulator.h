/* emulator.h: the CUDA kernels on the CPU. A block runs at a time; each of its threads is a fibre
 * with a stack of its own, which runs until it has to wait for others: at a barrier or in an
 * instruction of a warp. Which fibre goes on changes at barriers, forwards or backwards, so that a
 * missing barrier shows; but it is the same in every run, and so are the results.
 *
 * What a GPU leaves undefined stops the program with a message that says where: a barrier that some
 * threads never reach, threads at different __syncthreads, lanes of a warp in different
 * instructions, addresses of shared memory out of range or not aligned, memory or instructions that
 * the GPU does not have. Shared memory starts as
 * NaNs, and so is what an asynchronous copy is about to overwrite until somebody waits for it. */
#ifndef MNP_EMULATOR_H
#define MNP_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

enum { EMULATED_SHARED_BYTES = 227 * 1024, EMULATED_PROCESSORS = 4 };

/* The GPU that is emulated: 10 times its compute capability (90, unless the environment has another
 * one, MNP_EMULATED_GPU=8.6), and the shared memory that a block of it can have. */
int emulated_capability(void);
int emulated_shared_limit(void);

struct emulated_xyz {
    unsigned x, y, z;
};

/* The thread that runs, and its place. */
extern emulated_xyz emulated_thread, emulated_block, emulated_block_size, emulated_grid_size;

struct emulated_place {
    const char *file;
    int line;
};
[[noreturn]] void emulated_fail(emulated_place at, const char *what);
#define EMULATED_HERE                                                                              \
    { __builtin_FILE(), __builtin_LINE() }

/* All lanes of the mask call it with the same `act`; the last one that arrives calls
 * act(what[32], mask), `what` being each lane's, and then all go on. */
typedef void emulated_act(void *const what[32], unsigned mask);
void emulated_together(emulated_act *act, unsigned mask, void *what, emulated_place at);

/* `threads` threads wait for each other; strict: all at the same place of the source. */
void emulated_barrier(int id, int threads, bool strict, emulated_place at);

/* Shared memory of the block that runs; device/frame.cuh divides it. */
extern unsigned char smem[];
/* Where a pointer lies in it, and the address of `bytes` bytes. */
uint32_t emulated_shared_at(const void *p);
void *emulated_shared(uint32_t at, uint32_t bytes);

/* Copies of the thread that runs. */
void emulated_copy16(uint32_t to, const float *from, bool valid);
void emulated_copy_commit(void);
void emulated_copy_wait(int leave);

/* The copy engine. Into shared memory: NaNs until somebody waits for the arrival. Out of it: read
 * as late as may be, when the thread waits for that, and there when it waits for all. */
void emulated_bulk_load(uint32_t to, const float *from, int bytes, uint32_t arrival,
                        emulated_place at);
void emulated_arrival_wait(uint32_t arrival, emulated_place at);
void emulated_arrival_renew(uint32_t arrival, emulated_place at);
void emulated_bulk_store(float *to, uint32_t from, int bytes, bool adds, emulated_place at);
void emulated_bulk_commit(void);
void emulated_bulk_wait(bool read);

/* A group's products read shared memory until the thread waits for them (races.h). */
void emulated_group_reads(uint32_t at, int bytes);
void emulated_group_wait(void);

/* The tensor core: d = a b + c of the lane; K = 8 (tf32) or 16 (bf16, halves) */
struct emulated_product {
    float *d;
    const uint32_t *a, *b;
    const float *c;
};
emulated_act emulated_mma_tf32, emulated_mma_bf16, emulated_mma_half;

/* c (16, 8 J) += a^T b of 16 rows of 16-bit numbers in shared memory, by octets `pitch` apart; c as
 * the lane has it */
struct emulated_rows_product {
    float *c;
    uint32_t a, a_pitch, b, b_pitch;
    int J;
};
emulated_act emulated_rows_half, emulated_rows_bf16;

/* ldmatrix.x4 and stmatrix.x4: the lane's row of 16 bytes and its four words */
struct emulated_rows {
    void *row;
    uint32_t *w;
};
emulated_act emulated_load_matrices, emulated_load_transposed, emulated_store_transposed;

/* A lane's 8 bytes at most, from lane `from`. */
struct emulated_exchange {
    uint64_t value;
    int from;
};
emulated_act emulated_shuffle;

/* What a lane says, and the lanes that said yes. */
struct emulated_vote {
    bool yes;
    unsigned all;
};
emulated_act emulated_ballot;

emulated_act emulated_nothing;

#endif
