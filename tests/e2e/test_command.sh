#!/usr/bin/env bash
# test_command.sh: the command is a program like any other. Of what libmnp.a holds, the objects of cli/ and
# lab/ use the public functions and util/ alone, whatever they declare themselves; cmd_bench.c calls bench/,
# which measures the inside. And scripts/check_includes.sh finds a private header.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
build=${BUILD:-build}

if ! command -v nm >/dev/null; then
    skip "the command's symbols" "there is no nm"
    check_done
    exit
fi

# The objects of this build: a folder may hold those of files that are gone.
tr ' ' '\n' <"$build/objects" >"$TEST_TMP/objects"
# shellcheck disable=SC2046 # a list
nm -g --defined-only $(grep '/obj/util/' "$TEST_TMP/objects") 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u >"$TEST_TMP/util"
nm -D --defined-only "$build/libmnp.so" | awk '{print $3}' | sort -u >"$TEST_TMP/public"
nm -g --defined-only "$build/libmnp.a" 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u |
    comm -23 - <(sort -u "$TEST_TMP/util" "$TEST_TMP/public") >"$TEST_TMP/private"

uses_private() { # OBJECT...: "object symbol" of every private function it uses
    nm -A -u "$@" | sed -E 's/^([^:]*):.* U ([^@]*).*$/\1 \2/' |
        awk 'NR == FNR {private[$1]; next} $2 in private' "$TEST_TMP/private" -
}
clean() {
    local found
    [ -s "$TEST_TMP/private" ] && [ -s "$TEST_TMP/util" ] && [ -s "$TEST_TMP/public" ] || return 1
    # shellcheck disable=SC2046 # a list
    found=$(uses_private $(grep -E '/obj/(cli|serve|lab)/' "$TEST_TMP/objects"))
    [ -z "$found" ] || { echo "$found" && return 1; }
}
# bench/ looks inside: were it checked, it would be found
finds() {
    # shellcheck disable=SC2046
    uses_private $(grep '/obj/bench/' "$TEST_TMP/objects") | grep -q ' cpu_kernels_best$'
}
# A copy of the tree's program sources with one line more.
refuses() { # FILE HEADER
    local tree=$TEST_TMP/tree
    rm -rf "$tree" && mkdir -p "$tree" && cp -r scripts include src util serve cli lab "$tree/" || return 1
    echo "#include \"$2\"" >>"$tree/$1"
    bash "$tree/scripts/check_includes.sh" >"$tree/said" && return 1
    cat "$tree/said"
    grep -q "^$1:.*$2" "$tree/said" && [ "$(wc -l <"$tree/said")" = 1 ]
}
run "the command uses public functions" clean
run "a private function would be found" finds
run "a private header in cli/ is refused" refuses cli/main.c run/train.h
run "a private header in serve/ is refused" refuses serve/service.c run/train.h
run "a private header in lab/ is refused" refuses "$(find lab -name '*.c' | head -n 1)" base/rng.h
run "bench/ is for cmd_bench.c alone" refuses cli/cmd_info.c bench/peak.h
check_done
