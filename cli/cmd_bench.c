/* cmd_bench.c: mnp bench: what this machine reaches, as parts of its own multiply-add peak. Falling
 * short of a bar is a mark in the table, never an exit status. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_attention.h"
#include "bench/bench_gemm.h"
#include "bench/bench_model.h"
#include "bench/peak.h"
#include "cli/outputs.h"
#include "util/text.h"

static const flag_def flags[] = {
    {"seconds", "S",
     "time to spend on each measurement of a step or a latency (default 5; shapes 1.5)"},
    {"rows", "R", "rows of the dense products (default 128)"},
    {"model", "M",
     "of observe and serve: a model file with one input; observe tells how often particles move"},
    {"op", "NAME", "only operations with this in their name"},
    {"device", "D", "of step, shapes, eval and condition: cpu or cuda (default cpu)"},
    {"math", "M", "on a GPU: fp32, tf32, bf16 or all (default all)"},
    {"kernels", "K", "on a GPU: fused, or general: op by op (default fused)"},
    {"runs", "K", "on a GPU: also measure K training runs at once"},
    {"batch", "B", "on a GPU, and of shapes: functions in a batch (default 100, or the shape's)"},
    {"shapes", "A,B", "of shapes: only these (default: all)"},
    {"random", "K", "of shapes: also K combinations that --seed draws (default 0)"},
    {"rounds", "R", "of shapes: most rounds of a row; 0 lists the rows (default 20)"},
    {"budget", "S", "of shapes: no row begins after so many seconds"},
    {"peak", "T:G",
     "of shapes: TFLOP/s and GB/s to take floors from (default: the GPU's data sheet, or "
     "measured)"},
    {"functions", "F", "of eval (default 5000 on a GPU, 100 on a processor)"},
};

typedef struct bench {
    cli *c;
    bench_setup setup;
} bench;

static bool on_gpu(const bench *b) {
    return strcmp(b->setup.device, "cpu") != 0;
}

static mnp_status run_peak(bench *b) {
    static const char *const isas[] = {"avx512", "avx2", "base"};
    bench_report *r = b->setup.report;
    for (int i = 0; i < 3; i++) {
        const char *isa = bench_isa(isas[i]);
        double best = 0, flops;
        for (int run = 0; isa && run < 2000; run++)
            if ((flops = bench_peak_once(isa)) > best) best = flops;
        if (isa) fprintf(r->out, "%-7s peak %7.1f GFLOP/s, one thread\n", isa, 1e-9 * best);
        if (isa && strcmp(isa, bench_isa(NULL)) == 0)
            report_add(r, "peak_gflops", "multiply-add peak, one thread", 1e-9 * best, "GFLOP/s");
    }
    return MNP_OK;
}

static mnp_status run_gemm(bench *b) {
    int64_t rows = cli_int(b->c, "rows", 128, 1, 1000000);
    if (bench_gemm(b->setup.report, rows)) return MNP_OK;
    snprintf(b->setup.error, sizeof b->setup.error, "out of memory");
    return MNP_ENOMEM;
}

static mnp_status run_attention(bench *b) {
    bench_attention(b->setup.report);
    return MNP_OK;
}

static mnp_status run_exp(bench *b) {
    bench_exp(b->setup.report);
    return MNP_OK;
}

static mnp_status run_ops(bench *b) {
    return bench_ops(&b->setup, cli_text(b->c, "op", NULL));
}

static mnp_status run_step(bench *b) {
    return on_gpu(b) ? bench_step_gpu(&b->setup) : bench_step(&b->setup);
}

/* There are many: a moment for each, unless --seconds says otherwise. */
static mnp_status run_shapes(bench *b) {
    if (!cli_has(b->c, "seconds")) b->setup.seconds = 1.5;
    b->setup.same_batch = cli_has(b->c, "batch");
    return bench_shapes(&b->setup);
}

static mnp_status run_eval(bench *b) {
    return bench_eval(&b->setup);
}

static mnp_status run_predict(bench *b) {
    return bench_predict(&b->setup);
}

static mnp_status run_condition(bench *b) {
    return bench_condition(&b->setup);
}

static mnp_status run_observe(bench *b) {
    return bench_observe(&b->setup);
}

static mnp_status run_context(bench *b) {
    return bench_context(&b->setup);
}

static mnp_status run_bandit(bench *b) {
    return bench_bandit(&b->setup);
}

static mnp_status run_serve(bench *b) {
    return bench_serve(&b->setup);
}

