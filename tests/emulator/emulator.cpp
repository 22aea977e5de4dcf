/* emulator.cpp: see emulator.h: fibres, their rendezvous, shared memory and copies to it. x86-64
 * alone: the switch of fibres is written in assembly. */
#include "emulator.h"

#include <math.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <functional>
#include <vector>

#include "block.h"
#include "races.h"

enum { THREADS_MOST = 1024, WARPS_MOST = THREADS_MOST / 32, BARRIERS = 16 };
enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096 };
enum { LOADS_MOST = 4096 };
enum { TAGS = 1024 }; /* of a barrier's uses, one after the other */

struct Copy {
    uint32_t to;
    const float *from; /* NULL: zeros */
    int64_t group;
};

struct BulkLoad {
    uint32_t to, arrival;
    const float *from;
    size_t bytes;
};

struct BulkStore {
    float *to;
    uint32_t from;
    size_t bytes;
    bool adds;
    std::vector<unsigned char> read; /* empty: not yet */
};

struct Operand {
    uint32_t at, bytes;
};

struct Fibre {
    void *sp; /* where it goes on */
    emulated_place waits;
    std::vector<Copy> copies; /* on their way */
    int64_t groups;           /* committed    */
    std::vector<BulkStore> stores;
    size_t stores_committed;
    std::vector<Operand> operands; /* of products on their way */
    void *races;                   /* the sanitizer's fibre    */
};

/* Bits are lanes. */
struct Warp {
    unsigned ready, arrived;
    emulated_act *act[32];
    unsigned mask[32];
    void *what[32];
    int uses;
    char tags[TAGS];
};

struct Barrier {
    int threads, arrived;
    emulated_place first;
    unsigned waiting[WARPS_MOST];
    int uses;
    char tags[TAGS];
};

emulated_xyz emulated_thread, emulated_block, emulated_block_size, emulated_grid_size;
alignas(128) unsigned char smem[EMULATED_SHARED_BYTES];

static Fibre fibres[THREADS_MOST];
static Warp warps[WARPS_MOST];
static Barrier barriers[BARRIERS];
static std::vector<BulkLoad> loads; /* on their way */
static unsigned char *stacks;
static void *host; /* the stack pointer of the caller of run_block */
static void *host_races;
static char starts, ends; /* tags */
static int n_warps, n_running;
static uint32_t shared_bytes; /* of the block */
/* Threads run in turn, forwards or backwards. Which of them changes at barriers, so that a barrier
 * that is missing shows wherever it is; the bits of `order` decide. It goes on from launch to
 * launch: a step that is repeated runs in another order, and must have the same bits. */
static bool backwards;
static uint32_t order;
static const std::function<void()> *kernel;

void emulated_fail(emulated_place at, const char *what) {
    fprintf(stderr, "emulator: block %u, thread %u, %s:%d: %s\n", emulated_block.x,
            emulated_thread.x, at.file, at.line, what);
    abort();
}

/* ---- the GPU ----------------------------------------------------------------------------------
 */

int emulated_capability(void) {
    static const char *const text = getenv("MNP_EMULATED_GPU");
    static const int number = text ? (int)lround(10 * atof(text)) : 90;
    return number;
}
/* "Maximum amount of shared memory per thread block" of the CUDA programming guide */
int emulated_shared_limit(void) {
    const int of = emulated_capability();
    const int kilobytes = of < 80                             ? 64
                          : of == 80 || of == 87              ? 163
                          : of == 86 || of == 89 || of >= 120 ? 99
                                                              : 227;
    return kilobytes * 1024;
}

/* ---- fibres ---------------------------------------------------------------------------------- */

/* Keeps the registers that a called function must keep on the present stack, and goes on with
 * another one. */
extern "C" void emulator_switch(void **from, void *to);
asm(".text\n"
    ".type emulator_switch, @function\n"
    "emulator_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq "
    "%r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size emulator_switch, . - emulator_switch\n");

[[noreturn]] static void deadlock(void) {
    fprintf(stderr, "emulator: block %u: the threads wait for each other:\n", emulated_block.x);
    for (int t = 0, from = 0; t < n_warps * 32; t++) {
        const bool last = t + 1 == n_warps * 32 ||
                          fibres[t + 1].waits.line != fibres[t].waits.line ||
                          fibres[t + 1].waits.file != fibres[t].waits.file;
        if (!last) continue;
        if (fibres[t].waits.file)
            fprintf(stderr, "  threads %d to %d: %s:%d\n", from, t, fibres[t].waits.file,
                    fibres[t].waits.line);
        else
            fprintf(stderr, "  threads %d to %d: at the kernel's end\n", from, t);
        from = t + 1;
    }
    abort();
}

