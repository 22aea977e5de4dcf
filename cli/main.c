/* main.c: `mnp COMMAND ...`: finds the command, parses its flags, runs it. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/job.h"

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

static int unknown_command(const char *name) {
    text_nearest near = text_nearest_to(name);
    for (int k = 0; command_at(k); k++) text_nearest_try(&near, command_at(k)->name);
    fprintf(stderr, "mnp: there is no command '%s'%s%s%s; 'mnp help' lists them\n", name,
            near.best ? " (nearest: '" : "", near.best ? near.best : "", near.best ? "')" : "");
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

static int run_command(const command *cmd, int argc, char **argv) {
    cli c = {.command = cmd, .ranks = 1};
    env_init(&c.env);
    buf_init(&c.settings, &c.env);
    if (!job_detect(&c)) return 0;
    int status = flags_parse(&c, argc, argv);
    if (status == FLAGS_HELP) {
        if (c.rank == 0) command_print_help(cmd, stdout);
        status = 0;
    } else if (status == 0) {
        status = cli_make_context(&c, 1);
        if (status == 0) status = cmd->run(&c);
    }
    cli_tell(&c);
    lock_release(&c.lock);
    mnp_ctx_destroy(c.ctx);
    buf_free(&c.settings);
    if (fflush(stdout) != 0 && status == 0) {
        fprintf(stderr, "mnp %s: standard output could not be written\n", cmd->name);
        status = EXIT_FAILED;
    }
    return status;
}

int main(int argc, char **argv) {
    struct sigaction act = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (argc < 2) {
        command_print_help(command_find("help"), stdout);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("mnp %s\n", mnp_version());
        return 0;
    }
    const char *name =
        strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? "help" : argv[1];
    const command *cmd = command_find(name);
    return cmd ? run_command(cmd, argc - 2, argv + 2) : unknown_command(name);
}
