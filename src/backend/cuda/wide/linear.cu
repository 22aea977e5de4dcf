/* linear.cu: the dense layer (op/linear.c) of all functions at once, forward and reverse:
 *
 *   x (R, K), w (K, N), b (1, N), res (R, N) or none:   h = act(x w + b),  y (R, N) = h + res
 *   g (R, N), G what the ReLU lets through of it:       dx (R, K) += G w^T,  dw (K, N) += x^T G,
 *                                                       db (1, N) += sum of G,  dres (R, N) += g
 *
 * R are a function's rows of all samples. linear.h says which tile a block takes, linear_tiles.cuh
 * how it is multiplied. dw and db are summed over the functions of a chunk, in their order, into a
 * slot of the gradient. */
#include "backend/cuda/wide/linear_tiles.cuh"

TARGET_BEGIN
/* Has a thread the registers for a wide tile? In fp32, where the parts of a number take them, a
 * block does two narrow ones. */
template <int MATH> constexpr bool WIDE_TILES = MATH != DEV_FP32;

/* The instruction that runs, in shared memory. Operands are looked up where they are needed: their
 * addresses and sizes would take the registers of the products. */
struct WideLinear {
    const dev_run *run;
    const dev_instr &ins;
    MEMBER WideView in(int j) const { return wide_view(run, ins.in[j]); }
    MEMBER WideView out(int j) const { return wide_view(run, ins.out[j]); }
    MEMBER bool adds(int j) const { return wide_adds(ins, j); }
};

/* ---- forward --------------------------------------------------------------------------------- */

template <class P> struct ForwardSource {
    const float *x;
    RowPieces<P> a;
    WeightDown<P> b;
    MEMBER ForwardSource(const WideLinear &op, const TileRows &rows, int n0)
        : x(op.in(LINEAR_X).p), a(op.in(LINEAR_X), rows), b(op.in(LINEAR_W), n0) {}
    MEMBER void fetch(float *to, int chunk) const {
        a.fetch(x, to, chunk);
        b.fetch(to, chunk);
    }
    MEMBER void foresee(int) const {}
    MEMBER void settle(float *) const {}
};

/* h = act(c + b), y = h + res */
template <int HOW, int MT>
FN void finish_forward(const WideLinear &op, const TileRows &rows, Tile<HOW, MT> &tile) {
    const float *bias = op.in(LINEAR_B).p;
#pragma unroll
    for (int f = 0; f < 2; f++) {
        const float4 b = global_quad(bias + tile.col(f), bias && tile.col(f) < op.in(LINEAR_B).ld);
#pragma unroll
        for (int r = 0; r < 2 * MT; r++) tile.add(2 * r + f, b);
    }
    if (op.ins.i[LINEAR_ACT] == 1) {
#pragma unroll
        for (int k = 0; k < 16 * MT; k++) {
            float &v = tile.c[k / 16][k / 4 % 4][k % 4];
            v = relu_of(v);
        }
    }
    if (op.ins.out[LINEAR_H].present) store_rows(tile, rows, op.out(LINEAR_H));
    if (op.ins.in[LINEAR_RES].present) add_rows(tile, rows, op.in(LINEAR_RES));
    store_rows(tile, rows, op.out(LINEAR_Y));
}

template <int MATH, class P>
FN void forward_tile(const WideLinear &op, const TileRows &rows, int n0) {
    auto tile = warp_tile<P>();
    const bool live = n0 + tile.n0 < op.out(LINEAR_Y).ld && any_rows(rows, tile.m0, 16 * P::MT);
    ForwardSource<P> source(op, rows, n0);
    multiply_all<MATH, P>(tile, source, wide_linear_parts(op.in(LINEAR_X).ld, P::K), live);
    tile.n0 += n0;
    if (live) finish_forward(op, rows, tile);
}

