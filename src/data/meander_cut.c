/* meander_cut.c: loops whose neck is narrow leave the river.
 *
 * A pair of nodes (i, j) is a neck when j - i > w = floor((crdist + 20 ds0) / ds0) and their
 * distance is at most crdist. While there is a neck, the first in lexicographic order is cut: the
 * nodes between i and j go, i ... j are kept as a loop.
 *
 * Nodes are sorted into square cells of side crdist, so that the partners of a node lie in the 3 x
 * 3 cells around it. A cut needs no new search from the beginning and no new cells: nodes before i
 * had no neck and taking nodes out only brings indices nearer; after j all indices shift alike. */
#include <math.h>

#include "data/meander.h"

typedef struct cells {
    double x0, y0, side;
    int64_t cols, rows;
} cells;

static int64_t cell_index(double v, double origin, double side, int64_t count) {
    int64_t k = (int64_t)((v - origin) / side);
    return k < 0 ? 0 : k >= count ? count - 1 : k;
}

/* The box of the line in cells, larger ones where there would be too many. */
static mnp_status choose_cells(const meander *m, cells *c) {
    double x0 = m->x[0], x1 = x0, y0 = m->y[0], y1 = y0, sum = 0;
    for (int64_t i = 0; i < m->n; i++) {
        double x = m->x[i], y = m->y[i];
        x0 = x < x0 ? x : x0;
        x1 = x > x1 ? x : x1;
        y0 = y < y0 ? y : y0;
        y1 = y > y1 ? y : y1;
        sum += x + y;
    }
    if (!isfinite(sum))
        return env_fail(m->e, MNP_ENUMERIC, "step %lld: the river's line is no longer finite",
                        (long long)m->step);
    *c = (cells){.x0 = x0, .y0 = y0, .side = m->o.crdist};
    while (((x1 - x0) / c->side + 1) * ((y1 - y0) / c->side + 1) > MEANDER_CELLS_MAX) c->side *= 2;
    c->cols = (int64_t)((x1 - x0) / c->side) + 1;
    c->rows = (int64_t)((y1 - y0) / c->side) + 1;
    return MNP_OK;
}

/* A counting sort: m->node, cell_x, cell_y hold the nodes cell by cell, each cell's in order. */
static void fill_cells(meander *m, const cells *c) {
    int64_t count = c->cols * c->rows;
    int32_t *start = m->cell_start;
    for (int64_t k = 0; k <= count; k++) start[k] = 0;
    for (int64_t i = 0; i < m->n; i++) {
        int64_t k = cell_index(m->y[i], c->y0, c->side, c->rows) * c->cols +
                    cell_index(m->x[i], c->x0, c->side, c->cols);
        m->cell_of[i] = (int32_t)k;
        start[k]++;
    }
    for (int64_t k = 1; k <= count; k++) start[k] += start[k - 1]; /* ends of the cells */
    for (int64_t i = m->n - 1; i >= 0; i--) {
        int32_t at = --start[m->cell_of[i]];
        m->node[at] = (int32_t)i;
        m->cell_x[at] = m->x[i];
        m->cell_y[at] = m->y[i];
    }
}

/* The first partner j of the node i whose next node is `next`, or -1. */
static int64_t first_partner(const meander *m, const cells *c, int64_t i, int64_t next,
                             int64_t width) {
    int64_t col = m->cell_of[i] % c->cols, row = m->cell_of[i] / c->cols;
    int64_t left = col > 0 ? col - 1 : 0, right = col + 1 < c->cols ? col + 1 : col;
    int64_t top = row > 0 ? row - 1 : 0, bottom = row + 1 < c->rows ? row + 1 : row;
    int32_t from = (int32_t)(next + width), best = INT32_MAX;
    double x = m->x[i], y = m->y[i], near = m->o.crdist * m->o.crdist;
    for (row = top; row <= bottom; row++) {
        int32_t end = m->cell_start[row * c->cols + right + 1];
        for (int32_t k = m->cell_start[row * c->cols + left]; k < end; k++) {
            int32_t j = m->node[k];
            if (j < from || j >= best) continue; /* j - i > width, counted without what was cut */
            double dx = m->cell_x[k] - x, dy = m->cell_y[k] - y;
            if (dx * dx + dy * dy <= near) best = j;
        }
    }
    return best < INT32_MAX ? best : -1;
}

static mnp_status grow(env *e, double **array, int64_t from, int64_t to) {
    double *grown = env_grow(e, *array, (size_t)from, (size_t)to, sizeof **array, "cut-off loops");
    if (grown) *array = grown;
    return grown ? MNP_OK : MNP_ENOMEM;
}

static mnp_status grow_index(env *e, int64_t **array, int64_t from, int64_t to) {
    int64_t *grown = env_grow(e, *array, (size_t)from, (size_t)to, sizeof **array, "cut-off loops");
    if (grown) *array = grown;
    return grown ? MNP_OK : MNP_ENOMEM;
}

static mnp_status reserve_loop(env *e, meander_loops *l, int64_t nodes) {
    if (l->count + 2 > l->capacity) {
        int64_t to = 2 * l->capacity + 64;
        MNP_TRY(grow_index(e, &l->start, l->capacity, to));
        MNP_TRY(grow_index(e, &l->step, l->capacity, to));
        l->capacity = to;
    }
    if (l->nodes + nodes > l->node_capacity) {
        int64_t to = 2 * (l->node_capacity + nodes) + 2048;
        MNP_TRY(grow(e, &l->x, l->node_capacity, to));
        MNP_TRY(grow(e, &l->y, l->node_capacity, to));
        l->node_capacity = to;
    }
    return MNP_OK;
}

static void add_node(meander_loops *l, double x, double y) {
    l->x[l->nodes] = x;
    l->y[l->nodes++] = y;
}

/* The loop from node i over next ... j. */
static mnp_status keep_loop(meander *m, int64_t i, int64_t next, int64_t j) {
    meander_loops *l = &m->loops;
    MNP_TRY(reserve_loop(m->e, l, j - next + 2));
    l->start[l->count] = l->nodes;
    l->step[l->count++] = m->step;
    add_node(l, m->x[i], m->y[i]);
    for (int64_t k = next; k <= j; k++) add_node(l, m->x[k], m->y[k]);
    l->start[l->count] = l->nodes;
    return MNP_OK;
}

mnp_status meander_cut(meander *m) {
    cells c = {0};
    MNP_TRY(choose_cells(m, &c));
    fill_cells(m, &c);
    int64_t width = (int64_t)floor((m->o.crdist + 20 * m->o.ds0) / m->o.ds0), kept = 0, j;
    for (int64_t i = 0, next; i < m->n; i = next) {
        next = i + 1;
        while ((j = first_partner(m, &c, i, next, width)) >= 0) {
            MNP_TRY(keep_loop(m, i, next, j));
            next = j;
        }
        m->x[kept] = m->x[i]; /* kept <= i: what is still to be read stays */
        m->y[kept++] = m->y[i];
    }
    m->n = kept;
    return MNP_OK;
}
