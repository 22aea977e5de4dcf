#!/usr/bin/env bash
# count_step.sh MNP [MNP...]: instructions of the forward and reverse passes of three training steps
# and a validation (preset tiny, 4 functions of 128 points, one thread) for each command given, and
# the ratio to the first. Counted by valgrind, which has no AVX-512: the AVX2 kernels run. What is
# done by the clock (progress, saving) is not counted, so the same build gives the same number.
set -eu
[ $# -gt 0 ] || { echo "usage: $0 MNP [MNP...]" >&2 && exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

first=
for mnp in "$@"; do
    count=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=interp_run "$mnp" \
        train --data rbf --preset tiny --functions 8 --batch 4 --steps 3 --set valid_every=1000 \
        --set valid_functions=1 --threads 1 --seed 1 --quiet --out "$dir/m" 2>&1 |
        sed -n 's/.*Collected : *//p')
    first=${first:-$count}
    awk -v n="$count" -v f="$first" -v m="$mnp" 'BEGIN { printf "%12d instructions, %.4f  %s\n", n, n / f, m }'
done
