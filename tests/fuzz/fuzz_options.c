/* fuzz_options.c: arbitrary text as an option list. What parses must print, parse back to the same
 * bytes, and print the same text again; what does not parse must leave an error. */
#include "base/options.h"
#include "fuzz/fuzz.h"
#include "options_check.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "steps=5 lr=2.5e-4 clip=on transition=affine x=0:1.5 context=8",
        "clip=off steps=64\tlr=1\n context=0:1000000",
        "steps=7 lr=0.001 clip=off transition=rqs x=-2:2 context=2:50",
        "lr=-1e-300 x=-1.7976931348623157e308:5e-324 clip=yes clip=0 transition=copula",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

typedef struct toy {
    int64_t steps;
    double lr;
    bool clip;
    int transition;
    option_range x;
    option_span context;
} toy;

static const option_def table[] = {
    OPTION_INT(toy, steps, "7", 1, 64, "number of transitions"),
    OPTION_REAL(toy, lr, "1e-3", 0, 0, "learning rate"),
    OPTION_BOOL(toy, clip, "off", "clip gradients"),
    OPTION_ENUM(toy, transition, "rqs", "affine|rqs|copula", "kind of step"),
    OPTION_RANGE(toy, x, "-2:2", 0, 0, "domain of x"),
    OPTION_SPAN(toy, context, "2:50", 0, 1e6, "context size"),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    env e;
    env_init(&e);
    toy a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    option_view va = {table, OPTION_COUNT(table), &a}, vb = {table, OPTION_COUNT(table), &b};
    FUZZ_CHECK(options_check(&e, &va, 1) == MNP_OK && options_defaults(&e, &vb, 1) == MNP_OK);
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    if (options_parse(&e, &va, 1, text) != MNP_OK) FUZZ_CHECK(e.error[0] != '\0');

    buf first, second; /* after a failure too: the struct then holds what was set before it */
    buf_init(&first, &e);
    buf_init(&second, &e);
    FUZZ_CHECK(options_print(&first, &va, 1) == MNP_OK);
    FUZZ_CHECK(options_parse(&e, &vb, 1, buf_str(&first)) == MNP_OK);
    FUZZ_CHECK(memcmp(&a, &b, sizeof a) == 0);
    FUZZ_CHECK(options_print(&second, &vb, 1) == MNP_OK);
    FUZZ_CHECK(strcmp(buf_str(&first), buf_str(&second)) == 0);
    buf_free(&first);
    buf_free(&second);
    free(text);
    return 0;
}
