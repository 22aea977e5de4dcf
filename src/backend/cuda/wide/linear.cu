/* linear.cu: the dense layer (op/linear.c) of all functions at once, but for the gradients of its
 * weights (weights.cu):
 *
 *   x (R, K), w (K, N), b (1, N), res (R, N) or none:   h = act(x w + b),  y (R, N) = h + res
 *   g (R, N), G what the ReLU lets through of it:       dx (R, K) += G w^T,  dres (R, N) += g
 *
 * R are a function's rows of all samples. linear.h says which tiles a block takes, linear_rows.cuh
 * how their rows come, linear_groups.cuh and linear_warps.cuh how they are multiplied. */
#include "backend/cuda/wide/linear_groups.cuh"
#include "backend/cuda/wide/linear_warps.cuh"

TARGET_BEGIN
/* ---- which engine, and its shared memory ----------------------------------------------------- */

/* Groups of warps multiply in tf32, where there are any: with weights that stay, or, of dx, that
 * come with the rows. */
enum { BY_WARPS, WIDE_STAYS, NARROW_STAYS, WIDE_COMES, NARROW_COMES };
template <int HOW, int MATH> WIDE_FN int engine_for(int depth, int width) {
    if (!TARGET_PARTS || MATH == DEV_FP32) return BY_WARPS;
    if (depth <= WIDE_LINEAR_DEEP) return width == 128 ? WIDE_STAYS : NARROW_STAYS;
    return HOW == FORWARD ? BY_WARPS : width == 128 ? WIDE_COMES : NARROW_COMES;
}

/* Where the ring begins, in words, its stages, and bytes of all. */
struct LinearRoom {
    int ring, stages, bytes;
};

/* What a block may take: in the full set two have room on a multiprocessor, or one that has it all;
 * in the general set there is one, and that has no more. */
enum {
    LINEAR_HALF = TARGET_PARTS ? 112 * 1024 : TARGET_SHARED,
    LINEAR_WHOLE = TARGET_PARTS ? 224 * 1024 : TARGET_SHARED
};

/* As many stages as there is room for, and no fewer than wait_piece() knows: copies take a
 * microsecond, and nothing else hides them. blocks: of the launch; where each has a multiprocessor
 * of its own it may take all of it, and where the weights that stay leave no room for a ring in the
 * half, it does so in any case. */
template <class E> constexpr WIDE_FN LinearRoom room_of(int depth, int blocks) {
    const bool alone = blocks <= WIDE_LINEAR_SLOTS / 2;
    const int ring = LINEAR_HEAD + (depth + LINEAR_K - 1) / LINEAR_K * E::PANEL;
    const int most = ((alone ? (int)LINEAR_WHOLE : (int)LINEAR_HALF) / 4 - ring) / E::STAGE;
    const int stages = most > 5 ? 6 : most > 3 ? 4 : most > 1 ? most : 3;
    return {ring, stages, (ring + stages * E::STAGE) * 4};
}

template <class E> constexpr WIDE_FN bool fits(int depth) {
    return room_of<E>(depth, 1).bytes <= (int)TARGET_SHARED &&
           room_of<E>(depth, WIDE_LINEAR_SLOTS).bytes <= (int)TARGET_SHARED;
}
static_assert(fits<WarpTiles<FORWARD, DEV_TF32>>(0) && fits<WarpTiles<TO_X, DEV_TF32>>(0),
              "warps keep no weights");
#if TARGET_PARTS
static_assert(fits<GroupTiles<FORWARD, 2, false>>(WIDE_LINEAR_DEEP) &&
                  fits<GroupTiles<FORWARD, 1, false>>(WIDE_LINEAR_DEEP) &&
                  fits<GroupTiles<TO_X, 2, true>>(0) && fits<GroupTiles<TO_X, 1, true>>(0),
              "the deepest weights that stay, and those that do not");
#endif

using ForwardPart = LinearPart<LINEAR_X>;
using ToXPart = LinearPart<LINEAR_GRAD_X>;

/* ---- what becomes of sums -------------------------------------------------------------------- */

/* Where a thread's quads of a row lie: the first ones of pairs, and the second ones. */
struct RowPlace {
    float *at[2];
    int left[2]; /* columns from there on; 0: there is no such row */
    template <class PART, class E>
    MEMBER RowPlace(const PART &part, const E &e, const wide_operand &o, int tile, int r,
                    int rows) {
        const int row = e.row(r);
        float *p = part.at(tile, row).in(o);
#pragma unroll
        for (int f = 0; f < 2; f++)
            at[f] = p + e.column(f), left[f] = row % 8 < rows ? o.ld - e.column(f) : 0;
    }
    MEMBER float *quad(int k) const {
        return at[k % 2] + k / 2 * 32;
    }
    MEMBER bool has(int k) const {
        return left[k % 2] > k / 2 * 32;
    }
};

