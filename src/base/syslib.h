/* syslib.h: libraries of the system that are used where they are installed and loaded when first
 * wanted, so that the command and libmnp.so start without them and one build serves every machine.
 * Neither headers nor development files are needed: a .def file per library names the files it may
 * be found in and declares the few functions that are used,
 *
 *     LIBRARY("libcairo.so.2")
 *     FUNCTION(void, arc, (cairo_context *, double x, double y, double r, double from, double to))
 *
 * and whoever includes it makes of that a struct of function pointers and the two lists below.
 * Names without a folder go through the system's own search: never the current folder. */
#ifndef MNP_BASE_SYSLIB_H
#define MNP_BASE_SYSLIB_H

#include <stdbool.h>

enum { SYSLIB_WHY = 256 };

/* Fills `table`, a struct of function pointers, with the functions `names` of the first of `files`
 * that has them all; both lists end with NULL. The library stays loaded until the process ends, and
 * asking again is quick: the dynamic loader remembers, so nothing is kept here. Any thread may ask.
 * false: none has them, and `why` (may be NULL) says what became of the last one tried. */
bool syslib_load(const char *const *files, const char *const *names, void *table,
                 char why[SYSLIB_WHY]);

#endif
