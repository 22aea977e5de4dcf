/* test_cells.c: the cells of a study whose runs are additions: what runs, what is kept, what is
 * read back, and who runs it, for cells alone and in groups. */
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "cli/outputs.h"
#include "lab/study.h"

/* A alone, three of a group, B alone, two of a group, which are the third and the fourth run. */
enum { CELLS = 7, NEVER = 99 };
static const int groups[CELLS] = {0, 1, 1, 1, 0, 2, 2};

typedef struct toy_cell {
    cell head;
    int64_t value;
} toy_cell;

typedef struct toy {
    study s;
    env *e;
    int runs, scored; /* calls of run(); cells that they scored */
    int stops, code;  /* so many scores, and a run ends with this code */
} toy;

/* main.c of the command has the real one */
bool cli_interrupted(void);
bool cli_interrupted(void) {
    return false;
}

static void title(const study *s, const void *at, char *text, size_t size) {
    (void)s, (void)at;
    snprintf(text, size, "a cell");
}

static int64_t value_of(const study *s, const void *at) {
    return 10 + (int64_t)(((const char *)at - s->cells) / (ptrdiff_t)s->cell_bytes);
}

static int score(study *s, void *at) {
    toy *t = (toy *)s;
    const toy_cell *first = at;
    t->runs++;
    for (int k = s->current; k < s->count; k++) {
        toy_cell *c = (toy_cell *)(void *)study_cell(s, k);
        if (c != first && (!first->head.group || c->head.group != first->head.group)) break;
        if (c->head.state != CELL_OPEN) continue;
        if (t->scored == t->stops) return t->code;
        t->scored++;
        c->value = value_of(s, c);
        c->head.scored = true;
    }
    return 0;
}

static const field fields[] = {{"value", offsetof(toy_cell, value), true}};

static void put(cli_json *j, const study *s, const void *at) {
    (void)s;
    fields_put(j, fields, 1, at);
}

static bool get(const json_value *root, const study *s, void *at) {
    (void)s;
    return fields_get(root, fields, 1, at);
}

static const study_def def = {
    .name = "toy", .title = title, .run = score, .say = title, .put = put, .get = get};

/* ---- a study --------------------------------------------------------------------------------- */

typedef struct bench {
    outputs out;
    command command;
    cli c;
    toy t;
    char dir[512];
} bench;

static void begin(bench *b, const char *name, int rank, int ranks) {
    const char *base = getenv("TEST_TMP");
    char cells[600];
    *b = (bench){.command = {.name = "repro"}};
    outputs_begin(&b->out);
    b->c = (cli){.command = &b->command, .outputs = &b->out, .rank = rank, .ranks = ranks};
    b->c.quiet = true, b->c.alone = true;
    env_init(&b->c.env);
    CHECK(mnp_ctx_create(NULL, &b->c.ctx) == MNP_OK);
    snprintf(b->dir, sizeof b->dir, "%s/%s", base ? base : "/tmp", name);
    snprintf(cells, sizeof cells, "%s/cells", b->dir);
    mkdir(b->dir, 0777);
    mkdir(cells, 0777);
    b->t = (toy){.s = {.def = &def, .c = &b->c, .dir = b->dir}, .stops = NEVER};
    CHECK(study_cells(&b->t.s, CELLS, sizeof(toy_cell)) == 0);
    for (int k = 0; k < CELLS; k++) {
        cell *c = study_cell(&b->t.s, k);
        *(toy_cell *)(void *)c = (toy_cell){.head.group = groups[k]};
        c->label = "toy";
        snprintf(c->key, sizeof c->key, "cell %d", k);
        cell_name(&b->t.s, c, "c%d", k);
    }
}

static void end(bench *b) {
    env_free(&b->c.env, b->t.s.cells);
    mnp_ctx_destroy(b->c.ctx);
}

static bool is_kept(const bench *b, int k) {
    char path[STUDY_PATH + 8];
    snprintf(path, sizeof path, "%s.json", study_cell(&b->t.s, k)->stem);
    return access(path, F_OK) == 0;
}

static void lose(const bench *b, int k) {
    char path[STUDY_PATH + 8];
    snprintf(path, sizeof path, "%s.json", study_cell(&b->t.s, k)->stem);
    CHECK(unlink(path) == 0);
}