FN void add_quad(float &a, float &b, float &c, float &d, const float4 &v) {
    a += v.x, b += v.y, c += v.z, d += v.w;
}
/* The numbers of a quad. */
#define QUAD(e, r, k) e.number(r, k, 0), e.number(r, k, 1), e.number(r, k, 2), e.number(r, k, 3)

/* c += v, and v = c, of the tile's rows in an operand. MOST: quads that are on their way before the
 * first is needed. */
template <int MOST, class PART, class E>
FN void add_rows(const PART &part, E &e, const wide_operand &o, int tile,
                 const int (&left)[E::DOWN]) {
    enum { FLIGHT = (int)E::ACROSS < MOST ? (int)E::ACROSS : MOST };
#pragma unroll
    for (int r = 0; r < E::DOWN; r++) {
        const RowPlace v(part, e, o, tile, r, left[r]);
#pragma unroll
        for (int first = 0; first < E::ACROSS; first += FLIGHT) {
            float4 more[FLIGHT];
#pragma unroll
            for (int k = 0; k < FLIGHT; k++)
                more[k] = global_quad(v.quad(first + k), v.has(first + k));
#pragma unroll
            for (int k = 0; k < FLIGHT; k++) add_quad(QUAD(e, r, first + k), more[k]);
        }
    }
}
template <class PART, class E>
FN void store_rows(const PART &part, E &e, const wide_operand &o, int tile,
                   const int (&left)[E::DOWN]) {
#pragma unroll
    for (int r = 0; r < E::DOWN; r++) {
        const RowPlace v(part, e, o, tile, r, left[r]);
#pragma unroll
        for (int k = 0; k < E::ACROSS; k++)
            global_quad(v.quad(k), make_float4(QUAD(e, r, k)), v.has(k));
    }
}
/* c = f(c) */
template <class E, class F> FN void each_number(E &e, F f) {
#pragma unroll
    for (int r = 0; r < E::DOWN; r++)
#pragma unroll
        for (int k = 0; k < 4 * E::ACROSS; k++)
            e.number(r, k / 4, k % 4) = f(e.number(r, k / 4, k % 4));
}

/* h = act(c + b), y = h + res */
template <class E>
FN void finish_forward(const ForwardPart &part, E &e, int tile, const int (&left)[E::DOWN]) {
    const float *bias = linear_head().bias;
    const wide_op &op = part.op();
#pragma unroll
    for (int k = 0; k < E::ACROSS; k++) {
        const float4 b = ld4(bias + e.column(k % 2) - e.n0 + k / 2 * 32);
#pragma unroll
        for (int r = 0; r < E::DOWN; r++) add_quad(QUAD(e, r, k), b);
    }
    if (op.i[LINEAR_ACT] == 1) each_number(e, [](float c) { return relu_of(c); });
    if (op.out[LINEAR_H].p) store_rows(part, e, op.out[LINEAR_H], tile, left);
    if (op.in[LINEAR_RES].p) add_rows<4>(part, e, op.in[LINEAR_RES], tile, left);
    store_rows(part, e, op.out[LINEAR_Y], tile, left);
}

/* dx (+)= c + g if the residual was x */
template <class E>
FN void finish_to_x(const ToXPart &part, E &e, int tile, const int (&left)[E::DOWN]) {
    const wide_op &op = part.op();
    if (E::LIFT != 1) each_number(e, [](float c) { return c * E::LIFT; });
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        const bool wanted = k == 0 ? op.i[LINEAR_SKIP] != 0 : op.adds >> LINEAR_GX & 1u;
        const wide_operand &from = k == 0 ? op.in[LINEAR_GRAD_G] : op.out[LINEAR_GX];
        if (wanted) add_rows<8>(part, e, from, tile, left);
    }
    store_rows(part, e, op.out[LINEAR_GX], tile, left);
}

#undef QUAD

/* dres (+)= g of the block's tiles. Blocks that have the same ones, one for each panel, take turns.
 * Rows are read before it is known whether they are there. */
