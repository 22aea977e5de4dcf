/* test_structs.c: the structs that cross the public interface. Programs compiled with an older
 * header go on working: a struct's first version keeps its size and its members their places, and
 * `size` comes first. Numbers are those of 64-bit machines. */
#include <glob.h>

#include "api/check.h"
#include "check.h"

typedef struct layout {
    const char *name;
    size_t first, now,
        size_at; /* bytes of the first version, of the present one; place of `size` */
    size_t want_first, want_now;
} layout;

#define LAYOUT(type, want_first, want_now)                                                         \
    { #type, type##_first, sizeof(type), offsetof(type, size), want_first, want_now }

static const layout layouts[] = {
    LAYOUT(mnp_ctx_opts, 72, 72),
    LAYOUT(mnp_job_opts, 17, 24),
    LAYOUT(mnp_data_opts, 80, 104),
    LAYOUT(mnp_train_opts, 32, 32),
    LAYOUT(mnp_eval_opts, 128, 184),
    LAYOUT(mnp_function_scores, 128, 152),
    LAYOUT(mnp_bandit_opts, 144, 160),
    LAYOUT(mnp_agent_train_opts, 40, 40),
    LAYOUT(mnp_log_opts, 48, 48),
    LAYOUT(mnp_train_report, 88, 128),
    LAYOUT(mnp_draw_opts, 56, 72),
    LAYOUT(mnp_draw_report, 113, 120),
    LAYOUT(mnp_tensor, 49, 56),
    LAYOUT(mnp_option, 64, 64),
    LAYOUT(mnp_noted_score, 48, 48),
    LAYOUT(mnp_summary, 56, 56),
    LAYOUT(mnp_many_opts, 40, 64),
    LAYOUT(mnp_groups_opts, 88, 88),
    LAYOUT(mnp_map_opts, 56, 112),
    LAYOUT(mnp_map, 40, 56),
    LAYOUT(mnp_rivers_opts, 40, 40),
    LAYOUT(mnp_turn_opts, 40, 40),
    LAYOUT(mnp_scores, 480, 512),
    LAYOUT(mnp_predictive_opts, 41, 56),
    LAYOUT(mnp_predictive, 352, 360),
    LAYOUT(mnp_truth, 96, 96),
    LAYOUT(mnp_laws, 56, 144),
    LAYOUT(mnp_laws_opts, 96, 96),
    LAYOUT(mnp_calibration_opts, 80, 80),
    LAYOUT(mnp_calibration, 74, 80),
    LAYOUT(mnp_bandit_scores, 80, 88),
    LAYOUT(mnp_replay_scores, 72, 72),
    LAYOUT(mnp_fit_opts, 64, 64),
    LAYOUT(mnp_fit_score, 208, 208),
    LAYOUT(mnp_fit_report_opts, 24, 24),
};

static void first_versions_stay(void) {
    if (sizeof(void *) != 8) {
        SKIP("the numbers are those of 64-bit machines");
        return;
    }
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        const layout *l = &layouts[k];
        CASE(l->name);
        CHECK(l->size_at == 0);
        CHECK(l->first == l->want_first);
        NEAR(l->now, l->want_now, 0, 0); /* a member was added: so it should be after the last */
        CHECK(l->now <= STRUCT_MAX);
    }
    CASE(NULL);
    CHECK(sizeof(mnp_set) == 24 && sizeof(mnp_allocator) == 24 &&
          sizeof(mnp_map_frame) == 48); /* those have no size: for ever */
}

/* A struct with a size that is missing above would be free to move. */
static void every_struct_is_here(void) {
    glob_t headers;
    char line[256];
    size_t found = 0;
    CHECK(glob("include/*.h", 0, NULL, &headers) == 0);
    for (size_t k = 0; k < headers.gl_pathc; k++) {
        FILE *f = fopen(headers.gl_pathv[k], "r");
        while (f && fgets(line, sizeof line, f)) found += strstr(line, "    size_t size;") == line;
        if (f) fclose(f);
    }
    globfree(&headers);
    CHECK(found == sizeof layouts / sizeof *layouts);
}

/* ---- how they are taken and given ------------------------------------------------------------ */

static env e;

static void older_options_end_earlier(void) {
    mnp_eval_opts from, to;
    memset(&from, 0xff, sizeof from);
    from.size = mnp_eval_opts_first;
    memset(&to, 0xff, sizeof to);
    CHECK(check_opts(&e, "mnp_eval_opts", mnp_eval_opts_first, sizeof to, &from, &to) == MNP_OK);
    CHECK(to.functions == -1 && to.seen == -1);
    /* as if the first version had ended before `context`: the rest is zero */
    size_t end = offsetof(mnp_eval_opts, context);
    from.size = end;
    CHECK(check_opts(&e, "mnp_eval_opts", end, sizeof to, &from, &to) == MNP_OK);
    CHECK(to.functions == -1 && !to.context && to.seen == 0 && to.noise == 0);
    CHECK(check_opts(&e, "mnp_eval_opts", end, sizeof to, NULL, &to) == MNP_OK);
    CHECK(to.functions == 0 && to.size == 0);
}

/* A caller whose struct ends earlier gets what fits, and not a byte more. */
static void older_results_end_earlier(void) {
    mnp_scores all = {.loglik = 1, .functions = 2, .se_pixels = 3}, out;
    size_t end = offsetof(mnp_scores, loglik_pixels);
    memset(&out, 0x55, sizeof out);
    out.size = end;
    give_result(&out, &all, sizeof all);
    CHECK(out.size == end && out.loglik == 1 && out.functions == 2);
    unsigned char tail[sizeof out];
    memset(tail, 0x55, sizeof tail);
    CHECK(memcmp((char *)&out + end, tail, sizeof out - end) == 0);
}

int main(void) {
    env_init(&e);
    RUN(first_versions_stay);
    RUN(every_struct_is_here);
    RUN(older_options_end_earlier);
    RUN(older_results_end_earlier);
    return check_done();
}
