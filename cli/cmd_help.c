/* cmd_help.c: mnp help [COMMAND], and the table of commands. */
#include <string.h>

#include "cli/cli.h"

#define COMMAND(name) extern const command command_##name;
#include "cli/commands.def"
#undef COMMAND

const command *command_at(int k) {
    static const command *const table[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
    };
    return k >= 0 && k < (int)(sizeof table / sizeof *table) ? table[k] : NULL;
}

const command *command_find(const char *name) {
    const command *c;
    for (int k = 0; (c = command_at(k)); k++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

static void list_commands(FILE *to) {
    fprintf(to, "\ncommands:\n");
    const command *c;
    for (int k = 0; (c = command_at(k)); k++) fprintf(to, "  %-10s %s\n", c->name, c->summary);
    fprintf(to, "\n'mnp help COMMAND' says more. With a table of your own curves:\n"
                "  mnp fit curves.csv\n"
                "  mnp predict curves.safetensors --context new.csv --grid 0:60:61 --out p.csv\n");
}

const char *command_meant(char out[TEXT_NAMES], const char *name) {
    text_nearest near = text_nearest_to(name);
    for (int k = 0; command_at(k); k++) text_nearest_try(&near, command_at(k)->name);
    return text_meant(out, &near, "");
}

static int run(cli *c) {
    char meant[TEXT_NAMES];
    if (c->n_args == 0) {
        command_print_help(c->command, stdout);
        return 0;
    }
    const command *about = command_find(c->args[0]);
    if (about) {
        command_print_help(about, stdout);
        return 0;
    }
    return cli_fail(c, EXIT_USAGE, "there is no command '%s'%s", c->args[0],
                    command_meant(meant, c->args[0]));
}

const command command_help = {.name = "help",
                              .args = "[COMMAND]",
                              .summary = "what the commands do",
                              .max_args = 1,
                              .run = run,
                              .more_help = list_commands};