template <int MATH>
__global__ void __launch_bounds__(WIDE_THREADS, 2)
    wide_linear_kernel(const dev_run *run, const dev_stage stage) {
    __align__(16) __shared__ dev_instr ins;
    grid_release();
    const int which = wide_which(stage), block = block_of(stage, which);
    wide_fetch(run, stage, which, &ins);
    const WideLinear op = {run, ins};
    const wide_linear_cut cut = wide_linear_forward(&ins, wide_size_of(run, stage));
    const FunctionRow row = row_of_thread(cut.rows, block / cut.across);
    const int n0 = block % cut.across * cut.width;
    grid_wait();
    stamp_stage(run, stage);
    const TileRows rows = find_rows(WideFunctions(run, stage), ins.in[LINEAR_X], row);
    if (!any_rows(rows, 0, WIDE_LINEAR_ROWS)) return;
    if constexpr (!WIDE_TILES<MATH>) {
#pragma unroll 1
        for (int n = n0; n < n0 + cut.width; n += 64)
            forward_tile<MATH, ForwardNarrow>(op, rows, n);
    } else if (cut.width == 128) {
        forward_tile<MATH, ForwardWide>(op, rows, n0);
    } else {
        forward_tile<MATH, ForwardNarrow>(op, rows, n0);
    }
}

/* ---- dx and dres ----------------------------------------------------------------------------- */

/* A thread masks the quads of g that it has copied, before others read them. h takes no room in
 * shared memory: its quads are asked for a chunk ahead. */
template <class P> struct ToXSource {
    const float *g, *h;
    RowPieces<P> a;
    WeightAlong<P> b;
    float4 mask[RowPieces<P>::COUNT];
    MEMBER ToXSource(const WideLinear &op, const TileRows &rows, int n0)
        : g(op.in(LINEAR_GRAD_G).p), h(op.in(LINEAR_GRAD_H).p), a(op.in(LINEAR_GRAD_G), rows),
          b(op.in(LINEAR_GRAD_W), n0) {}
    MEMBER void fetch(float *to, int chunk) const {
        a.fetch(g, to, chunk);
        b.fetch(to, chunk);
    }
    MEMBER void foresee(int chunk) {
        if (!h) return;
#pragma unroll
        for (int j = 0; j < a.COUNT; j++)
            mask[j] = global_quad(h + a.from(j, chunk), a.there(j, chunk));
    }
    MEMBER void settle(float *at) const {
        if (!h) return;
#pragma unroll
        for (int j = 0; j < a.COUNT; j++) {
            float *quad = a.to(at, j);
            st4(quad, masked4(ld4(quad), mask[j]));
        }
    }
};

template <int MATH, class P> FN void to_x_tile(const WideLinear &op, const TileRows &rows, int n0) {
    auto tile = warp_tile<P>();
    const bool live = n0 + tile.n0 < op.out(LINEAR_GX).ld && any_rows(rows, tile.m0, 16 * P::MT);
    ToXSource<P> source(op, rows, n0);
    multiply_all<MATH, P>(tile, source, wide_linear_parts(op.in(LINEAR_GRAD_G).ld, P::K), live);
    tile.n0 += n0;
    if (!live) return;
#pragma unroll 1
    for (int k = 0; k < 2; k++) { /* g, if the residual was x, and what is there */
        const bool wanted = k == 0 ? op.ins.i[LINEAR_SKIP] != 0 : op.adds(LINEAR_GX);
        if (wanted) add_rows(tile, rows, k == 0 ? op.in(LINEAR_GRAD_G) : op.out(LINEAR_GX));
    }
    store_rows(tile, rows, op.out(LINEAR_GX));
}