FN void give_residual(const ToXPart &part, int panel, int panels) {
    enum { FLIGHT = 4, TURN = FLIGHT * LINEAR_THREADS };
    const wide_operand &to = part.op().out[LINEAR_GRES], &g = part.op().in[LINEAR_GRAD_G];
    const bool add = part.op().adds >> LINEAR_GRES & 1u;
    const int quads = g.ld / 4, count = LINEAR_ROWS * quads;
#pragma unroll 1
    for (int tile = part.n().first; part.in_part(tile); tile += part.n().step)
#pragma unroll 1
        for (int first = panel * TURN; first < count; first += panels * TURN) {
            float4 v[FLIGHT], old[FLIGHT];
            float *at[FLIGHT];
            bool there[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const int k = first + j * LINEAR_THREADS + (int)threadIdx.x;
                const int r = quotient(k, quads), column = (k - r * quads) * 4;
                const FunctionRow row = part.at(tile, r);
                const bool room =
                    k < count && row.function < part.l.items && row.row < part.rows().most;
                at[j] = row.in(to) + column;
                v[j] = global_quad(row.in(g) + column, room);
                old[j] = global_quad(at[j], room && add);
                there[j] = room && part.left(row) > 0;
            }
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) global_quad(at[j], sum4(v[j], old[j]), there[j]);
        }
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* The block's numbers. */
FN LinearNumbers numbers_of(const wide_linear_cut &cut, int block, int depth) {
    LinearNumbers n = {cut.shift, cut.groups, cut.tiles};
    n.first = quotient(block, cut.across), n.step = cut.down;
    n.panel = block - n.first * cut.across, n.n0 = n.panel * cut.width;
    n.chunks = (depth + LINEAR_K - 1) / LINEAR_K;
    return n;
}
/* Where its ring is. All threads call it and meet. */
FN void place_ring(const LinearRoom &room) {
    if (threadIdx.x == 0) linear_head().n.ring = room.ring, linear_head().n.stages = room.stages;
    __syncthreads();
}

/* All tiles of a block, columns from n0 on. */
template <class E> FN void forward_tiles(const ForwardPart &part, int n0) {
    const wide_operand &b = part.op().in[LINEAR_B];
    const int column = (int)threadIdx.x;
    if (column < E::COLUMNS)
        linear_head().bias[column] = global_word(b.p + n0 + column, b.p && n0 + column < b.ld);
    place_ring(room_of<E>(part.op().in[LINEAR_X].ld, part.l.blocks[part.l.count]));
    E engine(part.op().in[LINEAR_W], n0);
    PlainRows rows(part, part.op().in[LINEAR_X]);
    multiply_tiles(
        part, engine, rows, [] {},
        [&](int tile, const int(&left)[E::DOWN]) { finish_forward(part, engine, tile, left); });
}

/* panels: how many blocks share dres of the same tiles; 0: it is not asked for, or given. */
template <class E> FN void to_x_tiles(const ToXPart &part, int n0, int panels) {
    place_ring(room_of<E>(part.op().in[LINEAR_GRAD_G].ld, part.l.blocks[part.l.count]));
    E engine(part.op().in[LINEAR_GRAD_W], n0);
    MaskedRows rows(part, part.op().in[LINEAR_GRAD_G], part.op().in[LINEAR_GRAD_H]);
    multiply_tiles(
        part, engine, rows,
        [&] {
            if (panels) give_residual(part, part.n().panel, panels);
        },
        [&](int tile, const int(&left)[E::DOWN]) { finish_to_x(part, engine, tile, left); });
}

/* Warps multiply 64 columns at a time. */
template <class F> FN void by_halves(int n0, int width, F f) {
#pragma unroll 1
    for (int n = n0; n < n0 + width; n += 64) {
        if (n > n0) __syncthreads(); /* nobody reads the ring and the bias any more */
        f(n);
    }
}

template <int MATH>
__global__ void __launch_bounds__(LINEAR_THREADS, 2)
    wide_linear_kernel(const __grid_constant__ wide_launch launch) {
    wide_begin(launch);
    const int which = wide_which(launch);
    const wide_op &op = launch.op[which];
    const int depth = op.in[LINEAR_X].ld, block = (int)blockIdx.x - launch.blocks[which];
    const wide_linear_cut cut = wide_linear_forward(&op, launch.items);
    const LinearNumbers n = numbers_of(cut, block, depth);
    find_head(op, n, LINEAR_X, LINEAR_X);
    const ForwardPart part = {launch};
#if TARGET_PARTS
    if constexpr (MATH == DEV_TF32) {
        const int engine = engine_for<FORWARD, MATH>(depth, cut.width);
        if (engine == WIDE_STAYS) return forward_tiles<GroupTiles<FORWARD, 2, false>>(part, n.n0);
        if (engine == NARROW_STAYS) return forward_tiles<GroupTiles<FORWARD, 1, false>>(part, n.n0);
    }
#endif
    by_halves(n.n0, cut.width, [&](int n0) { forward_tiles<WarpTiles<FORWARD, MATH>>(part, n0); });
}

