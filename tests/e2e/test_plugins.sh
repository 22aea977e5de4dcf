#!/usr/bin/env bash
# test_plugins.sh: where objects that are loaded on demand come from: the folder of the command or
# of libmnp.so, and lib beside bin. One that somebody planted elsewhere never runs; links and
# relative names change nothing. A planted object writes down its path when it runs.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
cc=${CC:-cc}
here=$PWD
cd -P "$TEST_TMP" || exit 1
TEST_TMP=$PWD
export RAN=$TEST_TMP/ran

cat >planted.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void ran(void) {
    static const char here;
    Dl_info info;
    FILE *f = fopen(getenv("RAN"), "w");
    if (f && dladdr(&here, &info)) fputs(info.dli_fname, f);
    if (f) fclose(f);
}
C
# A program with the shared library, which changes its folder before it asks for an object.
cat >joins.c <<'C'
#include <mnp_job.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    mnp_ctx *ctx = NULL;
    mnp_job_opts job = {.size = sizeof job};
    if (argc < 2 || mnp_ctx_create(NULL, &ctx) != MNP_OK || chdir(argv[1]) != 0) return 3;
    mnp_status status = mnp_job_join(ctx, &job);
    puts(mnp_last_error(ctx));
    mnp_ctx_destroy(ctx);
    return status == MNP_EUNSUPPORTED ? 0 : 1;
}
C
# shellcheck disable=SC2086 # CC may carry flags
if ! $cc -shared -fPIC planted.c -o planted.so -ldl; then
    skip plug-ins "no working compiler"
    check_done
    exit
fi

plant() { for folder in "$@"; do for part in cuda mpi; do cp planted.so "$folder/libmnp_$part.so"; done; done; }
asks() { # COMMAND...: a training step on a GPU, which there is not
    rm -f "$RAN"
    "$@" train --data rbf --functions 10 --preset tiny --steps 1 --device cuda --quiet --out m 2>err.txt && return 1
    cat err.txt
}
refused() { asks "$@" && [ ! -e "$RAN" ] && grep -q "there is no libmnp_cuda.so in " err.txt; }
taken() { # FOLDER COMMAND...: the object of that folder
    local from=$TEST_TMP/$1
    shift
    asks "$@" && [ "$(cat "$RAN")" = "$from/libmnp_cuda.so" ] &&
        grep -q "libmnp_cuda.so belongs to another version" err.txt
}
in_folder() { (cd "$1" && shift && "$@"); }

# Planted one and two folders above, in lib beside a folder that is no bin, and in the current one.
mkdir -p up/two/own up/two/lib cwd links tree/bin tree/lib
cp "$MNP" up/two/own/mnp
plant . up up/two up/two/lib cwd
run "not from the folders above" refused "$PWD/up/two/own/mnp"
run "not from the current folder" in_folder cwd refused "$PWD/up/two/own/mnp"
run "not from the current folder, by a relative name" in_folder up/two refused own/mnp
run "not from a folder named in argv[0]" in_folder cwd refused bash -c \
    "exec -a '$PWD/cwd/mnp' '$PWD/up/two/own/mnp' \"\$@\"" bash
ln -s "$PWD/up/two/own/mnp" links/mnp
plant links
run "not from the folder of a link" in_folder links refused ./mnp
run "not from the folder of a link in PATH" in_folder cwd env PATH="$PWD/links:$PATH" bash -c \
    "$(declare -f asks refused); refused mnp"

plant up/two/own
rm -f links/libmnp_*
run "from the own folder" taken up/two/own "$PWD/up/two/own/mnp"
run "from the own folder, through a link" in_folder cwd taken up/two/own "$PWD/links/mnp"
run "from the own folder, by a relative name" in_folder up taken up/two/own two/own/mnp

cp "$MNP" tree/bin/mnp
ln -s ../tree/bin/mnp links/installed
run "not from elsewhere when in bin" refused tree/bin/mnp
plant tree/lib
run "from lib beside bin" taken tree/lib tree/bin/mnp
run "from lib beside bin, through a link" in_folder cwd taken tree/lib ../links/installed

# libmnp.so itself, found by a relative path before the program went elsewhere
# shellcheck disable=SC2086 # CC may carry flags
$cc -I"$here/include" joins.c -o joins -L"$BUILD" -lmnp || exit 1
mkdir -p shared
cp "$BUILD/libmnp.so" shared/libmnp.so.0
shared() { # WHERE: the program's error text, asked for in folder WHERE
    rm -f "$RAN"
    LD_LIBRARY_PATH=shared ./joins "$1" >out.txt && cat out.txt
}
shared_refused() { shared "$1" && [ ! -e "$RAN" ] && grep -q "there is no libmnp_mpi.so in $PWD/shared" out.txt; }
shared_taken() {
    shared "$1" && [ "$(cat "$RAN")" = "$PWD/shared/libmnp_mpi.so" ] &&
        grep -q "libmnp_mpi.so belongs to another version" out.txt
}
mkdir -p cwd/shared && cp shared/libmnp.so.0 cwd/shared && plant cwd/shared
run "libmnp.so: not from the current folder" shared_refused cwd
plant shared
rm -f cwd/shared/libmnp_*
run "libmnp.so: from its own folder" shared_taken cwd

check_done
