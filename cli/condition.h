/* condition.h: how a command draws functions given points: its flags, the default, progress,
 * warnings and the members of its JSON object. */
#ifndef MNP_CLI_CONDITION_H
#define MNP_CLI_CONDITION_H

#include "cli/cli.h"
#include "serve/service_condition.h"

/* The flags that condition_draw() reads; `usual` ends the line on --condition. */
#define CONDITION_FLAGS(usual)                                                                     \
    {"condition", "C", "network|refine|exact: how functions are drawn given the points " usual}, { \
        "gradients", "G", "of each particle (default 30 for refine, at most 200 for exact)"        \
    }

/* What --condition and --gradients ask for; `usual` where the first is not given. */
bool condition_read(cli *c, mnp_condition usual, condition_ask *out); /* false: cli_bad() */
/* Draws S functions of a predictor that has its set, by --seed, as condition_make() does. Prints
 * warnings; cli_failed() after anything but MNP_OK. */
mnp_status condition_draw(cli *c, mnp_predictor *p, int64_t samples, const condition_ask *how,
                          drawn *out);
/* The parts of it, for commands that draw in another way. */
void condition_tell(const cli *c, const drawn *d);
/* Members of the JSON object, all but the seconds; what cli_warn() said stands before the warnings
 * of the drawing. */
void condition_json(const cli *c, cli_json *j, const drawn *d);
/* Progress callbacks of the library, shown once the work takes long: of curves, for `user` a
 * progress; and of the functions of one set, which says how long it takes where that is minutes. */
void condition_progress(void *user, int64_t done, int64_t total);
typedef struct condition_bar {
    progress bar;
    const mnp_condition *condition; /* how they are drawn */
    bool warned;
} condition_bar;
void condition_bar_begin(condition_bar *b, const cli *c, const mnp_condition *condition);
void condition_bar_show(void *user, int64_t done, int64_t total); /* user: a condition_bar */
void condition_bar_end(condition_bar *b);

#endif
