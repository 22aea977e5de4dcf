/* main.c: `mnp COMMAND ...`: finds the command, parses its flags, runs it. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/job.h"
#include "cli/outputs.h"
#include "util/text.h"

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number) {
    if (interrupts++) { /* the second time there is no patience left */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

bool cli_interrupted(void) {
    return interrupts != 0;
}

static bool cancelled(void *user) {
    (void)user;
    return cli_interrupted();
}

static void on_log(void *user, mnp_log_level level, const char *text) {
    const cli *c = user;
    if (level >= MNP_LOG_INFO && !c->quiet)
        fprintf(stderr, "%s%s\n", level == MNP_LOG_WARN ? "warning: " : "", text);
}

/* stdio keeps no errno of a write that failed: it is asked for at once. */
static void print_help(const command *cmd, outputs *out) {
    errno = 0;
    command_print_help(cmd, stdout);
    outputs_flush(out);
}

static int unknown_command(const char *name) {
    char shown[256], meant[TEXT_NAMES];
    text_plain(shown, sizeof shown, name);
    fprintf(stderr, "mnp: there is no command '%s'%s ('mnp help' lists them)\n", shown,
            command_meant(meant, name));
    return EXIT_USAGE;
}

int cli_make_context(cli *c, int share) {
    mnp_ctx_opts o = {.size = sizeof o,
                      .threads = (int)cli_int(c, "threads", 0, 0, 1024),
                      .log = on_log,
                      .log_user = c,
                      .cancel = cancelled};
    if (cli_bad(c)) return c->status;
    if (share > 1) {
        if (o.threads == 0) o.threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
        o.threads = o.threads > share ? o.threads / share : 1;
    }
    if (mnp_ctx_create(&o, &c->ctx) != MNP_OK) return cli_fail(c, EXIT_FAILED, "out of memory");
    return job_join(c);
}

static int run_command(const command *cmd, outputs *out, int argc, char **argv) {
    cli c = {.command = cmd, .ranks = 1, .outputs = out};
    env_init(&c.env);
    buf_init(&c.settings, &c.env);
    buf_init(&c.warnings, &c.env);
    if (!job_detect(&c)) return 0;
    int status = flags_parse(&c, argc, argv);
    if (status == FLAGS_HELP) {
        if (c.rank == 0) print_help(cmd, out);
        status = 0;
    } else if (status == 0) {
        status = cli_check_stdout(&c);
        if (status == 0) status = cli_make_context(&c, 1);
        if (status == 0) status = cmd->run(&c);
    }
    cli_tell(&c);
    lock_release(&c.lock);
    mnp_ctx_destroy(c.ctx);
    buf_free(&c.settings);
    buf_free(&c.warnings);
    return status;
}

/* A file that grows beyond what `ulimit -f` allows is an error of that write, with its own text,
 * and not the end of the program. SIGPIPE stays as it is: | head ends us silently. */
static void set_signals(void) {
    struct sigaction act = {.sa_handler = on_interrupt}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

static int run(outputs *out, int argc, char **argv) {
    if (argc < 2) {
        print_help(command_find("help"), out);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        errno = 0;
        printf("mnp %s\n", mnp_version());
        outputs_flush(out);
        return 0;
    }
    const char *name =
        strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? "help" : argv[1];
    const command *cmd = command_find(name);
    return cmd ? run_command(cmd, out, argc - 2, argv + 2) : unknown_command(name);
}

int main(int argc, char **argv) {
    outputs out;
    outputs_begin(&out);
    set_signals();
    return outputs_end(&out, run(&out, argc, argv));
}
