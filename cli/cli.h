/* cli.h: the parts every command shares: flags from tables, one-line errors, the context, progress
 * and JSON. A command is one file cmd_<name>.c with a `const command command_<name>`, and one line
 * in commands.def. */
#ifndef MNP_CLI_H
#define MNP_CLI_H

#include "cli/lock.h"
#include "mnp_job.h"
#include "util/fsio.h"
#include "util/json.h"
#include "util/text.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };
enum { CLI_FLAGS_MAX = 64, CLI_ARGS_MAX = 16, CLI_SETTINGS_MAX = 4096, CLI_HELP_MAX = 1 << 15 };

/* --name or --name VALUE; the same table makes the parser and the help. */
typedef struct flag_def {
    const char *name;
    const char *value; /* what the value is called in help, NULL for a switch */
    const char *help;
} flag_def;

typedef struct cli {
    const struct command *command;
    mnp_ctx *ctx;
    const char *values[CLI_FLAGS_MAX]; /* by place in the command's flags, then the common ones */
    bool given[CLI_FLAGS_MAX];
    const char *args[CLI_ARGS_MAX]; /* what is not a flag */
    int n_args;
    buf settings; /* all --set key=value, one after the other */
    bool json, quiet;
    uint64_t seed;
    char device[64]; /* of cli_device() */
    env env;         /* for text, JSON and CSV of the command itself */
    int status;
    struct outputs *outputs; /* what it reads and writes (outputs.h); one for the whole program */
    /* of a job started by mpirun (job.h): rank 0 speaks and writes, the others work */
    int rank, ranks;    /* 0 of 1 without a job */
    bool joined, alone; /* alone: each rank works for itself, and writes */
    char why[1024];     /* the last error of a rank in a job, told at the end */
    buf warnings;       /* what cli_warn() said */
    out_lock lock;      /* of the output, until the command ends */
    bool held;          /* errors wait in `why`: one of several runs in this process */
} cli;

typedef struct command {
    const char *name;
    const char *args;    /* of the usage line: "MODEL [--data D]"           */
    const char *summary; /* one line                                        */
    const char *details; /* paragraphs for `mnp help NAME`, or NULL         */
    const flag_def *flags;
    int n_flags;
    int min_args, max_args;
    bool spreads;                /* works with all ranks of a job; others leave it to rank 0 */
    int (*run)(cli *c);          /* exit status */
    void (*more_help)(FILE *to); /* printed after the flags, or NULL       */
} command;

enum { FLAGS_HELP = -1 };
/* From argv to a cli (flags.c): 0, EXIT_USAGE after one line on stderr, or FLAGS_HELP when --help
 * was asked for. */
int flags_parse(cli *c, int argc, char **argv);

/* c->ctx with the threads of --threads, or a `share`-th part of them. 0 or an exit status. */
int cli_make_context(cli *c, int share);

const command *command_find(const char *name);
const command *command_at(int k); /* NULL after the last */
/* The end of the refusal of a command that does not exist: text_meant() of util/text.h. */
const char *command_meant(char out[TEXT_NAMES], const char *name);
void command_print_help(const command *c, FILE *to);

/* A line above the flags that follow it in the help. */
#define HEADING(text)                                                                              \
    { "", NULL, text }

/* The flag of commands that read c->settings. */
#define SET_FLAG(what)                                                                             \
    { "set", "KEY=VALUE", "set an option of " what "; may be repeated" }

/* The flags that cli_device() reads. */
#define DEVICE_FLAGS                                                                               \
    {"device", "D", "where to compute: cpu, cuda, or auto: cuda where it works (default cpu)"},    \
        {"math", "M",                                                                              \
         "GPU: fp32; tf32 or bf16: faster products, fewer digits; mixed: tf32 in the encoder "     \
         "alone (default fp32)"},                                                                  \
        KERNELS_FLAG
/* The same where a model is trained. */
#define TRAINING_DEVICE_FLAGS                                                                      \
    {"device", "D", "where to compute: cpu, cuda, or auto: cuda where it works (default cpu)"},    \
        {"math", "M",                                                                              \
         "GPU: fp32; tf32 or bf16: faster products, fewer digits; mixed: tf32 in the encoder "     \
         "alone; auto: tf32, and fp32 once that "                                                  \
         "is seen to cost score (default fp32)"},                                                  \
        KERNELS_FLAG
#define KERNELS_FLAG                                                                               \
    { "kernels", "K", "GPU: fused, or general: op by op, slower (default fused)" }

/* The flag of commands that spread over ranks. */
#define RANK_FLAGS                                                                                 \
    {                                                                                              \
        "rank-timeout", "S",                                                                       \
            "under mpirun: end the job when a rank is silent for S seconds (default 120)"          \
    }

/* Flags. A missing flag gives the fallback; a bad value prints one line and the status becomes
 * EXIT_USAGE, which the command checks once with cli_bad(). */