static int lane_of(unsigned ready) {
    return backwards ? 31 - __builtin_clz(ready) : __builtin_ctz(ready);
}

/* The next thread that can go on: a lane of the same warp, so that few stacks are in use at a time,
 * or one of the next warp. */
static int next_thread(int now) {
    const int warp = now / 32;
    const unsigned ready = warps[warp].ready, own = 1u << now % 32;
    const unsigned ahead = ready & (backwards ? own - 1u : ~(own | (own - 1u)));
    if (ready) return warp * 32 + lane_of(ahead ? ahead : ready);
    for (int k = 1; k < n_warps; k++) {
        const int w = (warp + (backwards ? n_warps - k : k)) % n_warps;
        if (warps[w].ready) return w * 32 + lane_of(warps[w].ready);
    }
    deadlock();
}

/* The present thread waits; others run until it can go on. */
static void wait(void) {
    const int now = (int)emulated_thread.x, next = next_thread(now);
    if (next == now) return;
    emulated_thread.x = (unsigned)next;
    races_switch(fibres[next].races);
    emulator_switch(&fibres[now].sp, fibres[next].sp);
}

static void thread_main(void) {
    races_acquire(&starts);
    (*kernel)();
    races_release(&ends);
    const int now = (int)emulated_thread.x;
    if (!fibres[now].stores.empty())
        emulated_fail(fibres[now].waits, "a thread has ended whose stores are on their way");
    warps[now / 32].ready &= ~(1u << now % 32);
    fibres[now].waits = {nullptr, 0};
    if (--n_running == 0) {
        races_switch(host_races);
        emulator_switch(&fibres[now].sp, host);
    } else {
        wait();
    }
    abort(); /* nobody goes on with a thread that has ended */
}

/* Stacks of neighbours begin at different places of the cache. */
static void start_thread(int t) {
    unsigned char *end = stacks + (size_t)(t + 1) * STACK_BYTES - t % 32 * 832 / 64 * 64;
    void **sp = (void **)end;
    ASAN_UNPOISON_MEMORY_REGION(end - 4096,
                                4096); /* the last thread that ended here did not return */
    *--sp = nullptr; /* a called function finds its stack 8 bytes off a multiple of 16 */
    *--sp = (void *)thread_main;
    for (int k = 0; k < 6; k++) *--sp = nullptr;
    fibres[t].sp = sp;
    fibres[t].waits = {nullptr, 0};
    fibres[t].copies.clear();
    fibres[t].groups = 0;
    fibres[t].stores_committed = 0;
    fibres[t].operands.clear();
    if (!fibres[t].races) fibres[t].races = races_thread();
}

static void make_stacks(void) {
    const size_t bytes = (size_t)THREADS_MOST * STACK_BYTES;
    stacks = (unsigned char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) abort();
    for (int t = 0; t < THREADS_MOST; t++)
        mprotect(stacks + (size_t)t * STACK_BYTES, GUARD_BYTES, PROT_NONE);
}

/* Beyond the block's shared memory nothing may be written. */
static void check_beyond(void) {
    for (uint32_t k = shared_bytes; k < EMULATED_SHARED_BYTES; k++)
        if (smem[k] != 0xff) emulated_fail({"shared memory", (int)k}, "out of range");
}

void emulated_run_block(unsigned index, unsigned threads, uint32_t shared,
                        const std::function<void()> &body) {
    if (!stacks) make_stacks();
    if (threads % 32 || threads > THREADS_MOST) abort();
    memset(smem, 0xff, sizeof smem); /* NaNs */
    shared_bytes = shared;
    for (Barrier &b : barriers) {
        b.arrived = 0;
        memset(b.waiting, 0, sizeof b.waiting);
    }
    loads.clear();
    loads.reserve(LOADS_MOST); /* threads share it: it must not move */
    n_warps = (int)threads / 32, n_running = (int)threads;
    kernel = &body;
    for (int w = 0; w < n_warps; w++) warps[w].ready = ~0u, warps[w].arrived = 0;
    for (int t = 0; t < (int)threads; t++) start_thread(t);
    emulated_block = {index, 0, 0};
    emulated_block_size = {threads, 1, 1};
    emulated_thread = {backwards ? threads - 1 : 0, 0, 0};
    host_races = races_host();
    races_release(&starts);
    races_switch(fibres[emulated_thread.x].races);
    emulator_switch(&host, fibres[emulated_thread.x].sp);
    races_acquire(&ends);
    check_beyond();
}

