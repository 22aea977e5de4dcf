/* test_lists.c: what the library lists can be used, and what can be used is listed: processes,
 * presets, devices, options. Lists are compared with what other calls take and print. */
#include <math.h>

#include "check.h"
#include "mnp.h"

static mnp_ctx *ctx;

static bool makes(const char *process, const char *preset, const mnp_data *data) {
    mnp_model *m = NULL;
    mnp_status status = mnp_model_create(ctx, process, preset, NULL, data, 1, &m);
    bool refused =
        status == MNP_EINVAL && strstr(mnp_last_error(ctx), "there is no preset") != NULL;
    CHECK(status == MNP_OK || refused);
    mnp_model_destroy(m);
    return status == MNP_OK;
}

/* Every process has the preset paper, every preset a process; and the refusal names them all. */
static void processes_and_presets_make_models(void) {
    mnp_data *data = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 2};
    const char *process, *preset, *help;
    int processes = 0;
    CHECK(mnp_data_open(ctx, "rbf", &o, &data) == MNP_OK);
    for (int k = 0; (process = mnp_model_process(k, &help)); k++, processes++) {
        CASE(process);
        CHECK(help && *help && !strchr(help, '\n'));
        CHECK(makes(process, "paper", data));
    }
    CHECK(processes == 10);
    for (int k = 0; (preset = mnp_model_preset(k, &help)); k++) {
        CASE(preset);
        bool made = false;
        CHECK(help && *help && !strchr(help, '\n'));
        for (int p = 0; p < processes; p++) made |= makes(mnp_model_process(p, NULL), preset, data);
        CHECK(made && !makes("mnp", "no-such-preset", data));
        CHECK(strstr(mnp_last_error(ctx), preset) != NULL);
    }
    mnp_data_destroy(data);
}

static void devices_work(void) {
    char about[200];
    mnp_model *m = NULL;
    const char *name;
    int count = 0;
    CHECK(mnp_model_create(ctx, "mnp", "tiny", NULL, NULL, 1, &m) == MNP_OK);
    for (; (name = mnp_device(ctx, count, about, sizeof about)); count++) {
        mnp_predictor *p = NULL;
        CASE(name);
        CHECK(*about && !strchr(about, '\n') && strcmp(name, "ref") != 0);
        CHECK(mnp_predictor_create(ctx, m, name, &p) == MNP_OK);
        mnp_predictor_destroy(p);
    }
    CHECK(count >= 1);
    STREQ(mnp_device(ctx, 0, NULL, 0), "cpu");
    mnp_predictor *p = NULL; /* cuda is listed where it can be had */
    CHECK((mnp_predictor_create(ctx, m, "cuda", &p) == MNP_OK) == (count == 2));
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
}

/* What mnp.h says of each name; a GPU need not be here. */
static void precisions_of_devices(void) {
    static const struct {
        const char *device, *precision;
    } known[] = {{NULL, "fp32"},
                 {"cpu", "fp32"},
                 {"cpu:fp32", "fp32"},
                 {"cuda", "fp32"},
                 {"cuda:tf32", "tf32"},
                 {"cuda:general:bf16", "bf16"},
                 {"cuda:mixed:fused", "mixed"},
                 {"cuda:auto", "auto"},
                 {"auto", "fp32"}};
    static const char *const wrong[] = {"",      "gpu", "cpu:tf32", "cuda:fp16", "cuda:tf32:bf16",
                                        "auto:x"};
    const char *precision;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        CASE(known[k].device ? known[k].device : "NULL");
        CHECK(mnp_device_precision(ctx, known[k].device, &precision) == MNP_OK);
        STREQ(precision, known[k].precision);
    }
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        CASE(wrong[k]);
        CHECK(mnp_device_precision(ctx, wrong[k], &precision) == MNP_EINVAL && !precision);
    }
    bool gpu =
        mnp_device(ctx, 1, NULL, 0) != NULL; /* what is asked of it does not hold for the CPU */
    CHECK(mnp_device_precision(ctx, "auto:tf32", &precision) == MNP_OK);
    STREQ(precision, gpu ? "tf32" : "fp32");
}

/* One by one: as many as the table has lines, in its order, and each is taken with its default. */
static void options_are_those_of_the_text(void) {
    static char text[1 << 16];
    const char *table;
    for (int t = 0; (table = mnp_options_table(t)); t++) {
        CASE(table);
        CHECK(mnp_options_help(table, text, sizeof text) < sizeof text);
        const char *at = text;
        mnp_option o = {.size = sizeof o};
        int k = 0;
        for (; mnp_options_at(table, k, &o); k++) {
            CASE(o.name);
            CHECK(o.fallback && o.help && *o.help && o.lo < o.hi && mnp_options_has(table, o.name));
            CHECK((o.type == MNP_OPTION_CHOICE) == (o.choices != NULL));
            char lead[80];
            int length = snprintf(lead, sizeof lead, "%s=", o.name);
            at += strspn(at, " ");
            CHECK(strncmp(at, lead, (size_t)length) == 0);
            at += strcspn(at, "\n");
            at += *at == '\n';
        }
        CHECK(k > 3 && *at == '\0');
    }
    CHECK(!mnp_options_at("model", 1000, &(mnp_option){.size = sizeof(mnp_option)}));
}

/* A number on a limit is taken, one beyond it is not. */
static void limits_hold(void) {
    mnp_option o = {.size = sizeof o};
    for (int k = 0; mnp_options_at("model", k, &o); k++) {
        if (strcmp(o.name, "T") != 0) continue;
        char good[40], bad[40];
        mnp_model *m = NULL;
        CHECK(o.type == MNP_OPTION_INTEGER && o.lo == 1 && isfinite(o.hi));
        STREQ(o.fallback, "7");
        snprintf(good, sizeof good, "T=%.0f", o.hi);
        snprintf(bad, sizeof bad, "T=%.0f", o.hi + 1);
        CHECK(mnp_model_create(ctx, "mnp", "tiny", good, NULL, 1, &m) == MNP_OK);
        mnp_model_destroy(m);
        CHECK(mnp_model_create(ctx, "mnp", "tiny", bad, NULL, 1, &m) == MNP_EINVAL);
        return;
    }
    CHECK(false); /* there is an option T */
}

int main(void) {
    if (mnp_ctx_create(NULL, &ctx) != MNP_OK) return 1;
    RUN(processes_and_presets_make_models);
    RUN(devices_work);
    RUN(precisions_of_devices);
    RUN(options_are_those_of_the_text);
    RUN(limits_hold);
    mnp_ctx_destroy(ctx);
    return check_done();
}
