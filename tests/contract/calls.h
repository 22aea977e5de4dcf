/* calls.h: wrong calls of public functions, and a count of which arguments were tried.
 *
 *     CALL(mnp_data_write_csv);
 *     MUTE(0, mnp_data_write_csv(NULL, data, path));  argument 0 is wrong; nobody to keep a text
 *     BAD(1, mnp_data_write_csv(ctx, NULL, path));    argument 1 is wrong: MNP_EINVAL and one line
 *
 * calls_cover_headers() reads the headers in include/ and fails for a function that no CALL names,
 * and for an argument that no line tried. */
#ifndef MNP_TESTS_CONTRACT_CALLS_H
#define MNP_TESTS_CONTRACT_CALLS_H

#include <ctype.h>
#include <glob.h>

#include "api/api_internal.h"
#include "check.h"

enum { CALLS_MAX = 512, CALL_NAME = 64 };

typedef struct tried {
    char name[CALL_NAME];
    unsigned arguments; /* bit k: argument k was tried */
} tried;

static struct {
    tried of[CALLS_MAX];
    int count;
    tried *now;
    mnp_ctx *ctx; /* whose text is looked at */
} calls;

static void calls_begin(const char *name) {
    CASE(name);
    for (int k = 0; k < calls.count; k++)
        if (strcmp(calls.of[k].name, name) == 0) {
            calls.now = &calls.of[k];
            return;
        }
    calls.now = &calls.of[calls.count++];
    snprintf(calls.now->name, sizeof calls.now->name, "%s", name);
}

static void calls_try(int argument) {
    calls.now->arguments |= 1u << argument;
    calls.ctx->env.error[0] = '\0';
}

static bool calls_one_line(void) {
    const char *text = mnp_last_error(calls.ctx);
    return *text && !strchr(text, '\n') && strlen(text) < ENV_ERROR_MAX - 1;
}

static void calls_bad(const char *file, int line, mnp_status got, bool speaks, const char *what) {
    check_.checks++;
    if (got == MNP_EINVAL && calls_one_line() == speaks) return;
    char text[400];
    snprintf(text, sizeof text, "%.150s: %s, \"%.150s\"", what, mnp_status_name(got),
             mnp_last_error(calls.ctx));
    check_bad(file, line, text);
}