/* From nothing. */
static void begin_afresh(bench *b, const char *name, int rank, int ranks) {
    begin(b, name, rank, ranks);
    for (int k = 0; k < CELLS; k++)
        if (is_kept(b, k)) lose(b, k);
}

static void check_all_done(const bench *b) {
    for (int k = 0; k < CELLS; k++) {
        const toy_cell *c = (const toy_cell *)(const void *)study_cell(&b->t.s, k);
        CHECK(c->head.state == CELL_DONE && c->value == 10 + k && is_kept(b, k));
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void one_run_for_a_group(void) {
    bench b;
    begin_afresh(&b, "one", 0, 1);
    CHECK(study_run_cells(&b.t.s) == 0);
    CHECK(b.t.runs == 4 && b.t.scored == CELLS);
    check_all_done(&b);
    end(&b);
    begin(&b, "one", 0, 1); /* and nothing is left to run */
    CHECK(study_run_cells(&b.t.s) == 0);
    CHECK(b.t.runs == 0 && b.t.scored == 0);
    check_all_done(&b);
    end(&b);
}

static void what_is_missing_alone_is_run(void) {
    bench b;
    begin_afresh(&b, "missing", 0, 1);
    CHECK(study_run_cells(&b.t.s) == 0);
    lose(&b, 1), lose(&b, 3), lose(&b, 6);
    end(&b);
    begin(&b, "missing", 0, 1);
    CHECK(study_run_cells(&b.t.s) == 0);
    CHECK(b.t.runs == 2 && b.t.scored == 3);
    check_all_done(&b);
    end(&b);
}

/* Two of the three cells of a group had their result. */
static void an_interrupted_run_keeps_what_it_has(void) {
    bench b;
    begin_afresh(&b, "stopped", 0, 1);
    b.t.stops = 3, b.t.code = EXIT_INTERRUPTED;
    CHECK(study_run_cells(&b.t.s) == EXIT_INTERRUPTED);
    CHECK(b.t.runs == 2 && is_kept(&b, 0) && is_kept(&b, 1) && is_kept(&b, 2));
    for (int k = 3; k < CELLS; k++) CHECK(!is_kept(&b, k));
    end(&b);
    begin(&b, "stopped", 0, 1);
    CHECK(study_run_cells(&b.t.s) == 0);
    CHECK(b.t.runs == 3 && b.t.scored == 4);
    check_all_done(&b);
    end(&b);
}

/* The rest of a group that fails is not tried again; others go on. */
static void a_failed_run_fails_its_group(void) {
    bench b;
    begin_afresh(&b, "failed", 0, 1);
    b.t.stops = 2, b.t.code = EXIT_FAILED;
    CHECK(study_run_cells(&b.t.s) == EXIT_FAILED);
    CHECK(study_cell(&b.t.s, 1)->state == CELL_DONE && is_kept(&b, 1));
    CHECK(study_cell(&b.t.s, 2)->state == CELL_FAILED && !is_kept(&b, 2));
    CHECK(study_cell(&b.t.s, 3)->state == CELL_FAILED && !is_kept(&b, 3));
    CHECK(b.t.runs == 4 && b.t.scored == 2); /* those after it were tried */
    end(&b);
}

/* Two ranks, one after the other: each has whole groups, and rank 0 reads what the other found. */
static void ranks_share_groups(void) {
    bench b;
    begin_afresh(&b, "ranks", 1, 2);
    CHECK(study_run_cells(&b.t.s) == 0);
    CHECK(b.t.runs == 2 && b.t.scored == 5);
    CHECK(!is_kept(&b, 0) && is_kept(&b, 1) && is_kept(&b, 2) && is_kept(&b, 3));
    CHECK(!is_kept(&b, 4) && is_kept(&b, 5) && is_kept(&b, 6));
    bench first;
    begin(&first, "ranks", 0, 2);
    CHECK(study_run_cells(&first.t.s) == 0);
    CHECK(first.t.runs == 2 && first.t.scored == 2);
    check_all_done(&first);
    end(&first);
    end(&b);
}

int main(void) {
    RUN(one_run_for_a_group);
    RUN(what_is_missing_alone_is_run);
    RUN(an_interrupted_run_keeps_what_it_has);
    RUN(a_failed_run_fails_its_group);
    RUN(ranks_share_groups);
    return check_done();
}
