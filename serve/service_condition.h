/* service_condition.h: how functions are drawn given points, and what is said about it: the same
 * for the command and for a request. */
#ifndef MNP_SERVE_CONDITION_H
#define MNP_SERVE_CONDITION_H

#include "util/json.h"

/* Points times functions that the default refines: some seconds on two cores. */
enum { CONDITION_WORK_MAX = 20000 };

/* Functions that were drawn, and how. */
enum { CONDITION_WARNINGS = 6 };
typedef struct drawn {
    mnp_draw_report report;
    int64_t curves;                     /* that it speaks of; 0: one */
    int64_t warned[CONDITION_WARNINGS]; /* of them, by warning */
    double seconds;
    bool request;   /* texts name fields of a request, not flags of the command */
    char note[256]; /* why it is not what the default says; or "" */
} drawn;

/* What is asked for. */
typedef struct condition_ask {
    mnp_condition condition;
    int64_t gradients; /* 0: the library's number */
    bool given;        /* the condition was: nothing else will do */
    bool noted;        /* the model was scored so: many points are no reason for another way */
    bool silent;       /* nothing is said about it: condition_merge() is for many curves */
} condition_ask;

/* Which of network, refine, exact a word is, or -1. */
int condition_named(const char *word);
const char *condition_name(mnp_condition how);
/* The default of a model: what it notes (*noted), else refine, or network for several inputs. */
mnp_condition condition_usual(const mnp_model *model, bool *noted);
/* Draws the functions of `o` by a predictor of `ctx` that has its set. Unless the condition was
 * given, another way will do, the network, where that would take long or the device cannot do it:
 * out->note then says why. */
mnp_status condition_make(const mnp_ctx *ctx, mnp_predictor *p, const condition_ask *how,
                          mnp_draw_opts *o, drawn *out);
/* Nothing was drawn. */
drawn condition_none(bool request);
/* One drawing out of those of many curves: means, and how many were warned of. `left` of them had
 * so many points that the network drew them. */
void condition_merge(const mnp_draw_report *reports, int64_t curves, int64_t left, int64_t points,
                     int64_t samples, drawn *out);
/* The text of warning k, which is there or not. */
enum { CONDITION_TEXT = 320 };
bool condition_warning(const drawn *d, int k, char out[CONDITION_TEXT]);
/* Members of the object that is open: all but the seconds. `lines` are warnings of the caller's
 * own, in front of the others. */
void condition_members(json_writer *w, const drawn *d, const char *lines);

#endif
