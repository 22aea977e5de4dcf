/* cmd_bench.c: mnp bench: what this machine reaches, as parts of its own multiply-add peak. Falling
 * short of a bar is a mark in the table, never an exit status. */
#include <string.h>

#include "backend/cpu/kernels.h"
#include "base/text.h"
#include "bench/bench_attention.h"
#include "bench/bench_gemm.h"
#include "bench/bench_model.h"
#include "bench/peak.h"
#include "cli/cli.h"

static const flag_def flags[] = {
    {"seconds", "S", "time to spend on a step or a latency (default 5)"},
    {"rows", "R", "rows of the dense products (default 128)"},
    {"op", "NAME", "only operations whose name holds this"},
};

typedef struct bench {
    cli *c;
    bench_setup setup;
} bench;

static mnp_status run_peak(bench *b) {
    static const char *const isas[] = {"avx512", "avx2", "base"};
    bench_report *r = b->setup.report;
    for (int i = 0; i < 3; i++) {
        const cpu_kernels *k = cpu_kernels_best(isas[i]);
        double best = 0, flops;
        for (int run = 0; k && run < 2000; run++)
            if ((flops = bench_peak_once(k->isa)) > best) best = flops;
        if (k) fprintf(r->out, "%-7s peak %7.1f GFLOP/s, one thread\n", k->isa, 1e-9 * best);
        if (k && k == cpu_kernels_best(NULL))
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
    return bench_step(&b->setup);
}

static mnp_status run_predict(bench *b) {
    return bench_predict(&b->setup);
}

static mnp_status run_context(bench *b) {
    return bench_context(&b->setup);
}

static mnp_status run_bandit(bench *b) {
    return bench_bandit(&b->setup);
}

typedef struct part {
    const char *name, *help;
    mnp_status (*run)(bench *b);
} part;

static const part parts[] = {
    {"peak", "multiply-add peak of every instruction set", run_peak},
    {"gemm", "dense products at the model's shapes", run_gemm},
    {"attention", "fused attention, forward and backward", run_attention},
    {"exp", "the exponential inside softmax", run_exp},
    {"step", "a training step of the paper preset (two threads, or --threads)", run_step},
    {"predict", "latency of conditioning, drawing and observing, one thread", run_predict},
    {"context", "time and memory for 1 000 to 100 000 context points", run_context},
    {"bandit", "act and observe behind a history of 80 000, one thread", run_bandit},
    {"ops", "every operation at its own cases", run_ops},
};
enum { PARTS = sizeof parts / sizeof *parts };

static void list_parts(FILE *to) {
    fprintf(to, "\nparts (default: all):\n");
    for (int k = 0; k < PARTS; k++) fprintf(to, "  %-10s %s\n", parts[k].name, parts[k].help);
}

static int unknown_part(cli *c, const char *name) {
    text_nearest near = text_nearest_to(name);
    for (int k = 0; k < PARTS; k++) text_nearest_try(&near, parts[k].name);
    return cli_fail(c, EXIT_USAGE, "there is no part '%s'%s%s; see 'mnp help bench'", name,
                    near.best ? "; nearest: " : "", near.best ? near.best : "");
}

static bool wanted(const cli *c, const char *name) {
    for (int k = 0; k < c->n_args; k++)
        if (strcmp(c->args[k], name) == 0) return true;
    return c->n_args == 0;
}

static int check_parts(cli *c) {
    for (int k = 0; k < c->n_args; k++) {
        bool known = false;
        for (int p = 0; p < PARTS; p++) known = known || strcmp(parts[p].name, c->args[k]) == 0;
        if (!known) return unknown_part(c, c->args[k]);
    }
    return 0;
}

static void put_json(cli *c, const bench_report *r) {
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_text(&j, "isa", cpu_kernels_best(NULL)->isa);
    cli_json_integer(&j, "seed", (int64_t)c->seed);
    for (int k = 0; k < r->count; k++) cli_json_number(&j, r->rows[k].key, r->rows[k].value);
    cli_json_end(c, &j);
}

static int run(cli *c) {
    bench_report report = {.out = c->json || c->quiet ? stderr : stdout};
    bench b = {.c = c, .setup = {.report = &report, .seed = c->seed}};
    b.setup.threads = (int)cli_int(c, "threads", 0, 0, 1024);
    b.setup.seconds = cli_real(c, "seconds", 5, 0.01, 1e4);
    int code = check_parts(c);
    if (code || cli_bad(c)) return code ? code : c->status;
    for (int k = 0; k < PARTS && !cli_interrupted(); k++) {
        if (!wanted(c, parts[k].name)) continue;
        if (parts[k].run(&b) != MNP_OK)
            return cli_fail(c, EXIT_FAILED, "%s: %s", parts[k].name, b.setup.error);
        fprintf(report.out, "\n");
        fflush(report.out);
    }
    if (cli_interrupted()) return EXIT_INTERRUPTED;
    report_print(&report);
    put_json(c, &report);
    return 0;
}

const command command_bench = {
    .name = "bench",
    .args = "[PART...] [--threads N] [--seconds S] [--json]",
    .summary = "measure speed against the machine's own peak",
    .details = "Every number is the best of many short runs that alternate with runs of nothing\n"
               "but multiply-adds, so that a busy neighbour moves both.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .max_args = CLI_ARGS_MAX,
    .run = run,
    .more_help = list_parts};
