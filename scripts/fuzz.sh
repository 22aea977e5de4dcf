#!/usr/bin/env bash
# fuzz.sh: every target of tests/fuzz under libFuzzer with the address and undefined sanitizers,
# FUZZ_SECONDS each; with T=word those that have the word in their name. An input that takes 10 s or
# 1 GB (sanitizers included) is a find too. Finds are kept in build-fuzz/finds, the grown corpus in
# build-fuzz/corpus.
set -eu
cd "$(dirname "$0")/.."
command -v clang >/dev/null 2>&1 || { echo "make fuzz needs clang" && exit 1; }
${MAKE:-make} CC=clang BUILD=build-fuzz SAN=address,undefined,fuzzer-no-link fuzzers

status=0
for program in build-fuzz/tests/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    name=${program##*/fuzz_}
    [[ $name == *"${T:-}"* ]] || continue
    mkdir -p "build-fuzz/corpus/$name" build-fuzz/finds
    folders=("build-fuzz/corpus/$name")
    [ -d "tests/fuzz/corpus/$name" ] && folders+=("tests/fuzz/corpus/$name")
    echo "== $name, ${FUZZ_SECONDS:-60} s"
    "$program" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 -max_len=32768 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/finds/$name-" "${folders[@]}" || status=1
done
[ $status = 0 ] && echo "no finds" || echo "finds are in build-fuzz/finds"
exit $status