/* The name must be a function's. */
#define CALL(function) ((void)sizeof(&(function)), calls_begin(#function))
/* Refused with MNP_EINVAL and one line of text. */
#define BAD(argument, call)                                                                        \
    (calls_try(argument), calls_bad(__FILE__, __LINE__, (call), true, #call))
/* Refused with MNP_EINVAL; there is no context that could keep a text. */
#define MUTE(argument, call)                                                                       \
    (calls_try(argument), calls_bad(__FILE__, __LINE__, (call), false, #call))
/* Wrong, or any value is right: this is true of it. */
#define GIVES(argument, condition)                                                                 \
    do {                                                                                           \
        calls_try(argument);                                                                       \
        CHECK(condition);                                                                          \
    } while (0)
/* A call without an answer only has to come back. */
#define RETURNS(argument, call)                                                                    \
    do {                                                                                           \
        calls_try(argument);                                                                       \
        call;                                                                                      \
        CHECK(true);                                                                               \
    } while (0)

/* ---- structs with a size --------------------------------------------------------------------- */

/* A struct with room after it, as from a newer header. */
#define ROOMY(type, variable)                                                                      \
    union {                                                                                        \
        type s;                                                                                    \
        unsigned char bytes[sizeof(type) + 64];                                                    \
    } variable;                                                                                    \
    memset(&variable, 0, sizeof variable);                                                         \
    variable.s.size = sizeof(type)

static const size_t wrong_sizes[] = {0, 4, sizeof(size_t), STRUCT_MAX + 1, (size_t)1 << 40};
enum { WRONG_SIZES = sizeof wrong_sizes / sizeof *wrong_sizes };

/* `call` reads or fills o.s: all wrong sizes, and one byte less than the first version. */
#define BAD_SIZES(argument, type, o, call)                                                         \
    do {                                                                                           \
        for (int size_ = 0; size_ < WRONG_SIZES; size_++) {                                        \
            (o).s.size = wrong_sizes[size_];                                                       \
            BAD(argument, call);                                                                   \
        }                                                                                          \
        (o).s.size = type##_first - 1;                                                             \
        BAD(argument, call);                                                                       \
        CHECK(strstr(mnp_last_error(calls.ctx), #type) != NULL);                                   \
        (o).s.size = sizeof(type);                                                                 \
    } while (0)

/* Options: beside it a field that only a newer header knows. */
#define BAD_OPTS(argument, type, o, call)                                                          \
    do {                                                                                           \
        BAD_SIZES(argument, type, o, call);                                                        \
        (o).s.size = sizeof(o);                                                                    \
        (o).bytes[sizeof(o) - 1] = 1;                                                              \
        BAD(argument, call);                                                                       \
        CHECK(strstr(mnp_last_error(calls.ctx), "newer") != NULL);                                 \
        (o).bytes[sizeof(o) - 1] = 0;                                                              \
        (o).s.size = sizeof(type);                                                                 \
    } while (0)

/* One field of the options wrong in turn. */
#define BAD_FIELD(argument, o, field, value, call)                                                 \
    do {                                                                                           \
        (o).s.field = (value);                                                                     \
        BAD(argument, call);                                                                       \
        (o).s.field = 0;                                                                           \
    } while (0)

/* ---- what the headers declare ---------------------------------------------------------------- */

/* Comments and the lines of the preprocessor become blanks. */
static void blank_out(char *text) {
    for (char *c = text; *c; c++) {
        bool directive = *c == '#' && (c == text || c[-1] == '\n');
        if (directive)
            for (; *c && (*c != '\n' || c[-1] == '\\'); c++) *c = ' ';
        if (c[0] == '/' && c[1] == '*') {
            char *end = strstr(c + 2, "*/");
            for (char *stop = end ? end + 2 : c + strlen(c); c < stop; c++) *c = ' ';
        }
        if (!*c) return;
    }
}

static int count_arguments(const char *open, const char *close) {
    int count = 1;
    bool word = false;
    for (const char *c = open + 1; c < close; c++) {
        count += *c == ',';
        word |= isalnum((unsigned char)*c) != 0;
    }
    return !word || strspn(open + 1, " void\n") == (size_t)(close - open - 1) ? 0 : count;
}

static void compare_with(const char *file, const char *name, int arguments) {
    char text[256];
    check_.checks++;
    for (int k = 0; k < calls.count; k++) {
        if (strcmp(calls.of[k].name, name) != 0) continue;
        unsigned want = (1u << arguments) - 1, had = calls.of[k].arguments;
        if (arguments == 0 || had == want) return;
        snprintf(text, sizeof text, "%s has %d arguments; tried were those of the mask %#x", name,
                 arguments, had);
        check_bad(file, 0, text);
        return;
    }
    snprintf(text, sizeof text, "%s is declared and never called wrongly", name);
    check_bad(file, 0, text);
}

/* Every "MNP_API type name(arguments);" of a header. Returns how many there were. */
static int compare_header(const char *file) {
    static char text[1 << 20];
    FILE *f = fopen(file, "r");
    size_t length = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[length] = '\0';
    blank_out(text);
    int found = 0;
    for (char *at = text; (at = strstr(at, "MNP_API")); at++) {
        char name[CALL_NAME] = "";
        char *open = strchr(at, '('), *close = open ? strchr(open, ')') : NULL;
        if (!close) break;
        char *from = open;
        while (from > at && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) from--;
        snprintf(name, sizeof name, "%.*s", (int)(open - from), from);
        compare_with(file, name, count_arguments(open, close));
        found++;
    }
    return found;
}

__attribute__((unused)) static void calls_cover_headers(void) {
    glob_t headers;
    CHECK(glob("include/*.h", 0, NULL, &headers) == 0);
    int found = 0;
    for (size_t k = 0; k < headers.gl_pathc; k++) found += compare_header(headers.gl_pathv[k]);
    CHECK(found == calls.count); /* and no call of what is not declared */
    globfree(&headers);
}

#endif
