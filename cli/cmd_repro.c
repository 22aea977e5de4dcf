/* cmd_repro.c: mnp repro STUDY: the tables of the documentation, from training to picture. */
#include <string.h>

#include "cli/job.h"
#include "lab/study.h"
#include "util/text.h"

static const flag_def flags[] = {
    {"models", "A,B",
     "table1: which models (default oracle,gp,cbp,np,mnp); table2: folder of "
     "wheel-*.safetensors (default models); table3: folder of geofluvial*.safetensors; predictive: "
     "rows by name, files, or a folder of files (default: all rows)"},
    {"trained", "DIR",
     "table1: read networks from DIR/MODEL-DATA[-sSEED].safetensors instead of training them; "
     "predictive: from DIR/ROW-TASK.safetensors (default models)"},
    {"images", "A,B", "table3: folders of images, one for each size (default: drawn, 128 and 64)"},
    {"data", "C,D",
     "families or CSV files (default: the six families; ablation: monotonic; predictive: its 13 "
     "tasks, quick rbf,tnp-rbf)"},
    {"protocol", "P", "strict|authors|both: what the tables show (default both)"},
    {"functions", "N", "test functions (default 5000, quick 500; predictive 2000, quick 20)"},
    {"train-functions", "N",
     "training functions (default 50000; quick 5000, predictive 2000; wheels of table2: 4000, "
     "quick 64)"},
    {"seeds", "K",
     "training runs of each, with seeds from --seed on (default 5; quick and ablation 1)"},
    {"steps", "N", "training steps of each (default: by model)"},
    {"seconds", "S", "instead of --steps: train each for about this long"},
    {"batch", "B", "functions in a batch (default: by model)"},
    {"samples", "L", "table1, predictive: draws of the latents for each score (default 20)"},
    {"preset", "P", "paper|tiny (default paper; quick tiny)"},
    {"out", "DIR", "folder for results and tables (default repro-STUDY)"},
    {"cache", "DIR", "keep generated functions there"},
    DEVICE_FLAGS,
    RANK_FLAGS,
    {"agents", "A,B", "table2: who plays (default: all)"},
    {"deltas", "D,E", "table2: radii (default 0.5,0.7,0.9,0.95,0.99; quick 0.5,0.9,0.99)"},
    {"horizon", "H", "table2: short|long|both: 2000 or 80000 steps (default both)"},
    {"contexts", "M,N", "predictive: points given (default 3,5,10,20,40; quick 3,10)"},
    {"draws", "S", "predictive: draws of each function (default 512; quick 64)"},
    {"orders", "K", "predictive: random orders of targets in turn (default 4; quick 2)"},
    {"exact-functions", "N", "predictive: test functions of mnp-exact (default 200; quick 4)"},
    {"joint", "R", "predictive: runs of each joint score of mnp-exact (default 2; 0 = none)"},
    {"joint-functions", "N",
     "predictive: of its functions, those with a joint score (default 50, or all)"},
    {"joint-particles", "P", "predictive: particles of each run (default 64)"},
    {"trials", "R", "table2: trials of each (default 100 short, 20 long; quick 4)"},
    SET_FLAG("the models or the training"),
    {"quick", NULL, "small settings that take minutes on two cores; the tables say so"},
};

static int run(cli *c) {
    if (cli_has(c, "steps") && cli_has(c, "seconds"))
        return cli_fail(c, EXIT_USAGE, "--steps and --seconds exclude each other");
    cli_int(c, "steps", 1, 1, 1000000000);
    cli_int(c, "batch", 1, 1, 1000000);
    if (cli_bad(c)) return c->status;
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(c->args[0]);
    const study_def *d;
    for (int k = 0; (d = study_at(k)); k++) {
        if (strcmp(d->name, c->args[0]) == 0) {
            cli_alone(c, true); /* ranks share cells, not steps */
            return study_run(d, c);
        }
        text_nearest_try(&near, d->name);
    }
    return cli_fail(c, EXIT_USAGE, "there is no study '%s'%s", c->args[0],
                    text_meant_or_all(meant, &near));
}

static void list_studies(FILE *to) {
    const study_def *d;
    fprintf(to, "\nstudies:\n");
    for (int k = 0; (d = study_at(k)); k++) fprintf(to, "  %-10s %s\n", d->name, d->help);
}

const command command_repro = {
    .name = "repro",
    .args = "STUDY [--models a,b] [--data c,d] [--seeds K] [--quick]",
    .summary = "train and score a whole table of models, with pictures",
    .details =
        "Seed k fixes a run's data, first weights and draws; the models of one seed are scored on\n"
        "the same test functions. Each cell's result is kept in DIR/cells under a key of all its\n"
        "options: after Ctrl-C the same command goes on where it was. DIR/STUDY.md, .json and "
        ".svg\n"
        "are the tables. Under mpirun every rank takes cells; the folder must be one they share.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .spreads = true,
    .run = run,
    .more_help = list_studies};