/* ---- rendezvous ------------------------------------------------------------------------------ */

void emulated_together(emulated_act *act, unsigned mask, void *what, emulated_place at) {
    const int now = (int)emulated_thread.x, lane = now % 32;
    Warp &w = warps[now / 32];
    const unsigned others = w.arrived & mask;
    const int other = others ? __builtin_ctz(others) : lane;
    if (!(mask >> lane & 1u)) emulated_fail(at, "a lane is not in its own mask");
    if (others && (w.act[other] != act || w.mask[other] != mask))
        emulated_fail(at, "the lanes of a warp are in different instructions");
    const bool orders =
        act == emulated_nothing || act == emulated_load_matrices || act == emulated_load_transposed;
    char *tag = orders ? &w.tags[w.uses % TAGS] : nullptr;
    if (tag) races_release(tag);
    w.act[lane] = act, w.mask[lane] = mask, w.what[lane] = what;
    w.arrived |= 1u << lane;
    if ((w.arrived & mask) != mask) {
        fibres[now].waits = at;
        w.ready &= ~(1u << lane);
        wait();
    } else {
        act(w.what, mask);
        w.arrived &= ~mask;
        w.ready |= mask;
        w.uses++;
    }
    if (tag) races_acquire(tag);
}

void emulated_barrier(int id, int threads, bool strict, emulated_place at) {
    const int now = (int)emulated_thread.x;
    if (id < 0 || id >= BARRIERS) emulated_fail(at, "there is no such barrier");
    Barrier &b = barriers[id];
    if (b.arrived == 0) b.threads = threads, b.first = at;
    if (b.threads != threads) emulated_fail(at, "a barrier of different sizes");
    if (strict && (b.first.line != at.line || strcmp(b.first.file, at.file) != 0)) {
        fprintf(stderr, "emulator: the others wait in %s:%d\n", b.first.file, b.first.line);
        emulated_fail(at, "threads of a block are at different barriers");
    }
    char *tag = &b.tags[b.uses % TAGS];
    races_release(tag);
    b.waiting[now / 32] |= 1u << now % 32;
    if (++b.arrived < threads) {
        fibres[now].waits = at;
        warps[now / 32].ready &= ~(1u << now % 32);
        wait();
        races_acquire(tag);
        return;
    }
    races_acquire(tag);
    b.uses++;
    for (int w = 0; w < n_warps; w++) warps[w].ready |= b.waiting[w], b.waiting[w] = 0;
    b.arrived = 0;
    order = order * 1664525u + 1013904223u;
    backwards = order >> 31;
}

/* ---- shared memory --------------------------------------------------------------------------- */

uint32_t emulated_shared_at(const void *p) {
    return (uint32_t)((const unsigned char *)p - smem);
}

void *emulated_shared(uint32_t at, uint32_t bytes) {
    if (at % bytes) emulated_fail({"shared memory", (int)at}, "the address is not aligned");
    if (bytes > shared_bytes || at > shared_bytes - bytes)
        emulated_fail({"shared memory", (int)at}, "out of range");
    return smem + at;
}

void emulated_copy16(uint32_t to, const float *from, bool valid) {
    Fibre &f = fibres[emulated_thread.x];
    if (valid && (uintptr_t)from % 16) emulated_fail({"copy16", 0}, "the source is not aligned");
    memset(emulated_shared(to, 16), 0xff, 16); /* not there before somebody waits for it */
    races_write(smem + to, 16);
    if (valid) races_read(from, 16);
    f.copies.push_back({to, valid ? from : nullptr, f.groups});
}

void emulated_copy_commit(void) {
    fibres[emulated_thread.x].groups++;
}

void emulated_copy_wait(int leave) {
    Fibre &f = fibres[emulated_thread.x];
    size_t k = 0;
    for (; k < f.copies.size() && f.copies[k].group < f.groups - leave; k++) {
        const Copy &c = f.copies[k];
        if (c.from)
            memcpy(smem + c.to, c.from, 16);
        else
            memset(smem + c.to, 0, 16);
        races_write(smem + c.to, 16);
    }
    f.copies.erase(f.copies.begin(), f.copies.begin() + (ptrdiff_t)k);
}

