/* check.h: what public calls ask of their arguments, in one place. Each check returns MNP_OK, or
 * MNP_EINVAL after one line in the context's text that names the argument; a call then leaves with
 * MNP_TRY. After these checks the library takes its input as good. */
#ifndef MNP_API_CHECK_H
#define MNP_API_CHECK_H

#include "mnp_bandit.h"
#include "mnp_check.h"
#include "mnp_fit.h"
#include "mnp_job.h"
#include "mnp_map.h"
#include "util/env.h"

/* ---- structs that cross the interface -------------------------------------------------------- */

/* Their first member is `size`, set by the caller, so that both sides may grow them: what a side
 * does not know is zero. A new member goes after the last, at an offset of a multiple of 8, never
 * into padding. The first version of each ends with the member named here. */
#define STRUCT_END(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
enum {
    mnp_ctx_opts_first = STRUCT_END(mnp_ctx_opts, cancel_user),
    mnp_job_opts_first = STRUCT_END(mnp_job_opts, fast),
    mnp_data_opts_first = STRUCT_END(mnp_data_opts, action_column),
    mnp_train_opts_first = STRUCT_END(mnp_train_opts, device),
    mnp_eval_opts_first = STRUCT_END(mnp_eval_opts, seen),
    mnp_function_scores_first = STRUCT_END(mnp_function_scores, entropy),
    mnp_bandit_opts_first = STRUCT_END(mnp_bandit_opts, agent_file),
    mnp_agent_train_opts_first = STRUCT_END(mnp_agent_train_opts, progress_user),
    mnp_log_opts_first = STRUCT_END(mnp_log_opts, passes),
    mnp_option_first = STRUCT_END(mnp_option, help),
    mnp_tensor_first = STRUCT_END(mnp_tensor, trained),
    mnp_train_report_first = STRUCT_END(mnp_train_report, best_step),
    mnp_draw_opts_first = STRUCT_END(mnp_draw_opts, progress_user),
    mnp_draw_report_first = STRUCT_END(mnp_draw_report, moved),
    mnp_summary_first = STRUCT_END(mnp_summary, draws),
    mnp_many_opts_first = STRUCT_END(mnp_many_opts, device),
    mnp_groups_opts_first = STRUCT_END(mnp_groups_opts, progress_user),
    mnp_map_opts_first = STRUCT_END(mnp_map_opts, threshold),
    mnp_map_first = STRUCT_END(mnp_map, draws),
    mnp_rivers_opts_first = STRUCT_END(mnp_rivers_opts, progress_user),
    mnp_turn_opts_first = STRUCT_END(mnp_turn_opts, device),
    mnp_scores_first = STRUCT_END(mnp_scores, se_pixels),
    mnp_noted_score_first = STRUCT_END(mnp_noted_score, seed),
    mnp_predictive_opts_first = STRUCT_END(mnp_predictive_opts, sandwich),
    mnp_truth_first = STRUCT_END(mnp_truth, crps),
    mnp_predictive_first = STRUCT_END(mnp_predictive, sandwich_se),
    mnp_laws_first = STRUCT_END(mnp_laws, samples),
    mnp_laws_opts_first = STRUCT_END(mnp_laws_opts, progress_user),
    mnp_calibration_opts_first = STRUCT_END(mnp_calibration_opts, progress_user),
    mnp_calibration_first = STRUCT_END(mnp_calibration, inside99),
    mnp_bandit_scores_first = STRUCT_END(mnp_bandit_scores, seconds),
    mnp_fit_opts_first = STRUCT_END(mnp_fit_opts, user),
    mnp_fit_score_first = STRUCT_END(mnp_fit_score, warned),
    mnp_fit_report_opts_first = STRUCT_END(mnp_fit_report_opts, command),
    mnp_replay_scores_first = STRUCT_END(mnp_replay_scores, log_se),
    STRUCT_MAX = 4096 /* a larger `size` was never set */
};

/* Options into `to`, with zeros where `from` is NULL or ends earlier. */
#define TAKE_OPTS(e, type, from, to) check_opts(e, #type, type##_first, sizeof(type), from, to)
mnp_status check_opts(env *e, const char *name, size_t first, size_t now, const void *from,
                      void *to);

/* May a result be written to `out`? And: write it, all but `size`, and zeros after what is known
 * here. */
#define CHECK_RESULT(e, type, out) check_result(e, #type, type##_first, out)
mnp_status check_result(env *e, const char *name, size_t first, const void *out);
/* The same of `count` side by side, as far apart as the caller's struct is large. */
#define CHECK_RESULTS(e, type, out, count) check_results(e, #type, type##_first, out, count)
mnp_status check_results(env *e, const char *name, size_t first, const void *out, int64_t count);
#define GIVE_RESULT(type, out, ...) give_result(out, &(type){__VA_ARGS__}, sizeof(type))
void give_result(void *out, const void *from, size_t now);
void give_results(void *out, const void *from, size_t now, int64_t count);

/* ---- single arguments ------------------------------------------------------------------------ */

/* A pointer that may not be NULL. */
mnp_status check_given(env *e, const void *p, const char *name);
/* lo <= v <= hi. */
mnp_status check_range(env *e, int64_t v, int64_t lo, int64_t hi, const char *name);
/* One of the `count` values of an enumeration. */
mnp_status check_enum(env *e, int64_t v, int64_t count, const char *name);
mnp_status check_finite(env *e, double v, const char *name);
/* A block of `bytes`: given, unless it has none, and not larger than any memory is. What passes
 * here can be multiplied by small numbers without overflow. */
mnp_status check_bytes(env *e, const void *p, size_t bytes, const char *name);
/* An array of a * b numbers of 8 bytes; none of the factors is negative. */
mnp_status check_array(env *e, const void *p, int64_t a, int64_t b, const char *name);
/* How to draw, of the options of several calls. */
mnp_status check_condition(env *e, mnp_condition condition, int64_t gradients);
mnp_status check_turn(env *e, const mnp_draw_opts *o);
/* n points with x (n, dims), and y (n) where they need it; at least `least` of them. A set with
 * none needs no arrays. */
mnp_status check_set(env *e, const mnp_set *s, int64_t least, int64_t dims, const char *name);

#define CHECK_COUNT_MAX (INT64_C(1) << 45) /* of things in one array of 8 bytes each */
size_t check_times(size_t a, size_t b);    /* SIZE_MAX where the product overflows */

/* A text into a caller's buffer, cut to `size` bytes; nothing where there is no buffer. */
void check_print(char *out, size_t size, const char *text);

#endif
