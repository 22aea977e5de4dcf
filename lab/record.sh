#!/usr/bin/env bash
# record.sh: runs the whole bench and keeps it in lab/results/cpu-<processor>.txt, with the commit,
# the machine and the date. Extra arguments go to mnp bench.
set -euo pipefail
cd "$(dirname "$0")/.."
MNP=${MNP:-build/mnp} PREFIX=${PREFIX:-}
model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
family=$(sed -n 's/^cpu family[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
number=$(sed -n 's/^model[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
name=$(echo "$model $family-$number" | tr -cs 'A-Za-z0-9\n-' '-' | tr '[:upper:]' '[:lower:]')
export OPENBLAS_NUM_THREADS=1 # the products are compared on one thread
file=lab/results/cpu-$name.txt
mkdir -p lab/results
{
    echo "commit   $(git describe --always --dirty --exclude '*')"
    echo "date     $(date -u +%Y-%m-%d)"
    echo "machine  $model, family $family model $number, $(nproc) cores, $(uname -sm)"
    echo "compiler $(${CC:-cc} --version | head -n 1)"
    echo "load     $(cut -d' ' -f1-3 /proc/loadavg) before the run; mnp bench $*"
    echo
    # shellcheck disable=SC2086
    $PREFIX "$MNP" bench "$@"
} | tee "$file.tmp"
mv "$file.tmp" "$file"
echo "kept in $file"
