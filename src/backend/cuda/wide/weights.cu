/* weights.cu: gradients of a dense layer's weights (op/linear.c), summed over functions:
 *
 *   x (R, K), g (R, N), G what the ReLU lets through of it:   dw (K, N) += x^T G,
 *                                                             db (1, N) += sum of G
 *
 * R are a function's rows of all samples. A block has a tile of dw for one chunk of the functions
 * (weights.h); it goes through their rows in order (weights_rows.cuh), so that every sum has a
 * fixed order, and its sum goes to the chunk's slot of the gradient. Nothing waits for these
 * gradients before the step ends, so those of many layers are one launch. */
#include "backend/cuda/wide/weights_rows.cuh"

TARGET_BEGIN
/* The unit cuts digits off both factors (device/mma.cuh). They are read far more often than there
 * are sums, so the sums make up for it. */
constexpr float LIFT = (1 + 0.72f / 2048) * (1 + 0.72f / 2048);

/* There are far fewer functions and chunks than would make 32 bits overflow. */
FN WeightsPlace place_of(const wide_launch &l, const wide_weights_cut &cut, uint32_t block) {
    const uint32_t tiles = cut.down * cut.across, chunk = block / tiles, tile = block % tiles;
    const uint32_t items = l.items, chunks = l.chunks, down = tile / cut.across;
    return {(int)down * cut.size, (int)(tile - down * cut.across) * cut.size, (int)chunk,
            (int)(items * chunk / chunks), (int)(items * (chunk + 1) / chunks)};
}

/* 8 rows of a piece as a warp reads them: of x for 32 HALVES columns, of G for 32. */
template <int HALVES> struct WeightsStep { float a[HALVES][2][4], b[4][2]; };

/* A warp's part of the tile: HALVES tiles of 32 x 32 below each other, each with the order of rows
 * and columns of Tile TO_W (device/resident.cuh): c[u][i][j][2 h + f] is row 32 u + 4 g + 2 i + h,
 * column 4 (t ^ 5 f) + j. */
