#!/usr/bin/env bash
# lint.sh: every check that needs no test to run. The build before it already refused warnings.
# A tool that is not installed is named and passed over; in CI (CI=true) its absence is an error.
set -u
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build}
jobs=$(nproc 2>/dev/null || echo 1)
mapfile -t files < <(scripts/c_files.sh)
mapfile -t shell < <(find scripts tests lab bench .ci -name '*.sh' -o -path '.ci/run')
failed=0

check() { # "what" command...
    local what=$1 start=$SECONDS
    shift
    if output=$("$@" 2>&1); then
        printf 'ok   %s (%d s)\n' "$what" $((SECONDS - start))
    else
        printf 'FAIL %s\n%s\n' "$what" "$(sed 's/^/     | /' <<<"$output" | head -n 100)"
        failed=1
    fi
}
tool() { # is it here? Its absence is told.
    command -v "$1" >/dev/null 2>&1 && return 0
    echo "skip $1 is not installed"
    [ "${CI:-}" = true ] && failed=1
    return 1
}

# The functions below are called through check.
# shellcheck disable=SC2317
tidy() {
    local flags=(-std=c17 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Iinclude -Isrc -I.)
    read -ra mpi <<<"$(mpicc --showme:compile 2>/dev/null)"
    flags+=("${mpi[@]}")
    # nccl.h itself does not pass, and neither object is built everywhere
    local apart='^src/comm/nccl/'
    [ ${#mpi[@]} -gt 0 ] || apart='^src/comm/(nccl|mpi)/'
    printf '%s\0' "${files[@]}" | grep -zE '^(src|util|serve|cli|lab|bench)/.*\.c$' | grep -zvE "$apart" |
        xargs -0 -I{} -P "$jobs" clang-tidy --quiet --warnings-as-errors='*' {} -- "${flags[@]}" 2>/dev/null
}
# shellcheck disable=SC2317
big_files() {
    ! git ls-files -z 2>/dev/null | xargs -0 -r stat -c '%s %n' 2>/dev/null |
        awk '$1 > 5 * 1024 * 1024 && $2 !~ /^models\// {print $2 " has " $1 " bytes"}' | grep .
}
# shellcheck disable=SC2317
leftovers() { ! git grep -nE '^(<<<<<<<|>>>>>>>) '; }
long_things() { # names what has grown; fails nothing
    wc -l "${files[@]}" | awk '$2 != "total" && $1 > 500 {print "note " $2 " has " $1 " lines"}'
    awk 'FNR == 1 { name = "" }
        /^[A-Za-z_].*\) \{$/ || (/^ .*\) \{$/ && name == "" && head != "") {
            name = $0; sub(/\(.*/, "", name); if (name ~ /^ /) name = head
            sub(/.*[ *]/, "", name); start = FNR }
        /^[A-Za-z_].*\(/ { head = $0; sub(/\(.*/, "", head) }
        /^\}/ { if (name != "" && FNR - start > 60)
                    print "note " FILENAME ":" start ": " name " has " FNR - start " lines"
                name = ""; head = "" }' "${files[@]}"
}

tool clang-format && check "format" clang-format --dry-run -Werror "${files[@]}"
check "nothing left of a merge" leftovers
check "include direction" scripts/check_includes.sh
check "library rules" scripts/check_library.sh
check "prose and links" scripts/check_prose.sh
check "file sizes" big_files
check "shipped models" lab/training/check_models.sh
tool shellcheck && check "shell scripts" shellcheck -x -S warning "${shell[@]}"
tool clang-tidy && check "clang-tidy" tidy
long_things
exit $failed
