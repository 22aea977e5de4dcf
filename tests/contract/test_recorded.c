/* test_recorded.c: every operation is recorded by some model or trained agent: one that none
 * records is code that nobody runs. The recordings are those of all kinds of processes with each
 * encoder, transition and objective: training step, scores, latents and queries. */
#include "bandit/learner.h"
#include "check.h"
#include "model/process/process.h"

static bool seen[OP_COUNT];

static void note(graph *g) {
    CHECK(graph_ok(g));
    for (int32_t k = 0; k < g->n_instrs; k++) seen[g->instrs[k].op] = true;
}

/* `kind` counts what a process may record. */
enum { TRAIN, BOUND, PREDICTIVE, LATENTS, FED, SUM, OF_SUM, FED_SUM, QUERIES };

static void record_particle(env *e, const model_spec *s, params *weights, process_particle what) {
    graph g;
    graph_init(&g, e, weights);
    process_at(s->kind)->particle(&g, s, what);
    note(&g);
    graph_free(&g);
}

static void record_one(env *e, const model_spec *s, int kind) {
    const process_def *p = process_at(s->kind);
    const process_train_opts train = {.draw = {.train = true, .x_dim = 1, .hi = 5}, .update = true};
    const process_score_opts score = {
        .scored = s->kl ? ROWS_ALL : ROWS_REST, .points = true, .draws = true};
    bool streams = p->stream_width && p->stream_width(s) > 0;
    params weights;
    graph g;
    params_init(&weights);
    graph_init(&g, e, &weights);
    p->train_step(&g, s, &train); /* declares the weights */
    note(&g);
    graph_free(&g);
    graph_init(&g, e, &weights);
    if (kind == BOUND) p->bound(&g, s, &score);
    if (kind == PREDICTIVE) p->predictive(&g, s, &score);
    if (kind == LATENTS && p->draw_latents) p->draw_latents(&g, s, false);
    if (kind == FED && p->draw_latents) p->draw_latents(&g, s, true);
    if (kind == SUM && streams) p->sum(&g, s);
    if (kind == OF_SUM && streams) p->latents_of_sum(&g, s, false);
    if (kind == FED_SUM && streams) p->latents_of_sum(&g, s, true);
    if (kind == LATENTS && p->particle)
        for (int what = PARTICLE_GRADIENT; what <= PARTICLE_NOISE; what++)
            record_particle(e, s, &weights, (process_particle)what);
    if (kind >= QUERIES && (p->draw_latents || kind != QUERIES + QUERY_LEVELS))
        p->query(&g, s, (process_query)(kind - QUERIES));
    note(&g);
    graph_free(&g);
    params_free(e, &weights);
}

static void record_all(env *e, const char *process) {
    for (int way = 0; way < 3 * 3 * 2 * 2 * 2; way++) {
        model_spec s;
        CHECK(spec_preset(e, process, "tiny", &s) == MNP_OK);
        s.x_dim = 1;
        s.encoder = way % 3, s.transition = way / 3 % 3;
        s.objective = way / 9 % 2, s.kl = way / 18 % 2;
        s.layer_norm = way / 36 % 2;
        s.gp_mean = way % 2, s.head = way % 2, s.gp_season = way % 3;
        for (int kind = 0; kind < QUERIES + QUERY_KINDS; kind++) record_one(e, &s, kind);
    }
}

static void record_learner(env *e, const learner_def *def) {
    learner_opts o;
    option_view view = learner_view(def, &o);
    learner *l = NULL;
    graph g;
    CHECK(options_defaults(e, &view, 1) == MNP_OK);
    CHECK(learner_create(e, def, &o, 2, 0, &l) == MNP_OK);
    graph_init(&g, e, &l->params);
    def->record(&g, l);
    note(&g);
    graph_free(&g);
    learner_destroy(l);
}

static void every_op_is_recorded(void) {
    env e;
    env_init(&e);
#define PROCESS(id, name) record_all(&e, name);
#include "model/process/processes.def"
#undef PROCESS
    record_learner(&e, &learner_maml);
    record_learner(&e, &learner_cbruno);
    /* Of maml's outer step; and draws, which models do not derive, can be. */
    seen[OP_dot] = seen[OP_dot_grad] = true;
    seen[OP_rqs_to_data_grad] = seen[OP_affine_to_data_grad] = true;
    for (int op = 0; op < OP_COUNT; op++) {
        if (!seen[op]) fprintf(stderr, "no model records %s\n", op_name(op));
        CHECK(seen[op]);
    }
}

int main(void) {
    RUN(every_op_is_recorded);
    return check_done();
}
