/* test_draw_options.c: what a draw may do beyond the split (drawn.h): few targets, noise on
 * targets, a posterior that sees a part, contexts from regions, mirrored inputs, contexts that are
 * the first points. */
#include "drawn.h"
#include "op/mirror.h"
#include "op/region.h"

static void few_targets(void) {
    draw_opts o = train;
    o.few_targets = 1, o.p_empty = 0.2;
    fixture *t = open_fixture(&o, MOST, MOST);
    int64_t least = MOST, most = 0;
    for (t->step.step = 0; t->step.step < 50; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            result r = draw(t, item, FUNCTIONS, CPU);
            CHECK(no_point_twice(t, &r));
            CHECK(r.n <= 9 + 1);
            int k = function_of(t, &r);
            if (t->start[k + 1] - t->start[k] <= 10) continue;
            CHECK(r.n - r.m >= 1);
            if (r.n - r.m < least) least = r.n - r.m;
            if (r.n - r.m > most) most = r.n - r.m;
        }
    CHECK(least == 1 && most == 10); /* 10 where the context was empty */
    close_fixture(t);
}

/* Noise lies on y outside the context alone, and is normal; x does not change. */
static void noise_on_targets(void) {
    draw_opts o = train;
    o.noise = 0.5;
    fixture *t = open_fixture(&o, MOST, MOST), *clean = open_fixture(&train, MOST, MOST);
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (t->step.step = 0; t->step.step < 8; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            clean->step.step = t->step.step;
            result want = draw(clean, item, FUNCTIONS, CPU);
            frame f = {.plan = t->plan,
                       .io = &t->io,
                       .item = item,
                       .items = FUNCTIONS,
                       .S = 1,
                       .element = 4,
                       .act = t->act,
                       .scratch = t->scratch};
            cpu_draw(&f, &t->plan->instrs[0]);
            const value *vy = &t->plan->values[t->plan->instrs[0].out[DRAW_Y]];
            CHECK(f.n == want.n && f.m == want.m);
            for (int64_t i = 0; i < f.n; i++) {
                double off = word(&f, vy, i) - (double)want.place[i];
                if (i < f.m) CHECK(off == 0);
                if (i < f.m) continue;
                sum += off, squares += off * off, count++;
            }
        }
    NEAR(sum / (double)count, 0, 0.02, 0);
    NEAR(sqrt(squares / (double)count), 0.5, 0.02, 0);
    close_fixture(clean);
    close_fixture(t);
}

/* Context inside what is seen inside what is drawn: the same points in the same order as without.
 */
static void seen_points(void) {
    draw_opts o = train;
    o.max_points = 100;
    fixture *plain = open_fixture(&o, MOST, MOST);
    o.seen = 5; /* contexts have 2 to 9 points */
    fixture *few = open_fixture(&o, MOST, MOST);
    o.seen = 40;
    fixture *t = open_fixture(&o, MOST, MOST);
    for (int64_t step = 0; step < 20; step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            t->step.step = plain->step.step = few->step.step = step;
            result want = draw(plain, item, FUNCTIONS, CPU), got = draw(t, item, FUNCTIONS, CPU);
            CHECK(want.k == want.n);
            CHECK(got.k == (got.n < 40 ? got.n : 40) && got.m <= got.k);
            for (int by = 0; by < 3; by++) {
                result same = draw(t, item, FUNCTIONS, (how)by);
                CHECK(equal(&same, &got));
            }
            got.k = got.n;
            CHECK(equal(&got, &want));
            got = draw(few, item, FUNCTIONS, CPU);
            int64_t least = got.m > 5 ? got.m : 5;
            CHECK(got.k == (got.n < least ? got.n : least));
            got.k = got.n;
            CHECK(equal(&got, &want));
        }
    close_fixture(plain);
    close_fixture(few);
    close_fixture(t);
}

/* All functions on one grid of 20 x 20; y tells the place of a point in the data set. Only points
 * that are seen are sorted by region. */
