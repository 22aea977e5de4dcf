/* ablation.c: the ablation as a list of cells. */
#include "lab/ablation/ablation.h"

/* The rows. The last ones have the steps of the base, which is one of the first. */
static const struct {
    const char *label, *options;
    bool base_steps;
} variants[] = {
    {"T=1", "T=1", false},
    {"T=3", "T=3", false},
    {"T=5", "T=5", false},
    {"T=7", "T=7", false},
    {"affine", "transition=affine", true},
    {"deepset", "encoder=deepset", true},
    {"isab", "encoder=isab", true},
    {"no Fourier features", "rff=0", true},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

int ablation_base(const study *s) {
    return s->quick ? 3 : 7;
}

static void fill(const study *s, int v, run *t) {
    static const int64_t samples[RUN_SAMPLES] = {1, 5, 20, 50};
    char steps[16] = "";
    t->head.label = variants[v].label;
    if (variants[v].base_steps) snprintf(steps, sizeof steps, " T=%d", ablation_base(s));
    snprintf(t->model_options, sizeof t->model_options, "%s%s", variants[v].options, steps);
    t->n_samples = RUN_SAMPLES;
    for (int i = 0; i < RUN_SAMPLES; i++) t->samples[i] = samples[i];
    if (s->quick && !cli_has(s->c, "functions")) t->functions = 200;
    t->law_functions = t->functions < 200 ? t->functions : 200;
    if (s->quick && t->law_functions > 50) t->law_functions = 50;
    t->cost_m = s->quick ? 2048 : 8192;
}

static int prepare(study *of) {
    runs *s = (runs *)of;
    cli *c = of->c;
    s->seeds = (int)cli_int(c, "seeds", 1, 1, 1000);
    if (cli_bad(c)) return c->status;
    if (cli_has(c, "models") || cli_has(c, "samples"))
        return cli_fail(c, EXIT_USAGE, "the ablation is of mnp, with 1, 5, 20 and 50 samples");
    int code = runs_data(c, "monotonic", &s->data);
    if (code) return code;
    if (s->data.count != 1) return cli_fail(c, EXIT_USAGE, "the ablation takes one data set");
    code = study_cells(of, VARIANTS * s->seeds, sizeof(run));
    for (int k = 0; k < of->count; k++) {
        *run_at(of, k) = run_make(of, "mnp", s->data.at[0], c->seed + (uint64_t)(k % s->seeds),
                                  of->quick ? "steps=400 batch=16" : "steps=10000");
        fill(of, k / s->seeds, run_at(of, k));
    }
    return code ? code : runs_prepare(s);
}

const study_def study_ablation = {
    .name = "ablation",
    .help = "steps T, transition, encoder, Fourier features and importance samples: score,\n"
            "            conditional-consistency gap, time and memory",
    .bytes = sizeof(runs),
    .prepare = prepare,
    RUN_CELLS,
    .pictures = ablation_pictures,
    .markdown = ablation_markdown,
    .json = ablation_json,
    .files = "ablation.md, ablation.json and ablation.svg are the tables"};
