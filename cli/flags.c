/* flags.c: parsing by table, and typed access. Unknown names and bad values are refused with the
 * nearest valid name or the allowed range. */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>

#include "util/limits.h"
#include "util/text.h"

static const flag_def common[] = {
    {"seed", "K", "seed of all random numbers (default 0)"},
    {"threads", "N", "threads (default: all cores); the results do not depend on it"},
    {"json", NULL, "print the results as one JSON object, in the last line of stdout"},
    {"quiet", NULL, "print errors only"},
    {"help", NULL, "this text"},
};
enum { COMMON = sizeof common / sizeof *common };

static const flag_def *flag_at(const command *cmd, int k) {
    if (k < cmd->n_flags) return &cmd->flags[k];
    return k < cmd->n_flags + COMMON ? &common[k - cmd->n_flags] : NULL;
}

/* A heading has no name. */
static int flag_find(const command *cmd, const char *name, size_t length) {
    const flag_def *f;
    for (int k = 0; (f = flag_at(cmd, k)); k++)
        if (*f->name && strlen(f->name) == length && strncmp(f->name, name, length) == 0) return k;
    return -1;
}

/* Words of other programs, and ours. */
static const char *ours(const char *name) {
    static const char *const words[][2] = {
        {"epochs", "steps"}, {"iterations", "steps"}, {"id", "group"},     {"subject", "group"},
        {"output", "out"},   {"file", "data"},        {"input", "data"},   {"learning-rate", "lr"},
        {"newdata", "at"},   {"verbose", "json"},     {"cpus", "threads"}, {"jobs", "threads"},
    };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(name, words[k][0]) == 0) return words[k][1];
    return name;
}

/* An option that is set with --set, as "lr" or "rff-std". */
static bool is_setting(const cli *c, const char *name, char key[64]) {
    snprintf(key, 64, "%s", name);
    for (char *at = key; *at; at++)
        if (*at == '-') *at = '_';
    return flag_find(c->command, "set", 3) >= 0 &&
           (mnp_options_has("train", key) || mnp_options_has("model", key));
}

/* The nearest name; else the longest that is a part of it, as out of outfile. */
static int unknown_flag(cli *c, const char *given) {
    char meant[TEXT_NAMES], key[64];
    const char *name = ours(given), *part = "";
    text_nearest near = text_nearest_to(name);
    const flag_def *f;
    for (int k = 0; (f = flag_at(c->command, k)); k++) {
        if (!*f->name) continue;
        text_nearest_try(&near, f->name);
        if (strlen(f->name) > 2 && strstr(name, f->name) && strlen(f->name) > strlen(part))
            part = f->name;
    }
    if (!*near.best && is_setting(c, name, key))
        snprintf(meant, sizeof meant, "; did you mean --set %s=VALUE?", key);
    else if (!*near.best && *part)
        snprintf(meant, sizeof meant, "; did you mean --%s?", part);
    else
        text_meant(meant, &near, "--");
    return cli_fail(c, EXIT_USAGE, "there is no option --%s%s ('mnp help %s' lists them)", given,
                    meant, c->command->name);
}

/* One "key=value" or several with blanks between: every word has its "=". */
static int take_setting(cli *c, const char *text) {
    bool good = *text != '\0';
    for (const char *word = text; *word && good; word += strspn(word, " ")) {
        size_t length = strcspn(word, " "), key = strcspn(word, "= ");
        good = key > 0 && key < length;
        word += length;
    }
    if (!good) return cli_fail(c, EXIT_USAGE, "--set wants key=value, not '%s'", text);
    if (c->settings.len + strlen(text) + 1 >= CLI_SETTINGS_MAX)
        return cli_fail(c, EXIT_USAGE, "all --set together are longer than %d letters",
                        CLI_SETTINGS_MAX);
    buf_printf(&c->settings, "%s%s", c->settings.len ? " " : "", text);
    return 0;
}

static int take_flag(cli *c, int *i, int argc, char **argv) {
    const char *text = argv[*i] + 2, *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    int k = flag_find(c->command, text, length);
    if (k < 0) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), text);
        return unknown_flag(c, name);
    }
    const flag_def *f = flag_at(c->command, k);
    if (!f->value && equals) return cli_fail(c, EXIT_USAGE, "--%s takes no value", f->name);
    const char *value = equals ? equals + 1 : NULL;
    if (f->value && !equals) {
        if (*i + 1 >= argc) return cli_fail(c, EXIT_USAGE, "--%s needs %s", f->name, f->value);
        value = argv[++*i];
    }
    if (strcmp(f->name, "help") == 0) return FLAGS_HELP;
    if (strcmp(f->name, "set") == 0) return take_setting(c, value);
    if (c->given[k]) return cli_fail(c, EXIT_USAGE, "--%s was given twice", f->name);
    c->given[k] = true;
    c->values[k] = value;
    return 0;
}

static int check_count(cli *c) {
    const command *cmd = c->command;
    if (c->n_args < cmd->min_args)
        return cli_fail(c, EXIT_USAGE, "something is missing: mnp %s %s", cmd->name, cmd->args);
    if (c->n_args > cmd->max_args)
        return cli_fail(c, EXIT_USAGE, "'%s' is too much: mnp %s %s", c->args[cmd->max_args],
                        cmd->name, cmd->args);
    return 0;
}