static void check_regions(int32_t seen) {
    enum { SIDE = 20, PIXELS = SIDE * SIDE };
    draw_opts o = train;
    o.p_region = 0.6, o.p_empty = 0.1, o.max_points = 200, o.mirror = 2, o.seen = seen;
    fixture *t = open_fixture(&o, PIXELS, PIXELS);
    instr never = t->plan->instrs[0]; /* the same draws, but no region */
    never.f[DRAW_P_REGION] = 1e-300;
    for (int k = 0; k <= FUNCTIONS; k++) t->start[k] = k * PIXELS;
    for (int p = 0; p < PIXELS; p++)
        t->x[2 * p] = (float)(2 * (p / SIDE)) / (SIDE - 1) - 1,
                 t->x[2 * p + 1] = (float)(2 * (p % SIDE)) / (SIDE - 1) - 1;
    t->data.shared_x = true;
    int count[4] = {0}, empty = 0, all = 0;
    for (t->step.step = 0; t->step.step < 100; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            static int32_t memory[20000];
            frame f = {.plan = t->plan, .io = &t->io, .item = item, .items = FUNCTIONS};
            drawn d = permute_draw(&f, &t->plan->instrs[0], memory);
            CHECK(d.n == 200 && d.first_x == 0 && d.first % PIXELS == 0);
            CHECK(d.k == (seen ? seen : 200));
            static int32_t other[20000];
            drawn plain = permute_draw(&f, &never, other);
            CHECK(memcmp(plain.order + d.k, d.order + d.k, sizeof *d.order * (size_t)(d.n - d.k)) ==
                  0);
            int64_t inside[3] = {0}, last[3] = {0};
            for (int64_t i = 0; i < d.k; i++)
                for (int which = 0; which < REGION_COUNT; which++) {
                    const float *x = t->x + 2 * d.order[i];
                    if (!region_holds(which, mirror_input(d.mirrored, 0, x[0]),
                                      mirror_input(d.mirrored, 1, x[1])))
                        continue;
                    inside[which]++, last[which] = i + 1;
                }
            int kind = REGION_COUNT;
            for (int which = 0; which < REGION_COUNT; which++)
                if (last[which] == inside[which]) kind = which; /* they come first */
            if (kind < REGION_COUNT)
                CHECK(d.m <= inside[kind] && d.m >= inside[kind] - inside[kind] / 2 - 1);
            else
                CHECK(d.m == 0 || (d.m >= 2 && d.m <= 9));
            count[kind]++, all++;
            empty += d.m == 0;
        }
    NEAR(empty / (double)all, 0.1, 0.03, 0);
    for (int which = 0; which < REGION_COUNT; which++)
        NEAR(count[which] / (double)all, 0.9 * 0.6 / 3, 0.03, 0);
    close_fixture(t);
}

static void regions(void) {
    check_regions(0);
    check_regions(120);
}

/* Which inputs of an item's function have the other sign, two bits; the points themselves, their
 * order and their y are those of the unmirrored draw. -1 where they are not. */
static int mirrored(fixture *t, const fixture *plain, int64_t item, how by) {
    frame f = {.plan = t->plan,
               .io = &t->io,
               .item = item,
               .items = FUNCTIONS,
               .S = 1,
               .element = by == REF_DOUBLE ? 8 : 4,
               .act = t->act,
               .scratch = t->scratch};
    const instr *ins = &t->plan->instrs[0];
    if (by == CPU)
        cpu_draw(&f, ins);
    else
        CHECK(ref_execute(&f, ins, &t->env) == MNP_OK);
    result want = draw((fixture *)plain, item, FUNCTIONS, CPU);
    const value *vx = &t->plan->values[ins->out[DRAW_X]], *vy = &t->plan->values[ins->out[DRAW_Y]];
    bool same = f.n == want.n && f.m == want.m;
    int signs = -1;
    for (int64_t i = 0; same && i < f.n; i++) {
        double y = word(&f, vy, i), a = word(&f, vx, i * vx->ld), b = word(&f, vx, i * vx->ld + 1);
        same &= (int64_t)y == want.place[i] && fabs(a) == y && fabs(b) == y + 1;
        if (y == 0) continue; /* a zero tells nothing of its sign */
        int here = (a > 0) + 2 * (b < 0);
        same &= signs < 0 || here == signs;
        signs = here;
    }
    return same ? signs : -1;
}

static void mirrors(void) {
    draw_opts o = train;
    o.mirror = 2;
    fixture *t = open_fixture(&o, MOST, MOST), *plain = open_fixture(&train, MOST, MOST);
    o.mirror = 1;
    fixture *first = open_fixture(&o, MOST, MOST);
    int count[4] = {0}, all = 0, other_step = 0;
    for (int64_t step = 0; step < 30; step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            t->step.step = plain->step.step = first->step.step = step;
            int signs = mirrored(t, plain, item, CPU);
            CHECK(signs >= 0);
            CHECK(mirrored(t, plain, item, REF_FLOAT) == signs);
            CHECK(mirrored(t, plain, item, REF_DOUBLE) == signs);
            CHECK(mirrored(first, plain, item, CPU) == (signs & 1));
            count[signs & 3]++, all++;
            t->step.step = plain->step.step = step + 1;
            other_step += mirrored(t, plain, item, CPU) != signs;
        }
    for (int k = 0; k < 4; k++) NEAR(count[k] / (double)all, 0.25, 0.07, 0);
    NEAR(other_step / (double)all, 0.75, 0.07, 0);
    close_fixture(first);
    close_fixture(plain);
    close_fixture(t);

    o = eval, o.mirror = 2; /* never in evaluation */
    t = open_fixture(&o, MOST, MOST), plain = open_fixture(&eval, MOST, MOST);
    for (int64_t item = 0; item < FUNCTIONS; item++)
        CHECK(mirrored(t, plain, item, CPU) == 0 || t->start[item + 1] - t->start[item] < 2);
    close_fixture(plain);
    close_fixture(t);
}

/* Is the context the m points of the function with the least first input? x is minus the place:
 * those with the greatest place. */
static bool is_prefix(const fixture *t, const result *r) {
    int64_t first = t->start[function_of(t, r) + 1] - r->m;
    for (int64_t i = 0; i < r->n; i++)
        if ((r->place[i] >= first) != (i < r->m)) return false;
    return true;
}