template <class P> struct WeightsPart {
    using Rows = WeightsStep<P::HALVES>;
    int halves;    /* of HALVES: those with numbers that somebody needs */
    uint32_t a, b; /* where this lane reads x and G: bytes */
    float c[P::HALVES][2][4][4];

    MEMBER WeightsPart(const wide_op &op, const WeightsPlace &at) : c{} {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const wide_operand &w = op.in[LINEAR_GRAD_W];
        const bool wanted = op.out[LINEAR_GW].p && at.n0 + column() < w.ld;
        const int there = wanted ? w.rows - at.m0 - row() : 0;
        halves = there > 32 ? P::HALVES : there > 0;
        const float *from = ring() + (depth() * P::DEPTH + 2 * t) * P::PITCH;
        a = shared_at(from + row() + 4 * g);
        b = shared_at(from + P::AT_G + column() + 4 * (g >> 1 ^ (g & 1 ? 5 : 0)));
    }
    /* In the block's tile, and which of the warps that share a place it is. */
    static MEMBER int place() { return warp_of_block() % (P::DOWN * P::ACROSS); }
    static MEMBER int row() { return place() / P::ACROSS * 32 * P::HALVES; }
    static MEMBER int column() { return place() % P::ACROSS * 32; }
    static MEMBER int depth() { return warp_of_block() / (P::DOWN * P::ACROSS); }

    /* k: the first of the rows; `stage` bytes into the ring begins the piece. */
    MEMBER void read(Rows &s, uint32_t stage, int k) const {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const float4 v = load_quad(b + stage + (k + e) * P::PITCH * 4);
            s.b[0][e] = v.x, s.b[1][e] = v.y, s.b[2][e] = v.z, s.b[3][e] = v.w;
        }
#pragma unroll
        for (int u = 0; u < P::HALVES; u++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float4 v = load_quad(a + stage + ((k + e) * P::PITCH + 32 * u) * 4);
                s.a[u][0][2 * e] = v.x, s.a[u][0][2 * e + 1] = v.y;
                s.a[u][1][2 * e] = v.z, s.a[u][1][2 * e + 1] = v.w;
            }
    }
    /* Half u of the part. */
    MEMBER void multiply(int u, const Rows &s) {
        Ready<DEV_TF32, 2> r;
        memcpy(r.a, s.a[u], sizeof r.a), memcpy(r.b, s.b, sizeof r.b);
        multiply_step<DEV_TF32, 2>(c[u], r);
    }
    /* c += x^T G of `rows` rows, from 1 on, of which the first 8 are read; LIVE: of HALVES. The
     * others are read while these are multiplied. */
    template <int LIVE> MEMBER void multiply_rows(const Rows &first, uint32_t stage, int rows) {
        Rows last;
        multiply(0, first);
        if (rows <= 8) {
            if (LIVE > 1) multiply(LIVE - 1, first);
            return;
        }
        read(last, stage, 8);
        if (LIVE > 1) multiply(LIVE - 1, first);
        multiply(0, last);
        if (LIVE > 1) multiply(LIVE - 1, last);
    }
    /* Of a piece with that many rows; meanwhile() is called while the first of them are read. */
    template <class F> MEMBER void multiply_piece(uint32_t stage, int rows, F meanwhile) {
        Rows first;
        read(first, stage, 0);
        meanwhile();
        rows -= depth() * P::DEPTH;
        if (rows <= 0 || halves == 0) return;
        if (halves == P::HALVES)
            multiply_rows<P::HALVES>(first, stage, rows);
        else
            multiply_rows<1>(first, stage, rows);
    }

    /* Warps that share a place put their sums together: the deeper one leaves its sums in the ring.
     * All threads call it and meet. */
    MEMBER void join() {
        static_assert(P::DEEP <= 2, "one other warp");
        if constexpr (P::DEEP == 2) {
            float *there = ring() + place() * P::HALVES * 32 * 32 + threadIdx.x % 32;
#pragma unroll
            for (int k = 0; k < 32 * P::HALVES; k++)
                if (depth() == 1) there[k * 32] = number(k);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 32 * P::HALVES; k++)
                if (depth() == 0) number(k) += there[k * 32];
            __syncthreads();
        }
    }
    MEMBER float &number(int k) {
        return c[k / 32][k / 16 % 2][k / 4 % 4][k % 4];
    }

    /* To dw, or on top of it. */
    MEMBER void finish(const wide_op &op, const WeightsPlace &at) {
        if (halves == 0 || depth() > 0) return;
        const wide_operand &gw = op.out[LINEAR_GW];
        enum { FLIGHT = 8 }; /* quads on their way before the first is needed */
        const int lane = threadIdx.x % 32, ld = gw.ld;
        const int m = at.m0 + row() + lane / 4 * 4, n = at.n0 + column();
        const bool adds = op.adds >> LINEAR_GW & 1u;
        float *to = gw.p + at.chunk * gw.stride + (int64_t)m * ld + n;
#pragma unroll
        for (int first = 0; first < 8 * P::HALVES; first += FLIGHT) {
            float4 old[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const int r = quad_row(first + j), k = quad_column(first + j);
                old[j] = global_quad(to + r * ld + k, adds && m + r < gw.rows && n + k < ld);
            }
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const int r = quad_row(first + j), k = quad_column(first + j);
                global_quad(to + r * ld + k, sum4(old[j], quad(first + j)),
                            m + r < gw.rows && n + k < ld);
            }
        }
    }
    /* Quad q of this thread: where it lies, from the thread's first row and column on; what it is.
     */
    static MEMBER int quad_row(int q) {
        return q / 8 * 32 + q % 8 / 2;
    }
    static MEMBER int quad_column(int q) {
        return 4 * ((int)threadIdx.x % 4 ^ q % 2 * 5);
    }
    MEMBER float4 quad(int q) const {
        const float(&v)[4][4] = c[q / 8][q / 4 % 2];
        return make_float4(v[0][q % 4] * LIFT, v[1][q % 4] * LIFT, v[2][q % 4] * LIFT,
                           v[3][q % 4] * LIFT);
    }
};

/* Asks for the next piece, if there is one; it goes to stage c of the ring. */
template <class P>
FN void ask(WeightsSource<P> &source, WeightsPieces<P::PIECE> &next, WeightsBlock &block, int c) {
    const int left = next.left(block.lengths);
    if (threadIdx.x == 0) block.left[c] = left;
    if (left > 0) {
        source.fetch(ring() + c * P::STAGE, left);
        source.move(next.next(block.lengths));
    }
    copy_commit();
}

/* All rows of some functions. One of the ring's stages is multiplied, the others are on their way.
 */
template <class P>
FN void multiply_functions(WeightsPart<P> &part, WeightsSource<P> &source, WeightsBlock &block) {
    WeightsPieces<P::PIECE> next;
    source.move(next.begin(block.lengths));
#pragma unroll 1
    for (int c = 0; c < WEIGHTS_STAGES - 1; c++) ask(source, next, block, c);
    __syncthreads();
#pragma unroll 1
    for (int c = 0; block.left[c] > 0; c = (c + 1) % WEIGHTS_STAGES) {
        copy_wait<WEIGHTS_STAGES - 2>();
        source.settle(ring() + c * P::STAGE);
        __syncthreads();
        part.multiply_piece(c * P::STAGE * 4, block.left[c], [&] {
            ask(source, next, block, (c + WEIGHTS_STAGES - 1) % WEIGHTS_STAGES);
        });
    }
    copy_wait<0>();
    __syncthreads(); /* the ring and the lengths are free */
}

