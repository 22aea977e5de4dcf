/* table1.c: table 1 as a list of cells. */
#include "lab/table1/table1.h"

static int read_flags(runs *s) {
    cli *c = s->s.c;
    s->seeds = (int)cli_int(c, "seeds", s->s.quick ? 1 : 5, 1, 1000);
    int protocol = cli_choice(c, "protocol", "strict|authors|both", 2);
    s->shown[MNP_STRICT] = protocol != 1;
    s->shown[MNP_AUTHORS] = protocol != 0;
    if (cli_bad(c)) return c->status;
    const char *given = cli_text(c, "models", "oracle,gp,cbp,np,mnp");
    int code = names_split(c, "models", given, &s->models);
    if (code == 0) code = runs_data(c, "rbf,matern,periodic,monotonic,convex,sde", &s->data);
    s->trained = cli_text(c, "trained", NULL);
    if (code || !s->trained) return code;
    int found = trained_seeds(s->trained, &s->models, &s->data, c->seed);
    if (!found)
        return cli_fail(c, EXIT_FAILED,
                        "%s has no model for this table: %s-%s.safetensors and the like",
                        s->trained, s->models.at[s->models.count - 1], s->data.at[0]);
    if (!cli_has(c, "seeds")) s->seeds = found;
    return 0;
}

static int prepare(study *of) {
    runs *s = (runs *)of;
    int code = read_flags(s);
    if (code == 0) code = study_cells(of, s->models.count * s->data.count * s->seeds, sizeof(run));
    for (int k = 0; k < of->count; k++) {
        const char *model = s->models.at[k / s->seeds / s->data.count];
        const char *data = s->data.at[k / s->seeds % s->data.count];
        const recipe *how = recipe_of(model);
        *run_at(of, k) = run_make(of, model, data, of->c->seed + (uint64_t)(k % s->seeds),
                                  of->quick ? how->quick : how->full);
        if (s->trained) trained_find(s->trained, run_at(of, k));
    }
    return code ? code : runs_prepare(s);
}

const study_def study_table1 = {
    .name = "table1",
    .help = "every model on every data set: mean and standard error over seeds, the oracle or\n"
            "            ceiling, the gap to it, the paper's number beside it, scores by context\n"
            "            size. With --trained models mnp and np come from files (without -sSEED:\n"
            "            seed 0) and are left out where there is none; the rest is fitted as usual",
    .bytes = sizeof(runs),
    .prepare = prepare,
    RUN_CELLS,
    .pictures = table1_pictures,
    .markdown = table1_markdown,
    .json = table1_json,
    .files = "table1.md, table1.json, table1.svg and table1-curves.svg are the table"};