typedef struct part {
    const char *name, *help;
    mnp_status (*run)(bench *b);
    bool gpu;   /* has a side for --device cuda */
    bool asked; /* only where it is named       */
} part;

static const part parts[] = {
    {"peak", "multiply-add peak of every instruction set", run_peak, false, false},
    {"gemm", "dense products at the model's shapes", run_gemm, false, false},
    {"attention", "fused attention, forward and backward", run_attention, false, false},
    {"exp", "the exponential inside softmax", run_exp, false, false},
    {"step", "a training step of the paper preset (two threads, or --threads)", run_step, true,
     false},
    {"shapes", "training steps at every shape (only when it is named)", run_shapes, true, true},
    {"eval", "scoring functions with 20 samples, paper preset (all threads)", run_eval, true,
     false},
    {"predict", "latency of conditioning, drawing and observing, one thread", run_predict, false,
     false},
    {"condition", "100 exact draws given 10 points, paper preset (two threads, or --threads)",
     run_condition, true, false},
    {"observe", "64 exact draws follow a growing set, paper preset, one thread", run_observe, false,
     false},
    {"context", "time and memory for 1 000 to 100 000 context points", run_context, false, false},
    {"bandit", "act and observe after a history of 80 000, one thread", run_bandit, false, false},
    {"serve", "requests of the explorer without a network (two threads, or --threads)", run_serve,
     false, false},
    {"ops", "every operation at its own cases", run_ops, false, false},
};
enum { PARTS = sizeof parts / sizeof *parts };

static void list_parts(FILE *to) {
    fprintf(to, "\nparts (default: all but shapes):\n");
    for (int k = 0; k < PARTS; k++) fprintf(to, "  %-10s %s\n", parts[k].name, parts[k].help);
}

static int unknown_part(cli *c, const char *name) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(name);
    for (int k = 0; k < PARTS; k++) text_nearest_try(&near, parts[k].name);
    return cli_fail(c, EXIT_USAGE, "there is no part '%s'%s", name,
                    text_meant_or_all(meant, &near));
}

static bool wanted(const bench *b, const part *p) {
    for (int k = 0; k < b->c->n_args; k++)
        if (strcmp(b->c->args[k], p->name) == 0) return true;
    return b->c->n_args == 0 && !p->asked && (p->gpu || !on_gpu(b));
}

static int check_parts(const bench *b) {
    for (int k = 0; k < b->c->n_args; k++) {
        const part *found = NULL;
        for (int p = 0; p < PARTS; p++)
            if (strcmp(parts[p].name, b->c->args[k]) == 0) found = &parts[p];
        if (!found) return unknown_part(b->c, b->c->args[k]);
        if (on_gpu(b) && !found->gpu)
            return cli_fail(b->c, EXIT_USAGE,
                            "'%s' is measured on the processor only: leave out "
                            "--device, or ask for step, shapes, eval or condition",
                            found->name);
    }
    return 0;
}

/* "494.7:4800" */
static void read_peaks(cli *c, bench_setup *s) {
    const char *text = cli_text(c, "peak", NULL), *colon = text ? strchr(text, ':') : NULL;
    char first[32];
    if (!text) return;
    snprintf(first, sizeof first, "%.*s", colon ? (int)(colon - text) : 31, text);
    if (colon && text_parse_double(first, &s->tflops) == TEXT_OK && s->tflops > 0 &&
        text_parse_double(colon + 1, &s->gbytes) == TEXT_OK && s->gbytes > 0)
        return;
    c->status = cli_fail(
        c, EXIT_USAGE, "--peak '%s' is not TFLOP/s:GB/s, two positive numbers as 494.7:4800", text);
}

/* Everything that the flags say. */
static void read_flags(cli *c, bench_setup *s) {
    static const char *const maths[] = {"fp32", "tf32", "bf16", "all"};
    const bool gpu = cli_choice(c, "device", "cpu|cuda", 0) == 1;
    const bool general = cli_choice(c, "kernels", "fused|general", 0) == 1;
    if (cli_has(c, "kernels") && !gpu)
        c->status = cli_fail(c, EXIT_USAGE, "--kernels is for --device cuda");
    s->device = !gpu ? "cpu" : general ? "cuda:general" : "cuda";
    s->math = maths[cli_choice(c, "math", "fp32|tf32|bf16|all", 3)];
    s->model = cli_text(c, "model", NULL);
    s->threads = (int)cli_int(c, "threads", 0, 0, 1024);
    s->seconds = cli_real(c, "seconds", 5, 0.01, 1e4);
    s->runs = (int)cli_int(c, "runs", 1, 1, BENCH_RUNS_MAX);
    s->batch = cli_int(c, "batch", 100, 1, 100000);
    s->shapes = cli_text(c, "shapes", NULL);
    s->random = (int)cli_int(c, "random", 0, 0, 1000);
    s->rounds = (int)cli_int(c, "rounds", 20, 0, 1000);
    s->budget = cli_real(c, "budget", 1e6, 0, 1e6);
    s->stopped = cli_interrupted;
    read_peaks(c, s);
    s->functions = cli_int(c, "functions", gpu ? 5000 : 100, 1, 1000000);
}

