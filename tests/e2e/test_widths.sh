#!/usr/bin/env bash
# test_widths.sh: the widths of the fused parts (src/backend/cuda/paper/widths.h): one that is changed does not compile
# anywhere that its old number stands, host and kernels, so nobody forgets a place.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
tmp=${TEST_TMP:-$(mktemp -d)}
CC=${CC:-cc} CXX=${CXX:-c++}
cuda=src/backend/cuda
if [ "$(uname -m)" != x86_64 ] || ! command -v "$CXX" >/dev/null; then
    skip "widths of the parts" "kernels compile with a C++ compiler on x86-64"
    check_done
    exit
fi
mkdir -p "$tmp/$cuda/paper"

# Files that do not compile when `from` becomes `to`.
broken() { # FROM TO
    sed "s/$1/$2/" $cuda/paper/widths.h >"$tmp/$cuda/paper/widths.h"
    ! cmp -s $cuda/paper/widths.h "$tmp/$cuda/paper/widths.h" || [ "$1" = "$2" ] || return 1
    {
        "$CXX" -std=c++17 -w -I"$tmp/src" -Itests/emulator -Iinclude -Isrc -I. -include cuda_runtime.h -fsyntax-only \
            -x c++ $cuda/kernels/functions.cu
        for file in $cuda/fuse/{patterns,fp16_weights,saved_rows}.c; do
            "$CC" -std=c17 -w -I"$tmp/src" -Iinclude -Isrc -I. -D_POSIX_C_SOURCE=200809L -fsyntax-only "$file"
        done
    } 2>&1 | grep 'error:' | sed "s|.*$cuda/\([^:]*\):.*|\1|" | sort -u | tr '\n' ' '
}
as_they_are() { [ -z "$(broken 64 64)" ]; }
run "the widths as they are compile" as_they_are

host='fuse/fp16_weights.c fuse/patterns.c fuse/saved_rows.c'
ends_at() { # WIDTH = NUMBER, ANOTHER NUMBER, FILES OF KERNELS [AND OF THE HOST]
    local found file
    found=" $(broken "$1" "${1% *} $2")"
    for file in $3 ${4-$host}; do
        [[ $found == *" $file "* ]] || return 1
    done
}
flow='paper/flow/forward.cuh paper/flow/forward16.cuh paper/flow/grad.cuh paper/flow/grad16.cuh'
set='paper/set/smem.cuh paper/set/grad_smem.cuh'
first='paper/first/forward.cuh paper/first/forward16.cuh paper/first/grad.cuh'
latent='paper/latent/forward.cuh paper/latent/grad.cuh'
run "another number of frequencies" ends_at "FUSED_WAVES = 80" 64 "$flow $first"
run "another width of the encoder" ends_at "FUSED_ENC_WIDTH = 64" 96 "$set $first"
run "other heads" ends_at "FUSED_HEADS = 4" 8 "$set"
run "another width of summaries" ends_at "FUSED_D_R = 64" 128 "$latent"
run "another width of latents" ends_at "FUSED_D_Z = 128" 64 "$latent"
run "another width of the latents' networks" ends_at "FUSED_HEAD_HIDDEN = 64" 128 "$latent"
run "another width of the conditioner" ends_at "FUSED_FLOW_HIDDEN = 128" 256 "$flow"
run "other bins" ends_at "FUSED_BINS = 10" 8 "$flow" fuse/patterns.c
check_done
