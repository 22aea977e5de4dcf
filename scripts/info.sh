#!/usr/bin/env bash
# info.sh CONFIG VERSION BUILD ISAS CUDA: what make info prints: the parts that were found, and
# what a build without each of them cannot do.
set -u
config=$1
value() { sed -n "s/^$1 := //p" "$config" | head -n 1; }

printf 'mnp %s, build folder %s, detected for "%s"\n' "$2" "$3" "$(value DETECTED_FOR)"
printf '%s\n' "$(uname -srm), $(nproc 2>/dev/null || echo '?') processors"
printf 'CPU kernels compiled in: %s (the best one is chosen at run time)\n\n' "$4"

row() { # NAME KEY "what it gives" "what is lost"
    if [ -n "$(value "HAVE_$2")" ]; then
        printf '  %-10s %-5s %s\n' "$1" yes "$3"
    else
        printf '  %-10s %-5s %s\n' "$1" no "$4"
    fi
}
row CBLAS CBLAS "$(value CBLAS_LIBS): measured beside our own dense products by mnp bench" \
    "mnp bench measures our own dense products alone; nothing else is lost"
row LAPACK LAPACK "$(value LAPACK_LIBS): Cholesky factors from 256 rows (Gaussian processes)" \
    "large Gaussian processes use our own, slower Cholesky"
row cairo CAIRO "PNG and PDF pictures" "pictures are written as SVG only"
row CUDA NVCC "$(value NVCC)" "no NVIDIA GPU backend; the CPU backend does everything"
row NCCL NCCL "$(value NCCL_LIBS)" "GPUs of several ranks do not share training steps"
row MPI MPI "$(value MPI_LIBS): mpirun -n R mnp train, eval, gen, repro" \
    "no runs over several processes or machines (mpirun)"
if [ -n "$(value HAVE_NVCC)" ] && [ "${5:-}" != 1 ]; then
    printf '\nThe CUDA backend is left out of this build.\n'
fi