/* dres of the tile's rows; of `parts` blocks that have these rows, this one takes every so many. */
FN void give_residual(const WideLinear &op, const TileRows &rows, int part, int parts) {
    enum { FLIGHT = 4 };
    const WideView g = op.in(LINEAR_GRAD_G), to = op.out(LINEAR_GRES);
    const bool add = op.adds(LINEAR_GRES);
    const int quads = g.ld / 4, count = wide_linear_parts(WIDE_LINEAR_ROWS - part, parts) * quads;
#pragma unroll 1
    for (int first = threadIdx.x; first < count; first += FLIGHT * WIDE_THREADS) {
        float4 v[FLIGHT], old[FLIGHT];
        int64_t at[FLIGHT]; /* -1: there is no such row */
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int k = first + j * WIDE_THREADS, turn = quotient(k, quads);
            const int r = part + turn * parts, column = (k - turn * quads) * 4;
            const bool go = k < count && rows.there(r);
            at[j] = go ? rows.place(to, r) + column : -1;
            v[j] = global_quad(g.p + (go ? rows.place(g, r) + column : 0), go);
            old[j] = global_quad(to.p + at[j], go && add);
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) global_quad(to.p + at[j], sum4(v[j], old[j]), at[j] >= 0);
    }
}

/* The tile of this thread's `row`, the `part`-th one of those that share its rows. */
template <int MATH>
FN void reverse_rows(const WideLinear &op, const WideFunctions &functions,
                     const wide_linear_cut &cut, int part, FunctionRow row) {
    const int n0 = part * cut.width;
    const TileRows rows = find_rows(functions, op.ins.in[LINEAR_GRAD_X], row);
    if (!any_rows(rows, 0, WIDE_LINEAR_ROWS)) return;
    if (op.out(LINEAR_GRES).p) give_residual(op, rows, part, cut.across);
    if (!op.out(LINEAR_GX).p) return;
    if constexpr (!WIDE_TILES<MATH>) {
#pragma unroll 1
        for (int n = n0; n < n0 + cut.width; n += 64) to_x_tile<MATH, ToXNarrow>(op, rows, n);
    } else if (cut.width == 128) {
        to_x_tile<MATH, ToXWide>(op, rows, n0);
    } else {
        to_x_tile<MATH, ToXNarrow>(op, rows, n0);
    }
}

/* ---- dw and db ------------------------------------------------------------------------------- */

/* A place of a tile, functions [first, last), and the slot that their sum goes to. */
struct WeightTile {
    int m0, n0, first, last, slot;
    MEMBER WeightTile(const wide_linear_grad_cut &cut, const wide_size &z, int wide, int block) {
        const int tiles = cut.down * cut.across, chunk = block / tiles, tile = block % tiles;
        m0 = tile / cut.across * cut.height, n0 = tile % cut.across * 64;
        first = (int)((int64_t)z.items * chunk / z.chunks);
        last = (int)((int64_t)z.items * (chunk + 1) / z.chunks);
        slot = wide * z.chunks + chunk;
    }
};

/* k runs over the functions' rows, a warp copies rows w, w + 8, w + 16 and w + 24 of a chunk. Of
 * 128 columns a lane has a quad of each row, of 64 a half of the warp has two of the rows. */
