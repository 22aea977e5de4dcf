/* fuzz_options.c: arbitrary text as an option list. What parses must print, parse back to the same
 * bytes, and print the same text again; what does not parse must leave an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

typedef struct toy {
    int64_t steps;
    double lr;
    bool clip;
    int transition;
    char name[24];
    option_range x;
    option_span context;
} toy;

static const option_def table[] = {
    OPTION_INT(toy, steps, "7", 1, 64, "number of transitions"),
    OPTION_REAL(toy, lr, "1e-3", 0, 0, "learning rate"),
    OPTION_BOOL(toy, clip, "off", "clip gradients"),
    OPTION_ENUM(toy, transition, "rqs", "affine|rqs|copula", "kind of step"),
    OPTION_STRING(toy, name, "", "a label"),
    OPTION_RANGE(toy, x, "-2:2", 0, 0, "domain of x"),
    OPTION_SPAN(toy, context, "2:50", 0, 1e6, "context size"),
};

static void demand(bool ok) {
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    env e;
    env_init(&e);
    toy a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    option_view va = {table, OPTION_COUNT(table), &a}, vb = {table, OPTION_COUNT(table), &b};
    demand(options_check(&e, &va, 1) == MNP_OK && options_defaults(&e, &vb, 1) == MNP_OK);
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    if (options_parse(&e, &va, 1, text) != MNP_OK) demand(e.error[0] != '\0');

    buf first, second; /* after a failure too: the struct then holds what was set before it */
    buf_init(&first, &e);
    buf_init(&second, &e);
    demand(options_print(&first, &va, 1) == MNP_OK);
    demand(options_parse(&e, &vb, 1, buf_str(&first)) == MNP_OK);
    demand(memcmp(&a, &b, sizeof a) == 0);
    demand(options_print(&second, &vb, 1) == MNP_OK);
    demand(strcmp(buf_str(&first), buf_str(&second)) == 0);
    buf_free(&first);
    buf_free(&second);
    free(text);
    return 0;
}
