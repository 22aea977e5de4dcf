#!/usr/bin/env bash
# coverage.sh BUILD: the line coverage of src/, CUDA apart, after the tests ran in a build with
# COVERAGE=1. gcovr lists every file; without it gcov's own counts are summed.
set -eu
cd "$(dirname "$0")/.."
build=$1
if command -v gcovr >/dev/null 2>&1; then
    gcovr --root . --object-directory "$build" --filter 'src/' --exclude 'src/backend/cuda/' \
        --exclude-unreachable-branches --print-summary -j "$(nproc)" "$build" 2>/dev/null |
        sed '/^branches:/d; /^functions:/d'
    exit 0
fi
# The kernels are compiled once per instruction set: of several counts of a file the best is taken.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
find "$PWD/$build/obj" -name '*.gcda' | while read -r data; do
    (cd "$dir" && gcov -n "$data" 2>/dev/null)
done | awk -F"'" '
    /^File/ { file = $2 }
    /^Lines executed/ && file ~ /(^|\/)src\// && file !~ /backend\/cuda/ {
        split($0, part, /[:% ]+/); percent = part[3]; lines = part[5]
        if (!(file in best) || percent > best[file]) best[file] = percent
        count[file] = lines; file = "" }
    END { for (f in best) { all += count[f]; hit += best[f] * count[f] / 100 }
          printf "lines: %.1f%% (%d out of %d)\n", all ? 100 * hit / all : 0, hit, all }'