static void put_shape(cli_json *j, const shape_row *r) {
    const shape *at = &r->shape;
    json_object_begin(&j->w);
    cli_json_put(j, TEXT("shape", at->name), TEXT("math", r->math), TEXT("model", at->kind),
                 TEXT("preset", at->preset), TEXT("data", at->data), TEXT("set", at->model),
                 TEXT("train", at->train), TEXT("kernels", at->general ? "general" : "fused"),
                 TEXT("error", *r->error ? r->error : NULL));
    if (!*r->error)
        cli_json_put(j, TEXT("options", r->options), INTEGER("batch", r->batch),
                     INTEGER("points", r->n), INTEGER("seen", r->k), INTEGER("context_lo", r->lo),
                     INTEGER("context_hi", r->hi), NUMBER("p_empty", r->p_empty),
                     INTEGER("samples", r->samples), NUMBER("gflop", r->gflop),
                     NUMBER("gflop_full", r->gflop_full), NUMBER("floor_ms", r->floor),
                     NUMBER("floor_bytes_ms", r->floor_bytes));
    if (r->rounds > 0)
        cli_json_put(j, NUMBER("ms", r->ms), NUMBER("ms_least", r->least),
                     NUMBER("ms_most", r->most), NUMBER("ms_full", r->ms_full),
                     INTEGER("rounds", r->rounds), NUMBER("mb", r->mb));
    json_object_end(&j->w);
}

static void put_shapes(cli_json *j, const bench_setup *s) {
    json_key(&j->w, "shapes");
    json_array_begin(&j->w);
    for (int k = 0; k < s->n_rows; k++) put_shape(j, &s->rows[k]);
    json_array_end(&j->w);
}

static void put_json(cli *c, const bench_setup *s) {
    const bench_report *r = s->report;
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("isa", bench_isa(NULL)), TEXT("device", s->device),
                 INTEGER("seed", c->seed));
    for (int k = 0; k < r->count; k++) cli_json_put(&j, NUMBER(r->rows[k].key, r->rows[k].value));
    if (s->n_rows > 0) put_shapes(&j, s);
    cli_json_end(c, &j);
}

static int run_parts(bench *b) {
    cli *c = b->c;
    FILE *out = b->setup.report->out;
    for (int k = 0; k < PARTS && !cli_interrupted(); k++) {
        if (!wanted(b, &parts[k])) continue;
        if (parts[k].run(b) != MNP_OK)
            return cli_fail(c, EXIT_FAILED, "%s: %s", parts[k].name, b->setup.error);
        fprintf(out, "\n");
        fflush(out);
        if (cli_printed(c)) return EXIT_FAILED;
    }
    if (cli_interrupted()) return EXIT_INTERRUPTED;
    report_print(b->setup.report);
    put_json(c, &b->setup);
    return 0;
}

static int run(cli *c) {
    bench_report report = {.out = c->json || c->quiet ? stderr : stdout};
    bench b = {.c = c, .setup = {.report = &report, .seed = c->seed}};
    read_flags(c, &b.setup);
    if (cli_bad(c)) return c->status;
    int code = check_parts(&b);
    if (code == 0) code = run_parts(&b);
    free(b.setup.rows);
    return code;
}

const command command_bench = {
    .name = "bench",
    .args = "[PART...] [--device cpu|cuda] [--threads N] [--seconds S] [--json]",
    .summary = "measure speed against the machine's own peak",
    .details = "Every number is the best of many short runs that alternate with runs of nothing\n"
               "but multiply-adds, so that a busy neighbour moves both. With --device cuda: the\n"
               "median of 400 captured training steps in each precision, with contexts as in\n"
               "training and of 50 points each, with --runs K also K runs at once, and the\n"
               "scoring of 5000 functions.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .max_args = CLI_ARGS_MAX,
    .run = run,
    .more_help = list_parts};