template <int MATH>
__global__ void __launch_bounds__(LINEAR_THREADS, 2)
    wide_linear_to_x_kernel(const __grid_constant__ wide_launch launch) {
    wide_begin(launch);
    const int which = wide_which(launch);
    const wide_op &op = launch.op[which];
    const int depth = op.in[LINEAR_GRAD_G].ld, block = (int)blockIdx.x - launch.blocks[which];
    const wide_linear_cut cut = wide_linear_to_x(&op, launch.items);
    const LinearNumbers n = numbers_of(cut, block, depth);
    find_head(op, n, LINEAR_GRAD_G, LINEAR_GRAD_H);
    const ToXPart part = {launch};
    const int panels = part.op().out[LINEAR_GRES].p ? cut.across : 0;
    if (!part.op().out[LINEAR_GX].p) return give_residual(part, n.panel, panels);
#if TARGET_PARTS
    if constexpr (MATH == DEV_TF32) {
        const int engine = engine_for<TO_X, MATH>(depth, cut.width);
        if (engine == WIDE_STAYS) return to_x_tiles<GroupTiles<TO_X, 2, false>>(part, n.n0, panels);
        if (engine == NARROW_STAYS)
            return to_x_tiles<GroupTiles<TO_X, 1, false>>(part, n.n0, panels);
        if (engine == WIDE_COMES) return to_x_tiles<GroupTiles<TO_X, 2, true>>(part, n.n0, panels);
        return to_x_tiles<GroupTiles<TO_X, 1, true>>(part, n.n0, panels);
    }
#endif
    by_halves(n.n0, cut.width, [&](int n0) {
        to_x_tiles<WarpTiles<TO_X, MATH>>(part, n0, n0 == n.n0 ? panels : 0);
    });
}

/* ---- for the host ---------------------------------------------------------------------------- */

/* Bytes of shared memory that an instruction's blocks want. */
template <int HOW, int MATH> static int bytes_of(const wide_op *op, int items, int blocks) {
    const int depth = op->in[HOW == FORWARD ? (int)LINEAR_X : (int)LINEAR_GRAD_G].ld;
    const int width =
        (HOW == FORWARD ? wide_linear_forward(op, items) : wide_linear_to_x(op, items)).width;
#if TARGET_PARTS
    switch (engine_for<HOW, MATH>(depth, width)) {
    case WIDE_STAYS:
        return room_of<GroupTiles<HOW, 2, false>>(depth, blocks).bytes;
    case NARROW_STAYS:
        return room_of<GroupTiles<HOW, 1, false>>(depth, blocks).bytes;
    case WIDE_COMES:
        return room_of<GroupTiles<TO_X, 2, true>>(depth, blocks).bytes;
    case NARROW_COMES:
        return room_of<GroupTiles<TO_X, 1, true>>(depth, blocks).bytes;
    }
#endif
    (void)width; /* warps take any */
    return room_of<WarpTiles<HOW, MATH>>(depth, blocks).bytes;
}

template <int HOW, int MATH, class KERNEL>
static void launch_linear(KERNEL *kernel, const wide_launch *launch, cudaStream_t stream) {
    const int blocks = launch->blocks[launch->count];
    if (blocks == 0) return;
    int bytes = 0;
    for (int j = 0; j < launch->count; j++) {
        const int more = bytes_of<HOW, MATH>(&launch->op[j], launch->items, blocks);
        if (more > bytes) bytes = more;
    }
    launch_as(launch_of(blocks, LINEAR_THREADS, (size_t)bytes, stream), false, true, kernel,
              *launch);
}

template <class KERNEL> static cudaError_t prepare(KERNEL *kernel) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TARGET_SHARED);
}

/* The ways of taking products that this set has: two, or one, then whatever is asked for. */
enum { ONE_MATH = TARGET_FP32 ? DEV_FP32 : DEV_TF32, OTHER_MATH = TARGET_16 ? DEV_TF32 : DEV_FP32 };

cudaError_t wide_linear_prepare(void) {
    const cudaError_t each[] = {
        prepare(wide_linear_kernel<ONE_MATH>), prepare(wide_linear_kernel<OTHER_MATH>),
        prepare(wide_linear_to_x_kernel<ONE_MATH>), prepare(wide_linear_to_x_kernel<OTHER_MATH>)};
    for (const cudaError_t e : each)
        if (e != cudaSuccess) return e;
    return cudaSuccess;
}

void wide_linear_launch(const wide_launch *launch, cudaStream_t stream) {
    if (launch->math == ONE_MATH)
        launch_linear<FORWARD, ONE_MATH>(wide_linear_kernel<ONE_MATH>, launch, stream);
    else
        launch_linear<FORWARD, OTHER_MATH>(wide_linear_kernel<OTHER_MATH>, launch, stream);
}

void wide_linear_to_x_launch(const wide_launch *launch, cudaStream_t stream) {
    if (launch->math == ONE_MATH)
        launch_linear<TO_X, ONE_MATH>(wide_linear_to_x_kernel<ONE_MATH>, launch, stream);
    else
        launch_linear<TO_X, OTHER_MATH>(wide_linear_to_x_kernel<OTHER_MATH>, launch, stream);
}
TARGET_END