int flags_parse(cli *c, int argc, char **argv) {
    bool only_args = false;
    for (int i = 0; i < argc; i++) {
        int status = 0;
        if (!only_args && strcmp(argv[i], "--") == 0)
            only_args = true;
        else if (!only_args && strncmp(argv[i], "--", 2) == 0)
            status = take_flag(c, &i, argc, argv);
        else if (!only_args && strcmp(argv[i], "-n") == 0 && i + 1 < argc &&
                 flag_find(c->command, "n", 1) >= 0) {
            int k = flag_find(c->command, "n", 1);
            c->given[k] = true;
            c->values[k] = argv[++i];
        } else if (c->n_args < CLI_ARGS_MAX)
            c->args[c->n_args++] = argv[i];
        if (status != 0) return status;
    }
    c->json = cli_has(c, "json");
    c->quiet = cli_has(c, "quiet");
    const char *seed = cli_text(c, "seed", "0");
    if (text_parse_uint64(seed, &c->seed) != TEXT_OK)
        return cli_fail(c, EXIT_USAGE, "--seed wants a whole number from 0 to 2^64-1, not '%s'",
                        seed);
    return check_count(c);
}

/* ---- typed access ---------------------------------------------------------------------------- */

static int must_find(const cli *c, const char *name) {
    return flag_find(c->command, name, strlen(name));
}

void cli_put_flag(const cli *c, int k, buf *to) {
    buf_printf(to, " --%s", c->command->flags[k].name);
    if (!c->values[k]) return;
    buf_text(to, " ");
    buf_word(to, c->values[k]);
}

bool cli_has(const cli *c, const char *name) {
    int k = must_find(c, name);
    return k >= 0 && c->given[k];
}

const char *cli_text(const cli *c, const char *name, const char *fallback) {
    int k = must_find(c, name);
    return k >= 0 && c->given[k] ? c->values[k] : fallback;
}

const char *cli_device(cli *c) {
    const char *device = cli_text(c, "device", NULL), *math = cli_text(c, "math", NULL),
               *kernels = cli_text(c, "kernels", NULL);
    if (!math && !kernels) return device;
    snprintf(c->device, sizeof c->device, "%.19s%s%.19s%s%.19s", device ? device : "cpu",
             math ? ":" : "", math ? math : "", kernels ? ":" : "", kernels ? kernels : "");
    return c->device;
}

int64_t cli_int(cli *c, const char *name, int64_t fallback, int64_t lo, int64_t hi) {
    const char *text = cli_text(c, name, NULL);
    int64_t v = fallback;
    if (text && (text_parse_int64(text, &v) != TEXT_OK || v < lo || v > hi))
        c->status = cli_fail(c, EXIT_USAGE, "--%s wants a whole number from %lld to %lld, not '%s'",
                             name, (long long)lo, (long long)hi, text);
    return v;
}

double cli_real(cli *c, const char *name, double fallback, double lo, double hi) {
    const char *text = cli_text(c, name, NULL);
    double v = fallback;
    if (text && (text_parse_double(text, &v) != TEXT_OK || !(v >= lo && v <= hi)))
        c->status = cli_fail(c, EXIT_USAGE, "--%s wants a number from %g to %g, not '%s'", name, lo,
                             hi, text);
    return v;
}

bool cli_span(cli *c, const char *name, int64_t *lo, int64_t *hi) {
    const char *text = cli_text(c, name, NULL);
    if (!text) return false;
    char first[32] = "";
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    if (length < sizeof first) memcpy(first, text, length);
    bool ok = length < sizeof first && text_parse_int64(first, lo) == TEXT_OK;
    *hi = *lo;
    if (ok && colon) ok = text_parse_int64(colon + 1, hi) == TEXT_OK;
    if (!ok || *lo < 0 || *hi < *lo)
        c->status =
            cli_fail(c, EXIT_USAGE, "--%s wants lo:hi with 0 <= lo <= hi, not '%s'", name, text);
    return true;
}

int cli_choice(cli *c, const char *name, const char *choices, int fallback) {
    const char *text = cli_text(c, name, NULL);
    if (!text) return fallback;
    char choice[TEXT_NAME], meant[TEXT_NAMES];
    for (int k = 0; text_choice(choices, k, choice, sizeof choice); k++)
        if (strcmp(choice, text) == 0) return k;
    text_nearest near = text_nearest_to(text);
    text_nearest_choices(&near, choices);
    c->status = cli_fail(c, EXIT_USAGE, "--%s is one of %s, not '%s'%s", name, choices, text,
                         text_meant(meant, &near, ""));
    return fallback;
}

bool cli_bad(const cli *c) {
    return c->status != 0;
}

/* ---- help ------------------------------------------------------------------------------------ */

static void print_flag(const flag_def *f, FILE *to) {
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", f->name, f->value ? " " : "", f->value ? f->value : "");
    if (*f->name)
        fprintf(to, "  %-26s %s\n", left, f->help);
    else
        fprintf(to, "\n%s:\n", f->help);
}

void command_print_help(const command *cmd, FILE *to) {
    bool overview = cmd->n_flags == 0 && cmd->more_help; /* `mnp help`: the commands come first */
    fprintf(to, "usage: mnp %s %s\n\n%s\n", cmd->name, cmd->args, cmd->summary);
    if (cmd->details) fprintf(to, "\n%s\n", cmd->details);
    if (cmd->n_flags > 0 && *cmd->flags->name) fprintf(to, "\noptions:\n");
    for (int k = 0; k < cmd->n_flags; k++) print_flag(&cmd->flags[k], to);
    if (overview) cmd->more_help(to);
    fprintf(to, "\nevery command:\n");
    for (int k = 0; k < COMMON; k++) print_flag(&common[k], to);
    if (!overview && cmd->more_help) cmd->more_help(to);
}