/* ---- the copy engine ------------------------------------------------------------------------- */

static void check_bulk(const float *global, uint32_t shared, int bytes, emulated_place at) {
    if (((uintptr_t)global | shared | (uint32_t)bytes) % 16)
        emulated_fail(at, "a copy is not aligned");
    if (emulated_capability() < 90) emulated_fail(at, "this GPU has no copy engine");
    if (bytes < 0 || shared + (uint32_t)bytes > shared_bytes) emulated_fail(at, "out of range");
}

void emulated_bulk_load(uint32_t to, const float *from, int bytes, uint32_t arrival,
                        emulated_place at) {
    check_bulk(from, to, bytes, at);
    memset(smem + to, 0xff, (size_t)bytes);
    races_write(smem + to, (size_t)bytes);
    races_read(from, (size_t)bytes);
    races_release(smem + arrival);
    if (loads.size() == LOADS_MOST) emulated_fail(at, "too many copies are on their way");
    *(int64_t *)emulated_shared(arrival, 8) -= bytes;
    loads.push_back({to, arrival, from, (size_t)bytes});
}

void emulated_arrival_wait(uint32_t arrival, emulated_place at) {
    if (*(int64_t *)emulated_shared(arrival, 8) != 0)
        emulated_fail(at, "not what is expected has been asked for");
    size_t left = 0;
    races_acquire(smem + arrival);
    for (const BulkLoad &l : loads) {
        if (l.arrival == arrival) {
            memcpy(smem + l.to, l.from, l.bytes);
            races_write(smem + l.to, l.bytes);
        } else {
            loads[left++] = l;
        }
    }
    if (left < loads.size()) races_release(smem + arrival); /* to those who wait later */
    loads.resize(left);
}

void emulated_arrival_renew(uint32_t arrival, emulated_place at) {
    if (*(int64_t *)emulated_shared(arrival, 8) != 0)
        emulated_fail(at, "an arrival is made anew that was not made, or waits for copies");
    for (const BulkLoad &l : loads)
        if (l.arrival == arrival)
            emulated_fail(at, "an arrival is made anew that nobody has waited for");
}

void emulated_bulk_store(float *to, uint32_t from, int bytes, bool adds, emulated_place at) {
    check_bulk(to, from, bytes, at);
    races_read(smem + from, (size_t)bytes);
    races_write(to, (size_t)bytes);
    fibres[emulated_thread.x].stores.push_back({to, from, (size_t)bytes, adds, {}});
}

void emulated_bulk_commit(void) {
    Fibre &f = fibres[emulated_thread.x];
    f.stores_committed = f.stores.size();
}

void emulated_bulk_wait(bool read) {
    Fibre &f = fibres[emulated_thread.x];
    for (size_t k = 0; k < f.stores_committed; k++) {
        BulkStore &s = f.stores[k];
        if (s.read.empty()) {
            races_read(smem + s.from, s.bytes);
            s.read.assign(smem + s.from, smem + s.from + s.bytes);
        }
        if (!read) races_write(s.to, s.bytes);
        if (!read && !s.adds) memcpy(s.to, s.read.data(), s.bytes);
        for (size_t i = 0; !read && s.adds && i < s.bytes / sizeof(float); i++) {
            float v;
            memcpy(&v, s.read.data() + i * sizeof v, sizeof v);
            s.to[i] += v;
        }
    }
    if (read) return;
    f.stores.erase(f.stores.begin(), f.stores.begin() + (ptrdiff_t)f.stores_committed);
    f.stores_committed = 0;
}

/* ---- operands of a group --------------------------------------------------------------------- */

/* Lanes of a warp come and go together, so one of them stands for all. */
void emulated_group_reads(uint32_t at, int bytes) {
    if (emulated_capability() != 90) emulated_fail({"group", 0}, "this GPU has no such products");
    if (emulated_thread.x % 32) return;
    races_read(smem + at, (size_t)bytes);
    fibres[emulated_thread.x].operands.push_back({at, (uint32_t)bytes});
}

void emulated_group_wait(void) {
    Fibre &f = fibres[emulated_thread.x];
    for (const Operand &o : f.operands) races_read(smem + o.at, o.bytes);
    f.operands.clear();
}
