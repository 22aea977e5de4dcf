/* condition.h: how a command draws functions given points: its flags, the default, progress,
 * warnings and the members of its JSON object. */
#ifndef MNP_CLI_CONDITION_H
#define MNP_CLI_CONDITION_H

#include "cli/cli.h"

/* Points times functions that the default refines: some seconds on two cores. */
enum { CONDITION_WORK_MAX = 20000 };

/* The flags that condition_draw() reads; `usual` ends the line on --condition. */
#define CONDITION_FLAGS(usual)                                                                     \
    {"condition", "C", "network|refine|exact: how functions are drawn given the points " usual}, { \
        "gradients", "G", "of each particle (default 30 for refine, at most 200 for exact)"        \
    }

/* Functions that were drawn, and how. */
enum { CONDITION_WARNINGS = 6 };
typedef struct drawn {
    mnp_draw_report report;
    int64_t curves;                     /* that it speaks of; 0: one */
    int64_t warned[CONDITION_WARNINGS]; /* of them, by warning */
    double seconds;
    char note[256]; /* why it is not what the default says; or "" */
} drawn;

/* What the flags ask for. */
typedef struct condition_ask {
    mnp_condition condition;
    int64_t gradients; /* 0: the library's number */
    bool given;        /* --condition was: nothing else will do */
    bool noted;        /* the model was scored so: many points are no reason for another way */
    bool silent;       /* nothing is said about it: condition_merge() is for many curves */
    uint64_t apart;    /* added to --seed: other random numbers than another drawing's */
} condition_ask;

/* What --condition and --gradients ask for; `usual` where the first is not given. */
bool condition_read(cli *c, mnp_condition usual, condition_ask *out); /* false: cli_bad() */
/* Which of network, refine, exact a word is, or -1. */
int condition_named(const char *word);
const char *condition_name(mnp_condition how);
/* Draws S functions of a predictor that has its set, by --seed. Unless it was given, another way
 * will do, the network, where that would take long or the device cannot do it. Prints warnings;
 * cli_failed() after anything but MNP_OK. */
mnp_status condition_draw(cli *c, mnp_predictor *p, int64_t samples, const condition_ask *how,
                          drawn *out);
/* The parts of it, for commands that draw in another way. */
void condition_tell(const cli *c, const drawn *d);
void condition_json(cli_json *j, const drawn *d); /* all but the seconds */
/* The same, with lines of its own in front of its warnings. */
void condition_json_with(cli_json *j, const drawn *d, const char *lines);
/* One drawing out of those of many curves: means, and how many were warned of. `left` of them had
 * so many points that the network drew them. */
void condition_merge(const mnp_draw_report *reports, int64_t curves, int64_t left, int64_t points,
                     int64_t samples, drawn *out);
/* A progress callback of the library, for `user` a progress: shown once the work takes long. */
void condition_progress(void *user, int64_t done, int64_t total);

#endif