bool cli_has(const cli *c, const char *name);
const char *cli_text(const cli *c, const char *name, const char *fallback);
/* --device, --math and --kernels as one name for the library ("cuda:tf32:general"); NULL: none was
 * given. */
const char *cli_device(cli *c);
int64_t cli_int(cli *c, const char *name, int64_t fallback, int64_t lo, int64_t hi);
double cli_real(cli *c, const char *name, double fallback, double lo, double hi);
bool cli_span(cli *c, const char *name, int64_t *lo, int64_t *hi); /* "lo:hi"; false: not given */
/* One of "a|b|c": its number. */
int cli_choice(cli *c, const char *name, const char *choices, int fallback);
bool cli_bad(const cli *c);
/* Flag k of the command as it was given, for a line to type: " --x 'a b'". */
void cli_put_flag(const cli *c, int k, buf *to);

/* One line "mnp NAME: text" on stderr; returns the exit status. */
int cli_fail(cli *c, int status, const char *fmt, ...) MNP_PRINTF(3, 4);
/* The same with "; " and what more() says after it. In a job the rank that speaks asks it when the
 * ranks before it are gone, so that it can look at what they left. */
typedef const char *cli_more(void *user, char *text, size_t size);
int cli_fail_late(cli *c, int status, const char *why, cli_more *more, void *user);
/* The same with the library's last error; nothing where cli_bad() has said why already.
 * EXIT_INTERRUPTED for MNP_ECANCELLED. */
int cli_failed(cli *c, mnp_status status);
/* At the end: in a job, one rank prints the error that waited. */
void cli_tell(cli *c);

/* A line for people: to stdout, or to stderr when --json has stdout for itself; none with --quiet.
 * Names and notes from files may be in it: control characters, line ends too, are escaped. */
void cli_say(const cli *c, const char *fmt, ...) MNP_PRINTF(2, 3);
/* Several lines; a newline at the end is not one more. */
void cli_say_lines(const cli *c, const char *text);
/* The same as cli_say on stderr, for when stdout may be a table. */
void cli_note(const cli *c, const char *fmt, ...) MNP_PRINTF(2, 3);
/* Lines of a text, each after `before`: "warning: ". */
void cli_note_lines(const cli *c, const char *before, const char *lines);
/* A line of what is doubtful: on stderr, and in c->warnings for the JSON object. What was said
 * already is not said again. */
void cli_warn(cli *c, const char *fmt, ...) MNP_PRINTF(2, 3);
void cli_warn_lines(cli *c, const char *lines); /* several */
/* The one JSON object on the last line of stdout. Members are added between begin and end, with the
 * calls below or any of util/json.h on `w`; printed only with --json. */
typedef struct cli_json {
    buf text;
    json_writer w;
} cli_json;
void cli_json_begin(cli *c, cli_json *j);
/* One member: cli_json_put(&j, TEXT("out", path), NUMBER("se", se), INTEGER("seed", seed)). A NULL
 * text is null. */
typedef struct cli_member {
    const char *key;
    enum { MEMBER_TEXT, MEMBER_NUMBER, MEMBER_INTEGER } kind;
    const char *text;
    double number;
    int64_t integer;
} cli_member;
#define TEXT(name, value)    ((cli_member){name, MEMBER_TEXT, .text = (value)})
#define NUMBER(name, value)  ((cli_member){name, MEMBER_NUMBER, .number = (value)})
#define INTEGER(name, value) ((cli_member){name, MEMBER_INTEGER, .integer = (int64_t)(value)})
#define MEMBERS(...)                                                                               \
    (const cli_member[]){__VA_ARGS__}, sizeof((cli_member[]){__VA_ARGS__}) / sizeof(cli_member)
#define cli_json_put(j, ...) cli_json_members(j, MEMBERS(__VA_ARGS__))
#define cli_json_all(c, ...)                                                                       \
    cli_json_object(c, MEMBERS(__VA_ARGS__)) /* an object of these alone                           \
                                              */
void cli_json_members(cli_json *j, const cli_member *members, size_t count);
void cli_json_object(cli *c, const cli_member *members, size_t count);
void cli_json_end(cli *c, cli_json *j);
/* The lines of a text as the member "warnings". */
void cli_json_warnings(cli_json *j, const char *lines);

/* Does this process write files? In a job rank 0 does, unless the ranks work alone. */
bool cli_writes(const cli *c);
void cli_alone(cli *c, bool on);

/* Has Ctrl-C been pressed? A second one ends the program at once. */
bool cli_interrupted(void);

/* ---- progress -------------------------------------------------------------------------------- */

/* A bar on a terminal, a plain line now and then elsewhere. */
typedef struct progress {
    const cli *c;
    const char *what;
    double started, shown;
    int64_t from, total;
    bool terminal;
} progress;

void progress_begin(progress *p, const cli *c, const char *what, int64_t done, int64_t total);
/* `note` goes after the bar: loss and the like. */
void progress_show(progress *p, int64_t done, const char *note);
void progress_end(progress *p);
double cli_now(void); /* seconds, monotonic */

#endif
