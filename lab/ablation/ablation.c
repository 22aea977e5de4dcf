/* ablation.c: the ablation as a list of cells: one model with one option changed at a time.
 */
#include <stdio.h>

#include "cli/outputs.h"
#include "lab/study.h"

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

int repro_ablation_base(const repro_study *s) {
    return s->quick ? 3 : 7;
}

static void fill(repro_study *s, const char *data, int seeds) {
    static const int64_t samples[REPRO_SAMPLES] = {1, 5, 20, 50};
    for (int v = 0; v < VARIANTS; v++)
        for (int k = 0; k < seeds; k++) {
            repro_task *t = &s->tasks[v * seeds + k];
            *t = repro_task_make(s, "mnp", data, s->c->seed + (uint64_t)k,
                                 s->quick ? "steps=400 batch=16" : "steps=10000");
            t->label = variants[v].label;
            int used =
                snprintf(t->model_options, sizeof t->model_options, "%s", variants[v].options);
            if (variants[v].base_steps)
                snprintf(t->model_options + used, sizeof t->model_options - (size_t)used, " T=%d",
                         repro_ablation_base(s));
            t->n_samples = REPRO_SAMPLES;
            for (int i = 0; i < REPRO_SAMPLES; i++) t->samples[i] = samples[i];
            if (s->quick && !cli_has(s->c, "functions")) t->functions = 200;
            t->law_functions = t->functions < 200 ? t->functions : 200;
            if (s->quick && t->law_functions > 50) t->law_functions = 50;
            t->cost_m = s->quick ? 2048 : 8192;
        }
}

int repro_ablation(cli *c) {
    repro_names data;
    repro_study s = {.c = c};
    int seeds = (int)cli_int(c, "seeds", 1, 1, 1000);
    if (cli_bad(c)) return c->status;
    if (cli_has(c, "models") || cli_has(c, "samples"))
        return cli_fail(c, EXIT_USAGE, "the ablation is of mnp, with 1, 5, 20 and 50 samples");
    int code = repro_data_flag(c, "monotonic", &data);
    if (code) return code;
    if (data.count != 1) return cli_fail(c, EXIT_USAGE, "the ablation takes one data set");
    if (repro_study_init(&s, c, "ablation", VARIANTS * seeds) != MNP_OK)
        code = cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    if (code == 0) {
        fill(&s, data.at[0], seeds);
        code = cli_bad(c) ? c->status : repro_prepare(&s);
    }
    if (code == 0) {
        code = repro_run(&s);
        bool stopped = code == EXIT_INTERRUPTED || cli_bad(c) || cli_printed(c);
        int written = stopped || !cli_writes(c) ? 0 : repro_ablation_write(&s, seeds);
        if (written) code = written;
    }
    repro_study_free(&s);
    return code;
}
