/* object.h: shared objects of this project that are loaded on demand, so that nothing else needs
 * what they need (a GPU's runtime, an MPI). They are code that runs with all rights of the process,
 * so they are looked for where whoever installed this code put them and nowhere else: in the folder
 * of the file this code is in (libmnp.so, the command, or a program with libmnp.a), in lib beside a
 * command's bin, and in the library folder of the installation (PREFIX/lib, fixed when this file is
 * compiled). Never in the current folder, in folders above, or by the system's search. */
#ifndef MNP_BASE_OBJECT_H
#define MNP_BASE_OBJECT_H

#include "util/env.h"

/* The function `symbol` of the object `file`; it stays loaded until the process ends.
 * MNP_EUNSUPPORTED says what was tried; `remedy` ends the text where no such file is there. */
typedef void (*object_fn)(void);
mnp_status object_load(env *e, const char *file, const char *symbol, const char *remedy,
                       object_fn *out);

/* The path of the file this code is in, absolute and without links: the command, libmnp.so, or a
 * program that links libmnp.a. false: not to be known (there is no /proc). */
bool object_own_path(char *out, size_t size);

#endif
