/* table1.c: table 1 as a list of cells: every model on every data set with every seed. */
#include "cli/outputs.h"
#include "lab/study.h"

static const char families[] = "rbf,matern,periodic,monotonic,convex,sde";

static int read_flags(cli *c, repro_grid *g) {
    bool quick = cli_has(c, "quick");
    g->seeds = (int)cli_int(c, "seeds", quick ? 1 : 5, 1, 1000);
    int protocol = cli_choice(c, "protocol", "strict|authors|both", 2);
    g->shown[MNP_STRICT] = protocol != 1;
    g->shown[MNP_AUTHORS] = protocol != 0;
    if (cli_bad(c)) return c->status;
    int code = repro_models_flag(c, repro_models(), &g->models);
    if (code == 0) code = repro_data_flag(c, families, &g->data);
    const char *trained = cli_text(c, "trained", NULL);
    if (code || !trained) return code;
    int found = repro_trained_seeds(trained, &g->models, &g->data, c->seed);
    if (!found)
        return cli_fail(c, EXIT_FAILED,
                        "%s has no model for this table: %s-%s.safetensors and the like", trained,
                        g->models.at[g->models.count - 1], g->data.at[0]);
    if (!cli_has(c, "seeds")) g->seeds = found;
    return 0;
}

static void fill(repro_study *s, const repro_grid *g) {
    int at = 0;
    for (int m = 0; m < g->models.count; m++)
        for (int d = 0; d < g->data.count; d++)
            for (int k = 0; k < g->seeds; k++) {
                const repro_model *how = repro_model_find(g->models.at[m]);
                s->tasks[at] =
                    repro_task_make(s, g->models.at[m], g->data.at[d], s->c->seed + (uint64_t)k,
                                    s->quick ? how->quick : how->full);
                if (s->trained) repro_trained_find(s->trained, &s->tasks[at]);
                at++;
            }
}

int repro_table1(cli *c) {
    repro_grid g = {0};
    repro_study s = {.c = c};
    int code = read_flags(c, &g);
    if (code) return code;
    int count = g.models.count * g.data.count * g.seeds;
    if (repro_study_init(&s, c, "table1", count) != MNP_OK)
        code = cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    if (code == 0) {
        s.trained = cli_text(c, "trained", NULL);
        fill(&s, &g);
        code = cli_bad(c) ? c->status : repro_prepare(&s);
    }
    if (code == 0) {
        code = repro_run(&s);
        bool stopped = code == EXIT_INTERRUPTED || cli_bad(c) || cli_printed(c);
        int written = stopped || !cli_writes(c) ? 0 : repro_table1_write(&s, &g);
        if (written) code = written;
    }
    repro_study_free(&s);
    return code;
}
