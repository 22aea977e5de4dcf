/* test_program.c: programs for the GPU, made without one: every pass leaves what check.h says, for
 * plans with fused parts and without, in each precision; and a program that breaks a promise is
 * refused with the name of the pass. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/program/check.h"
#include "backend/cuda/program/stages.h"
#include "check.h"
#include "model/model.h"
#include "model/process/process.h"
#include "op/linear.h"

static env world;

typedef struct made {
    model *m;
    graph graph;
    plan *plan;
    cuda_program program;
} made;

/* options: on top of the preset's. */
static bool make_as(made *t, const char *preset, const char *options, exec_math math,
                    uint32_t kinds, exec_wide wide) {
    model_spec spec;
    *t = (made){0};
    CHECK(spec_preset(&world, "mnp", preset, &spec) == MNP_OK);
    option_view view = spec_view(&spec);
    CHECK(options_parse(&world, &view, 1, options) == MNP_OK);
    const bool images = strcmp(preset, "image") == 0;
    spec.x_dim = images ? 2 : 1;
    CHECK(model_create(&world, &spec, 5, &t->m) == MNP_OK);
    const process_train_opts c = {
        .update = true, .draw = {.train = true, .x_dim = images ? 2 : 1, .lo = 2, .hi = 50}};
    const plan_opts o = {.n = 128, .m = images ? 128 : 50, .samples = 1};
    graph_init(&t->graph, &world, &t->m->params);
    process_at(spec.kind)->train_step(&t->graph, &t->m->spec, &c);
    CHECK(plan_make(&t->graph, &o, op_is_step, &t->plan) == MNP_OK);
    return program_make(&world, t->plan, math, kinds, wide, &t->program) == MNP_OK;
}

static bool make(made *t, const char *preset, exec_math math, uint32_t kinds) {
    return make_as(t, preset, "", math, kinds, WIDE_NEVER);
}

static void done(made *t) {
    program_free(&world, &t->program);
    plan_destroy(t->plan);
    graph_free(&t->graph);
    model_destroy(t->m);
}

static program_check *const finished[] = {
    program_check_code,   program_check_fresh, program_check_rows,  program_check_arena,
    program_check_stages, program_check_spans, program_check_tasks, program_check_fp16};
enum { CHECKS = sizeof finished / sizeof *finished };

/* A finished program also has what the passes before the last one left, but for gradients that are
 * saved as rows: nobody writes them. */
static void all_hold(const char *preset, exec_math math, uint32_t kinds, int parts) {
    made t;
    CHECK(make(&t, preset, math, kinds));
    CHECK(t.program.n_fused == parts);
    for (int k = 0; k < CHECKS; k++) {
        if (finished[k] == program_check_fresh && t.program.n_products > 0) continue;
        const mnp_status status = finished[k](&world, t.plan, &t.program);
        if (status != MNP_OK) check_bad(__FILE__, __LINE__, world.error);
    }
    done(&t);
}

