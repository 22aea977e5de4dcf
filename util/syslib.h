/* syslib.h: libraries of the system that are used where they are installed and loaded when first
 * wanted, so that the command and libmnp.so start without them and one build serves every machine.
 * Neither headers nor development files are needed: a .def file per library names the files it may
 * be found in and declares the few functions that are used,
 *
 *     LIBRARY("libcairo.so.2")
 *     FUNCTION(void, arc, (cairo_context *, double x, double y, double r, double from, double to))
 *
 * and whoever includes it makes of that a struct of function pointers and a list of words:
 *
 *     static const syslib_word words[] = {
 *     #define LIBRARY(file)                SYSLIB_FILE(file)
 *     #define FUNCTION(result, name, args) SYSLIB_NAME("cairo_" #name)
 *     #include "plot/cairo.def"
 *         {0}};
 *
 * Names without a folder go through the system's own search: never the current folder. */
#ifndef MNP_UTIL_SYSLIB_H
#define MNP_UTIL_SYSLIB_H

#include <stdbool.h>

enum { SYSLIB_WHY = 256 };

/* A file or a function; neither at the end of a list. */
typedef struct syslib_word {
    const char *file, *name;
} syslib_word;
#define SYSLIB_FILE(file) {file, 0},
#define SYSLIB_NAME(name) {0, name},

/* Fills `table`, a struct of function pointers, with all functions of the list from the first of
 * its files that has them. The library stays loaded until the process ends, and asking again is
 * quick: the dynamic loader remembers, so nothing is kept here. Any thread may ask. false: none has
 * them, and `why` (may be NULL) says what became of the last one tried. */
bool syslib_load(const syslib_word *words, void *table, char why[SYSLIB_WHY]);

#endif