template <class P> struct ToWSource {
    enum { COUNT_A = P::ROWS / 32, COUNT_B = P::COLUMNS / 32 };
    static_assert(P::K == 32 && COUNT_B == 2 && P::STAGES == 3, "who copies what");
    const WideFunctions &functions;
    const dev_operand &rows; /* of x */
    WideView x, g;           /* x: its columns of the tile; absent where db alone is wanted */
    const float *h;
    const bool sums, multiplies;              /* db is wanted, dw is */
    const int half, column_b, left_x, left_g; /* left: columns from the tile's first one on */
    RowWalk walk;
    int64_t place[COUNT_B]; /* of the quads of g asked for last; -1: none */
    float4 mask[COUNT_B];
    float4 sum; /* of this thread's quads of G */

    MEMBER ToWSource(const WideLinear &op, const WideFunctions &f, const WeightTile &tile)
        : functions(f), rows(op.ins.in[LINEAR_GRAD_X]), x(op.in(LINEAR_GRAD_X)),
          g(op.in(LINEAR_GRAD_G)), h(op.in(LINEAR_GRAD_H).p),
          sums(op.out(LINEAR_GB).p && tile.m0 == 0), multiplies(op.out(LINEAR_GW).p),
          half(lane_of_warp() / 16), column_b(lane_of_warp() % 16 * 4), left_x(x.ld - tile.m0),
          left_g(g.ld - tile.n0), walk(f, rows, tile.first, tile.last),
          sum(make_float4(0, 0, 0, 0)) {
        x.p += tile.m0, g.p += tile.n0;
        if (h) h += tile.n0;
    }

    /* Of rows w + 16 j and w + 16 j + 8 of a chunk this half of the warp has one. */
    MEMBER float *to_b(float *stage, int j) const {
        const int r = warp_of_block() + (2 * j + half) * RowWalk::STEP;
        return stage + P::A_WORDS + r * P::PITCH_B + column_b;
    }
    MEMBER void fetch(float *stage, int) {
#pragma unroll
        for (int j = 0; j < COUNT_B; j++) {
            const FunctionRow even = walk.next(functions, rows), odd = walk.next(functions, rows);
            const FunctionRow mine = half ? odd : even;
            if (multiplies && COUNT_A == 2) fetch_x(stage, 2 * j + half, mine, column_b);
            if (multiplies && COUNT_A == 4) {
                fetch_x(stage, 2 * j, even, lane_of_warp() * 4);
                fetch_x(stage, 2 * j + 1, odd, lane_of_warp() * 4);
            }
            const bool go = mine.row >= 0 && column_b < left_g;
            place[j] = go ? mine.place(g) + column_b : -1;
            copy16(to_b(stage, j), go ? g.p + place[j] : g.p, go);
        }
    }
    MEMBER void fetch_x(float *stage, int which, const FunctionRow &from, int column) const {
        const bool go = from.row >= 0 && column < left_x;
        copy16(stage + (warp_of_block() + which * RowWalk::STEP) * P::PITCH_A + column,
               go ? x.p + from.place(x) + column : x.p, go);
    }
    MEMBER void foresee(int) {
        if (!h) return;
#pragma unroll
        for (int j = 0; j < COUNT_B; j++) mask[j] = global_quad(h + place[j], place[j] >= 0);
    }
    MEMBER void settle(float *stage) {
        if (!h && !sums) return;
#pragma unroll
        for (int j = 0; j < COUNT_B; j++) {
            float4 v = ld4(to_b(stage, j));
            if (h) {
                v = masked4(v, mask[j]);
                st4(to_b(stage, j), v);
            }
            sum = sum4(sum, v);
        }
    }
};

/* Warps that share a place put their sums together: those of greater depth leave theirs in the
 * ring. All threads call it and meet. */
template <class P> FN void join_depths(Tile<P::HOW, P::MT> &tile) {
    static_assert(P::DEEP <= 2, "one other warp");
    if constexpr (P::DEEP == 2) {
        float *there = ring() + warp_of_block() % (P::DOWN * P::ACROSS) * 16 * P::MT * 32;
        const bool leaves = depth_of_warp<P>() == 1;
#pragma unroll
        for (int k = 0; k < 16 * P::MT; k++) {
            float &v = tile.c[k / 16][k / 4 % 4][k % 4];
            if (leaves) there[k * 32 + lane_of_warp()] = v;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16 * P::MT; k++) {
            float &v = tile.c[k / 16][k / 4 % 4][k % 4];
            if (!leaves) v += there[k * 32 + lane_of_warp()];
        }
        __syncthreads();
    }
}

/* db of the tile's columns: the sums of 16 halves of warps in order. */
FN void finish_bias(const WideLinear &op, float4 sum, const WeightTile &at) {
    st4(ring() + (int)threadIdx.x * 4, sum); /* (16, 64) */
    __syncthreads();
    const int column = at.n0 + (int)threadIdx.x;
    const WideView gb = op.out(LINEAR_GB);
    if (threadIdx.x >= 64 || column >= gb.ld) return;
    float total = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) total += ring()[k * 64 + threadIdx.x];
    put(gb.at(at.slot) + column, total, op.adds(LINEAR_GB));
}