static void presets(void) {
    for (int math = MATH_FP32; math <= MATH_MIXED; math++) {
        all_hold("tiny", (exec_math)math, PROGRAM_FUSE_ALL, 1);
        all_hold("image", (exec_math)math, PROGRAM_FUSE_ALL, 0);
        all_hold("paper", (exec_math)math, PROGRAM_FUSE_ALL, 45);
        all_hold("paper", (exec_math)math, 0, 0);
    }
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Does instruction a of the program write a value of the plan that b touches? */
static bool writes_into(const made *t, int32_t a, int32_t b) {
    const cuda_program *p = &t->program;
    const instr *x = &t->plan->instrs[p->from[a]], *y = &t->plan->instrs[p->from[b]];
    const bool other_sums = p->code[a].wide != p->code[b].wide;
    bool into = false;
    for (int i = 0; i < DEV_OUT; i++) {
        if (!p->code[a].out[i].present) continue; /* a piece of an instruction */
        for (int j = 0; j < DEV_IN; j++) into |= x->out[i] == y->in[j];
        for (int j = 0; j < DEV_OUT; j++)
            into |= p->code[b].out[j].present && x->out[i] == y->out[j] && !other_sums;
    }
    return into;
}

/* Instructions that changed places have nothing in common that one of them writes. */
static void keeps_order(const made *t) {
    const cuda_program *p = &t->program;
    for (int32_t b = 0; b < p->count; b++)
        for (int32_t a = 0; a < b; a++)
            if (p->from[a] > p->from[b]) CHECK(!writes_into(t, a, b) && !writes_into(t, b, a));
}

/* As kernels for all functions: every pass holds, and there are stages of each kind. */
static void wide_holds(const char *preset, const char *options, uint32_t kinds, int attentions) {
    made t;
    int of_kind[STAGE_KINDS] = {0}, pairs = 0, other_slots = 0;
    CHECK(make_as(&t, preset, options, MATH_TF32, kinds, WIDE_ALWAYS));
    for (int k = 0; k < CHECKS; k++) {
        if (finished[k] == program_check_fresh && t.program.n_products > 0) continue;
        const mnp_status status = finished[k](&world, t.plan, &t.program);
        if (status != MNP_OK) check_bad(__FILE__, __LINE__, world.error);
    }
    for (int32_t k = 0; k < t.program.n_stages; k++) {
        of_kind[t.program.stages[k].kind]++;
        pairs += t.program.stages[k].kind != STAGE_FUNCTIONS && t.program.stages[k].count > 1;
    }
    for (int32_t k = 0; k < t.program.count; k++) other_slots += t.program.code[k].wide;
    CHECK(of_kind[STAGE_LINEAR] > 0 && of_kind[STAGE_LINEAR_TO_X] > 0 &&
          of_kind[STAGE_LINEAR_TO_W] > 0);
    CHECK((of_kind[STAGE_ATTENTION] > 0) == (attentions > 0));
    CHECK((of_kind[STAGE_ATTENTION_GRAD] > 0) == (attentions > 0));
    /* all points and the context side by side */
    CHECK(attentions == 0 || (pairs > 0 && other_slots > 0));
    if (kinds == 0) keeps_order(&t);
    done(&t);
}

static void wide_programs(void) {
    wide_holds("paper", "", 0, 1);
    wide_holds("paper", "enc_width=128", PROGRAM_FUSE_ALL, 1);
    wide_holds("paper", "encoder=isab layer_norm=on", PROGRAM_FUSE_ALL, 1);
    wide_holds("paper", "flow_hidden=256", PROGRAM_FUSE_ALL, 0);
    wide_holds("image", "", PROGRAM_FUSE_ALL, 1);
}

/* Where they gain nothing there are none: small networks, and parts that have nearly all of it. */
static void wide_where_faster(void) {
    made t;
    CHECK(make_as(&t, "tiny", "", MATH_TF32, PROGRAM_FUSE_ALL, WIDE_WHERE_FASTER));
    CHECK(t.program.n_stages == 1);
    done(&t);
    CHECK(make_as(&t, "paper", "", MATH_TF32, PROGRAM_FUSE_ALL, WIDE_WHERE_FASTER));
    CHECK(t.program.n_stages == 1 && t.program.stages[0].count == t.program.count);
    done(&t);
    CHECK(make_as(&t, "paper", "enc_width=128", MATH_TF32, PROGRAM_FUSE_ALL, WIDE_WHERE_FASTER));
    CHECK(t.program.n_stages > 100);
    done(&t);
}

/* Values share memory once they are no longer needed: hardly more than the plan's own arena, where
 * each of them had a place of its own before. */
static void packed(void) {
    made t;
    CHECK(make_as(&t, "paper", "", MATH_TF32, 0, WIDE_ALWAYS));
    CHECK(t.program.act_words > 0 && t.program.act_words < t.plan->act_words * 5 / 4);
    done(&t);
}

/* Before its reverse passes are split in two they count as gradients of weights; afterwards one
 * that is still whole is none of a kernel's, which would form one half of it. */
static void whole_reverse(void) {
    made t;
    CHECK(make_as(&t, "paper", "", MATH_TF32, 0, WIDE_NEVER));
    int32_t *kind = calloc((size_t)t.program.count, sizeof *kind), count[2] = {0};
    for (int split = 0; split < 2; split++) {
        const stages_how how = {.always = true, .split = split, .sums = true};
        CHECK(stages_find(&world, t.plan, t.program.code, t.program.count, how, kind) == MNP_OK);
        for (int32_t k = 0; k < t.program.count; k++)
            count[split] += stages_whole(&t.program.code[k]) && kind[k] != STAGE_FUNCTIONS;
    }
    CHECK(count[0] > 0 && count[1] == 0);
    free(kind);
    done(&t);
}

static made wrong;

static void refused(program_check *check, const char *pass) {
    CHECK(check(&world, wrong.plan, &wrong.program) == MNP_EDEVICE);
    CHECK(strstr(world.error, pass) != NULL);
}

/* One number is changed, and changed back. */
#define REFUSED(number, value, check, pass)                                                        \
    do {                                                                                           \
        unsigned char was_[sizeof(number)];                                                        \
        memcpy(was_, &(number), sizeof was_);                                                      \
        (number) = (value);                                                                        \
        refused(check, pass);                                                                      \
        memcpy(&(number), was_, sizeof was_);                                                      \
        CHECK(check(&world, wrong.plan, &wrong.program) == MNP_OK);                                \
    } while (0)

/* The first op that adds to a gradient which another instruction has written. */
static dev_instr *second_writer(cuda_program *p) {
    for (int32_t k = 0; k < p->count; k++)
        for (int j = 0; p->code[k].op < OPCODE_COUNT && j < DEV_OUT; j++)
            if (p->code[k].out[j].present && p->code[k].out[j].store == DEV_STORE_PGRAD &&
                (p->code[k].acc & ~p->code[k].fresh) >> j & 1u)
                return &p->code[k];
    return NULL;
}

static void broken_ops(void) {
    CHECK(make(&wrong, "tiny", MATH_FP32, 0));
    cuda_program *p = &wrong.program;
    REFUSED(p->code[3].together, 0, program_check_code, "translate");
    REFUSED(p->code[3].together, DEV_TOGETHER + 1, program_check_code, "translate");
    REFUSED(p->code[3].op, OPCODE_COUNT + FUSED_COUNT, program_check_code, "translate");
    REFUSED(p->act_words, p->act_words - 1, program_check_arena, "arena");
    dev_instr *second = second_writer(p);
    CHECK(second != NULL);
    if (second) REFUSED(second->fresh, second->acc, program_check_fresh, "mark_fresh");
    if (second) REFUSED(second->acc, 0, program_check_fresh, "mark_fresh");
    REFUSED(p->grad_spans[0].words, p->grad_spans[0].words - 1, program_check_spans, "spans");
    REFUSED(p->grad_spans[1].at, p->grad_spans[0].at, program_check_spans, "spans");
    REFUSED(p->fp16_at[7], p->fp16_at[8], program_check_fp16, "fp16");
    done(&wrong);
}

static void broken_parts(void) {
    CHECK(make(&wrong, "paper", MATH_TF32, PROGRAM_FUSE_ALL));
    cuda_program *p = &wrong.program;
    CHECK(p->n_products > 0 && p->n_outer > 0 && p->n_wgrad_tasks > 1);
    REFUSED(p->products[0].at, wrong.plan->params->trainable, program_check_rows, "rows");
    REFUSED(p->products[0].terms, 0, program_check_rows, "rows");
    REFUSED(p->terms[0].x.at, (int32_t)p->saved_words, program_check_rows, "rows");
    REFUSED(p->outer[0].g, 0, program_check_rows, "rows");
    REFUSED(p->wgrad_tasks[0].milestone, DEV_ENDED + 1, program_check_tasks, "tasks");
    REFUSED(p->n_wgrad_tasks, p->n_wgrad_tasks - 1, program_check_tasks, "tasks");
    REFUSED(p->wgrad_tasks[0].part, 1000, program_check_tasks, "tasks");
    done(&wrong);
}

static void broken_stages(void) {
    CHECK(make_as(&wrong, "paper", "", MATH_TF32, 0, WIDE_ALWAYS));
    cuda_program *p = &wrong.program;
    int32_t k = 0;
    while (p->stages[k].kind != STAGE_LINEAR_TO_X) k++;
    dev_stage *s = &p->stages[k];
    REFUSED(s->first, s->first + 1, program_check_stages, "stages");
    REFUSED(s->count, s->count + 1, program_check_stages, "stages");
    REFUSED(s->kind, STAGE_LINEAR, program_check_stages, "stages");
    REFUSED(p->n_stages, p->n_stages - 1, program_check_stages, "stages");
    REFUSED(s->begins, 1, program_check_stages, "stages");
    REFUSED(p->stages[p->n_stages - 1].ends, 0, program_check_stages, "stages");
    REFUSED(s->staged, 0, program_check_stages, "stages");
    REFUSED(p->code[1].op, OPCODE_draw, program_check_stages, "stages");
    while (p->stages[k].kind != STAGE_LINEAR_TO_W) k++;
    dev_operand *gx = &p->code[p->stages[k].first].out[LINEAR_GX];
    REFUSED(gx->present, 1, program_check_stages, "stages");
    done(&wrong);
}

/* Two instructions of a stage, and the slots of their sums. */
static void broken_groups(void) {
    CHECK(make_as(&wrong, "paper", "", MATH_TF32, 0, WIDE_ALWAYS));
    cuda_program *p = &wrong.program;
    int32_t k = 0;
    while (p->kind[k] != STAGE_LINEAR || p->code[k].together < 2) k++;
    dev_instr *a = &p->code[k], *b = &p->code[k + 1];
    REFUSED(a->together, DEV_WIDE + 1, program_check_code, "translate");
    REFUSED(b->out[0].offset, a->out[0].offset, program_check_code, "translate");
    REFUSED(b->out[0].offset, a->in[0].offset, program_check_code, "translate");
    while (!p->code[k].wide) k++; /* a gradient of the context, beside that of all points */
    const int32_t at = (int32_t)p->code[k].out[LINEAR_GW].offset;
    int32_t span = 0;
    while (p->grad_spans[span].at > at || p->grad_spans[span].at + p->grad_spans[span].words <= at)
        span++;
    CHECK(p->grad_spans[span].wide == 2);
    REFUSED(p->grad_spans[span].wide, 1, program_check_spans, "gradient spans");
    REFUSED(p->grad_spans[span].wide, 0, program_check_spans, "gradient spans");
    REFUSED(p->grad_spans[span].parts, 1, program_check_spans, "gradient spans");
    REFUSED(p->kind[k], STAGE_FUNCTIONS, program_check_spans, "gradient spans");
    REFUSED(p->code[k].wide, 0, program_check_fresh, "mark_fresh");
    done(&wrong);
}

/* Values that share memory although one of them is still needed. */
static void broken_packing(void) {
    for (int wide = 0; wide < 2; wide++) {
        CHECK(make_as(&wrong, "paper", "", MATH_TF32, 0, wide ? WIDE_ALWAYS : WIDE_NEVER));
        cuda_program *p = &wrong.program;
        int32_t k = 0;
        while (p->code[k].op != OPCODE_attention) k++; /* it reads what it is to overwrite */
        dev_operand *o = &p->code[k].out[0];
        while (p->code[k].op != OPCODE_attention_grad) k++;
        const dev_operand *q = &p->code[k].in[0];
        CHECK(q->present && q->store == DEV_STORE_ACT);
        REFUSED(o->offset, q->offset, program_check_arena, "arena");
        REFUSED(p->code[k].in[0].offset, q->offset + 16, program_check_arena, "arena");
        done(&wrong);
    }
}

int main(void) {
    env_init(&world);
    check_run("every pass", presets);
    check_run("programs of stages", wide_programs);
    check_run("stages where they are faster", wide_where_faster);
    check_run("the arena of a program of stages", packed);
    check_run("reverse passes in one instruction", whole_reverse);
    check_run("broken stages", broken_stages);
    check_run("broken groups of wide instructions", broken_groups);
    check_run("broken packing", broken_packing);
    check_run("broken programs of ops", broken_ops);
    check_run("broken programs with parts", broken_parts);
    return check_done();
}
