/* object.h: shared objects of this project that are loaded on demand, so that nothing else needs
 * what they need (a GPU's runtime, an MPI). An object is looked for beside the file this code is in
 * (the command, or libmnp.so), in the library folder that goes with it, and in the build folder
 * above (for tests); last by the system's own search. */
#ifndef MNP_BASE_OBJECT_H
#define MNP_BASE_OBJECT_H

#include "base/env.h"

/* The function `symbol` of the object `file`; it stays loaded until the process ends.
 * MNP_EUNSUPPORTED says what was tried; `remedy` ends the text where no such file is there. */
typedef void (*object_fn)(void);
mnp_status object_load(env *e, const char *file, const char *symbol, const char *remedy,
                       object_fn *out);

/* The path of the file this code is in: the command, or libmnp.so. false: not to be known. */
bool object_own_path(char *out, size_t size);

#endif