/* The asked share of contexts are prefixes, with every size as often as without; all ways of
 * drawing agree; a share of 0 changes no bit. */
static void prefixes(void) {
    draw_opts o = train;
    o.prefix = 0.5;
    fixture *t = open_fixture(&o, MOST, MOST);
    int64_t long_ones = 0, found = 0, sizes_seen[16] = {0};
    for (t->step.step = 0; t->step.step < 100; t->step.step++)
        for (int64_t item = 0; item < FUNCTIONS; item++) {
            result want = draw(t, item, FUNCTIONS, REF_DOUBLE), got = draw(t, item, FUNCTIONS, CPU);
            CHECK(equal(&got, &want));
            CHECK(no_point_twice(t, &got));
            if (got.n < 40) continue; /* where a random context is hardly ever a prefix */
            long_ones++, found += is_prefix(t, &got);
            sizes_seen[got.m]++;
        }
    NEAR((double)found / (double)long_ones, 0.5, 0.1, 0);
    CHECK(long_ones > 250);
    for (int m = 2; m <= 9; m++) CHECK(sizes_seen[m] > 0);
    close_fixture(t);

    o.prefix = 1; /* every one; of a part of the points, the first of that part */
    o.max_points = 25;
    t = open_fixture(&o, MOST, MOST);
    for (int64_t item = 0; item < FUNCTIONS; item++) {
        result r = draw(t, item, FUNCTIONS, CPU);
        for (int64_t i = 0; i < r.m; i++)
            for (int64_t j = r.m; j < r.n; j++) CHECK(r.place[i] > r.place[j]);
    }
    close_fixture(t);

    draw_opts never = train;
    never.prefix = 0;
    t = open_fixture(&never, MOST, MOST);
    fixture *plain = open_fixture(&train, MOST, MOST);
    for (int64_t item = 0; item < FUNCTIONS; item++) {
        result a = draw(t, item, FUNCTIONS, CPU), b = draw(plain, item, FUNCTIONS, CPU);
        CHECK(equal(&a, &b));
    }
    close_fixture(plain);
    close_fixture(t);

    draw_opts held_out = eval; /* evaluation has contexts of its own */
    held_out.prefix = 1;
    t = open_fixture(&held_out, MOST, MOST), plain = open_fixture(&eval, MOST, MOST);
    for (int64_t item = 0; item < FUNCTIONS; item++) {
        result a = draw(t, item, FUNCTIONS, CPU), b = draw(plain, item, FUNCTIONS, CPU);
        CHECK(equal(&a, &b));
    }
    close_fixture(plain);
    close_fixture(t);
}

/* By the second input, which is the place: points that come first in the file, or those that come
 * last where it is mirrored, as by the first input, which falls. */
static void prefixes_by_another_input(void) {
    draw_opts o = train;
    o.prefix = 1;
    fixture *falling = open_fixture(&o, MOST, MOST);
    o.time = 1;
    fixture *rising = open_fixture(&o, MOST, MOST);
    o.mirror = 2;
    fixture *t = open_fixture(&o, MOST, MOST);
    int64_t turned = 0;
    for (int64_t item = 0; item < FUNCTIONS; item++) {
        result want = draw(rising, item, FUNCTIONS, REF_DOUBLE);
        result r = draw(rising, item, FUNCTIONS, CPU);
        CHECK(equal(&r, &want));
        for (int64_t i = 0; i < r.m; i++)
            for (int64_t j = r.m; j < r.n; j++) CHECK(r.place[i] < r.place[j]);
        int up = mirrored(t, rising, item, CPU), down = mirrored(t, falling, item, CPU);
        CHECK((up >= 0 && !(up & 2)) || (down >= 0 && (down & 2)) || r.n < 2);
        turned += down >= 0 && (down & 2);
    }
    CHECK(turned > 0 && turned < FUNCTIONS);
    close_fixture(falling);
    close_fixture(rising);
    close_fixture(t);
}

/* Equal inputs: the points that come first in the table. */
static void prefixes_of_ties(void) {
    enum { N = 12, M = 5 };
    float x[N] = {3, 1, 2, 1, 0, 2, 1, 3, 1, 0, 5, 1};
    int32_t order[N] = {7, 11, 3, 0, 9, 5, 8, 1, 10, 4, 6, 2}, spare[N];
    const int32_t want[N] = {3, 9, 1, 4, 6, 7, 11, 0, 5, 8, 10, 2};
    permute_first(x, 1, false, order, N, M, spare);
    CHECK(memcmp(order, want, sizeof want) == 0);
    const int32_t back[N] = {7, 0, 5, 10, 2, 3, 9, 1, 4, 6, 11, 8};
    permute_first(x, 1, true, order, N, M, spare);
    CHECK(memcmp(order, back, sizeof back) == 0);
}

int main(void) {
    RUN(few_targets);
    RUN(noise_on_targets);
    RUN(seen_points);
    RUN(regions);
    RUN(mirrors);
    RUN(prefixes);
    RUN(prefixes_by_another_input);
    RUN(prefixes_of_ties);
    return check_done();
}