template <int MATH, class P>
FN void to_w_tile(const WideLinear &op, const WideFunctions &functions, const WeightTile &at) {
    auto tile = warp_tile<P>();
    const int K = op.in(LINEAR_GRAD_W).rows, ld = op.in(LINEAR_GRAD_W).ld;
    const bool live = op.out(LINEAR_GW).p && at.m0 + tile.m0 < K && at.n0 + tile.n0 < ld;
    const int rows = rows_together(functions, op.ins.in[LINEAR_GRAD_X], at.first, at.last);
    ToWSource<P> source(op, functions, at);
    multiply_all<MATH, P>(tile, source, wide_linear_parts(rows, P::K), live);
    join_depths<P>(tile);
    if (live && depth_of_warp<P>() == 0) {
        float *to = op.out(LINEAR_GW).at(at.slot);
        tile.m0 += at.m0, tile.n0 += at.n0;
        if (op.adds(LINEAR_GW)) tile.add_from(to, ld, K);
        tile.store(to, ld, K);
    }
    if (source.sums) finish_bias(op, source.sum, at);
}

template <int MATH>
__global__ void __launch_bounds__(WIDE_THREADS, 2)
    wide_linear_grad_kernel(const dev_run *run, const dev_stage stage) {
    __align__(16) __shared__ dev_instr ins;
    grid_release();
    const int which = wide_which(stage), block = block_of(stage, which);
    wide_fetch(run, stage, which, &ins);
    const WideLinear op = {run, ins};
    const WideFunctions functions(run, stage);
    const wide_size size = wide_size_of(run, stage);
    const wide_linear_grad_cut cut = wide_linear_reverse(&ins, size);
    const WeightTile at(cut, size, ins.wide, block);
    const int tile = (block - cut.of_weight) / cut.of_rows.across;
    const int part = (block - cut.of_weight) % cut.of_rows.across;
    const FunctionRow row = row_of_thread(cut.of_rows.rows, tile);
    grid_wait();
    stamp_stage(run, stage);
    if (block >= cut.of_weight)
        reverse_rows<MATH>(op, functions, cut.of_rows, part, row);
    else if (cut.height == 128)
        to_w_tile<MATH, ToWTall>(op, functions, at);
    else
        to_w_tile<MATH, ToWSmall>(op, functions, at);
}

/* ---- for the host ---------------------------------------------------------------------------- */

template <class KERNEL> static cudaError_t prepare(KERNEL *kernel) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, RING_BYTES);
}
template <class KERNEL>
static void launch(KERNEL *kernel, const dev_run *run, const dev_stage *stage,
                   cudaStream_t stream) {
    const int blocks = stage->blocks[stage->count];
    if (blocks == 0) return;
    launch_as(launch_of(blocks, WIDE_THREADS, RING_BYTES, stream), false, true, kernel, run,
              *stage);
}

/* The ways of taking products that this set has: two, or one, then whatever is asked for. */
enum { ONE_MATH = TARGET_FP32 ? DEV_FP32 : DEV_TF32, OTHER_MATH = TARGET_16 ? DEV_TF32 : DEV_FP32 };

cudaError_t wide_linear_prepare(void) {
    const cudaError_t each[] = {
        prepare(wide_linear_kernel<ONE_MATH>), prepare(wide_linear_kernel<OTHER_MATH>),
        prepare(wide_linear_grad_kernel<ONE_MATH>), prepare(wide_linear_grad_kernel<OTHER_MATH>)};
    for (const cudaError_t e : each)
        if (e != cudaSuccess) return e;
    return cudaSuccess;
}

void wide_linear_launch(const dev_run *run, const dev_stage *stage, cudaStream_t stream) {
    const bool one = stage->math == ONE_MATH;
    launch(one ? wide_linear_kernel<ONE_MATH> : wide_linear_kernel<OTHER_MATH>, run, stage, stream);
}

void wide_linear_grad_launch(const dev_run *run, const dev_stage *stage, cudaStream_t stream) {
    const bool one = stage->math == ONE_MATH;
    launch(one ? wide_linear_grad_kernel<ONE_MATH> : wide_linear_grad_kernel<OTHER_MATH>, run,
           stage, stream);
}
TARGET_END
