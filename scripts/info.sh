#!/usr/bin/env bash
# info.sh CONFIG VERSION BUILD ISAS CUDA CUDA_ALL: what make info prints: the parts the build found, the
# libraries a run would load now, and what is lost without each of them. Reads CC and PORTABLE.
set -u
cd "$(dirname "$0")/.." || exit 1
config=$1
value() { sed -n "s/^$1 := //p" "$config" | head -n 1; }

printf 'mnp %s, build folder %s, detected for "%s"\n' "$2" "$3" "$(value DETECTED_FOR)"
printf '%s\n' "$(uname -srm), $(nproc 2>/dev/null || echo '?') processors"
printf 'CPU kernels compiled in: %s (the best one is chosen at run time)\n\n' "$4"

row() { # NAME FOUND "what it gives" "what is lost"
    if [ -n "$2" ]; then
        printf '  %-10s %-5s %s\n' "$1" yes "$3"
    else
        printf '  %-10s %-5s %s\n' "$1" no "$4"
    fi
}

# Loaded when first wanted: asked of the system's own search, as the library does.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo '#include <dlfcn.h>
int main(int argc, char **argv) { return !(argc == 2 && dlopen(argv[1], RTLD_NOW)); }' >"$dir/probe.c"
# shellcheck disable=SC2086 # CC may carry flags
${CC:-cc} "$dir/probe.c" -o "$dir/probe" -ldl 2>/dev/null
loads() { # FILE.def: the first of its libraries that can be loaded
    local file
    [ "${PORTABLE:-0}" != 1 ] || return
    for file in $(sed -n 's/^LIBRARY("\(.*\)").*/\1/p' "$1"); do
        "$dir/probe" "$file" && echo "$file" && return
    done
}
echo "Loaded at run time, where installed:"
cairo=$(loads src/plot/cairo.def) lapack=$(loads src/base/lapack.def) blas=$(loads src/backend/cpu/blas.def)
microhttpd=$(loads serve/microhttpd.def)
row cairo "$cairo" "$cairo: PNG and PDF pictures" "pictures are written as SVG only (libcairo2)"
row LAPACK "$lapack" "$lapack: matrices from 256 rows (Gaussian processes)" \
    "large Gaussian processes use our own, slower Cholesky (libopenblas0)"
row BLAS "$blas" "$blas: measured beside our own dense products by mnp bench" \
    "mnp bench measures our own dense products alone; nothing else is lost (libopenblas0)"
row microhttpd "$microhttpd" "$microhttpd: mnp serve" "there is no mnp serve (libmicrohttpd12)"

echo "Built as objects of their own, where found:"
gpus="9.0, and 8.0 or later through the driver's compiler"
[ "${6:-}" = 1 ] && gpus="8.0 or later"
row CUDA "$(value HAVE_NVCC)" "$(value NVCC): GPUs of compute capability $gpus" "no NVIDIA GPU backend; the CPU backend does everything"
row NCCL "$(value HAVE_NCCL)" "$(value NCCL_LIBS)" "GPUs of several ranks do not share training steps"
row MPI "$(value HAVE_MPI)" "$(value MPI_LIBS): mpirun -n R mnp train, eval, gen, repro" \
    "no runs over several processes or machines (mpirun)"
if [ -n "$(value HAVE_NVCC)" ] && [ "${5:-}" != 1 ]; then
    printf '\nThe CUDA backend is left out of this build.\n'
fi
exit 0