/* db of the tile's columns: the sums of threads, in the order of the rows that they copied. */
template <class P>
FN void finish_bias(const wide_op &op, const WeightsPlace &place, const WeightsSource<P> &source) {
    st4(ring() + (int)threadIdx.x * 4, source.sum); /* (STEP, WIDTH) */
    __syncthreads();
    const wide_operand &gb = op.out[LINEAR_GB];
    const int column = place.n0 + (int)threadIdx.x;
    if (threadIdx.x >= P::WIDTH || column >= gb.ld) return;
    float total = 0;
#pragma unroll
    for (int k = 0; k < source.g.STEP; k++) total += ring()[k * P::WIDTH + threadIdx.x];
    put(gb.p + place.chunk * gb.stride + column, total, op.adds >> LINEAR_GB & 1u);
}

/* The lengths of functions [first, last), or of as many as are held. */
FN void find_lengths(WeightsBlock &block, const wide_launch &launch, const wide_op &op, int first,
                     int last) {
    const int count = min(last - first, (int)WEIGHTS_FUNCTIONS), k = threadIdx.x;
    if (k < count) block.lengths[k] = rows_of(launch, op.in[LINEAR_GRAD_X], first + k);
    if (k == count) block.lengths[k] = PIECES_END;
}

/* What the block knows, each by a thread of another warp; all threads call it and meet. */
FN void begin_block(WeightsBlock &block, const wide_launch &launch, const wide_op &op,
                    const wide_weights_cut &cut, uint32_t number) {
    const WeightsPlace place = place_of(launch, cut, number);
    find_lengths(block, launch, op, place.first, place.last);
    if (threadIdx.x == WEIGHTS_THREADS - 96) {
        block.place = place;
        block.sums = op.out[LINEAR_GB].p && place.m0 == 0;
    }
    if (threadIdx.x == WEIGHTS_THREADS - 64) {
        block.x = op.in[LINEAR_GRAD_X];
        if (!op.out[LINEAR_GW].p) block.x.p = nullptr;
    }
    if (threadIdx.x == WEIGHTS_THREADS - 32) {
        const wide_operand &g = block.g = op.in[LINEAR_GRAD_G], &h = op.in[LINEAR_GRAD_H];
        block.to_h = h.p ? h.p - g.p : 0;
    }
    __syncthreads();
}

template <class P>
FN void weights_tile(const wide_launch &launch, const wide_op &op, WeightsBlock &block) {
    WeightsPart<P> part(op, block.place);
    WeightsSource<P> source(block);
    int first = block.place.first;
#pragma unroll 1
    while (true) {
        multiply_functions<P>(part, source, block);
        first += WEIGHTS_FUNCTIONS;
        if (first >= block.place.last) break;
        find_lengths(block, launch, op, first, block.place.last);
        __syncthreads();
    }
    part.join();
    part.finish(op, block.place);
    if (block.sums) finish_bias<P>(op, block.place, source);
}

__global__ void __launch_bounds__(WEIGHTS_THREADS, 2)
    wide_weights_kernel(const __grid_constant__ wide_launch launch) {
    __shared__ WeightsBlock block;
    wide_begin(launch);
    const int which = wide_which(launch);
    const wide_op &op = launch.op[which];
    const wide_weights_cut cut = wide_weights_cut_of(&op);
    begin_block(block, launch, op, cut, blockIdx.x - launch.blocks[which]);
    if (cut.size == WIDE_WEIGHTS_LARGE)
        weights_tile<LargeTile>(launch, op, block);
    else
        weights_tile<SmallTile>(launch, op, block);
}

/* ---- for the host ---------------------------------------------------------------------------- */

enum {
    WEIGHTS_BYTES = (int)SmallTile::BYTES > (int)LargeTile::BYTES ? (int)SmallTile::BYTES
                                                                  : (int)LargeTile::BYTES
};
static_assert(WEIGHTS_BYTES + sizeof(WeightsBlock) <= 99 * 1024, "no set has more");

cudaError_t wide_weights_prepare(void) {
    return cudaFuncSetAttribute(wide_weights_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                WEIGHTS_BYTES);
}
void wide_weights_launch(const wide_launch *launch, cudaStream_t stream) {
    const int blocks = launch->blocks[launch->count];
    if (blocks == 0) return;
    launch_as(launch_of(blocks, WEIGHTS_THREADS, WEIGHTS_BYTES, stream), false, true,
              wide_weights_kernel, *launch);
}
TARGET_END
