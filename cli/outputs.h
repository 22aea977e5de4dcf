/* outputs.h: what a run reads and where its results go: standard output and files.
 *
 * A command names every file it reads (cli_input) and every file it will write (cli_output, also
 * those whose names it makes itself) before it works. An output that cannot be written, or that is
 * one of the inputs, whatever the two are called, then ends the run while everything is as it was.
 * In whichever order they are named, each is compared with all before it.
 *
 * What goes to standard output is checked as well: the first write that fails is kept, and the
 * command ends with one line and EXIT_FAILED. Ignored is only a reader that goes away (| head): the
 * signal of the broken pipe ends the program silently, as usual. */
#ifndef MNP_CLI_OUTPUTS_H
#define MNP_CLI_OUTPUTS_H

#include <sys/types.h>

#include "cli/cli.h"

typedef struct outputs_file {
    char *name;
    dev_t device;
    ino_t number; /* with the device: which file it is */
    bool written, folder;
} outputs_file;

typedef struct outputs {
    env e;
    outputs_file *files;
    size_t count, cap;
    bool closed;      /* standard output was not open when the program began      */
    int stdout_error; /* errno of the first write to standard output that failed  */
    bool told;        /* and the user knows                                       */
} outputs;

/* Before anything is opened: descriptors 0, 1 and 2 that are closed become ones that refuse, so
 * that no file of ours lands there and is taken for standard output. */
void outputs_begin(outputs *o);
/* Last of all: closes standard output; the exit status of the program. */
int outputs_end(outputs *o, int status);
/* Follows what was printed on standard output and keeps the first failure. stdio has no errno of
 * its own: the caller sets it to 0 before it prints. */
void outputs_flush(outputs *o);

/* A file that is read, or a folder of images. What is not there, or is a device or a pipe, cannot
 * be overwritten and is left to those who open it. 0, or an exit status after one line. */
int cli_input(cli *c, const char *path);
/* The same of a data set's name: a CSV file, images:DIR or images:F.npy. */
int cli_input_data(cli *c, const char *what);
/* A file that will be written; only where this process writes (cli_writes). */
int cli_output(cli *c, const char *path);
/* The same of a folder, which is made where it is not there. */
int cli_output_folder(cli *c, const char *path);

/* Has all that was printed arrived? 0, or EXIT_FAILED after one line (once): then there is no sense
 * in going on. */
int cli_printed(cli *c);
/* Standard output is closed and the command would print: refused before it begins. */
int cli_check_stdout(cli *c);

#endif
