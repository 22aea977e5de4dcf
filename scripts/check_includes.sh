#!/usr/bin/env bash
# check_includes.sh: dependencies point down only. Each folder of src/ may include itself and the
# folders named here; standard headers, the public headers and util/ are free to all. util/ knows nothing
# but itself and mnp.h; serve/, cli/ and lab/ are programs like any other: public headers, util/, themselves,
# and what lies below them in this order.
set -u
cd "$(dirname "$0")/.." || exit 1

declare -A below=(
    [base]=""
    [graph]="base"
    [op]="graph base"
    [nn]="op graph base"
    [model]="nn op graph base"
    [comm]="base"
    [data]="comm base"
    [plot]="base"
    [backend]="op graph comm base"
    [run]="model nn op graph data plot backend comm base"
    [fit]="run model nn op graph data plot backend comm base"
    [bandit]="run model nn op graph data plot backend comm base"
    [api]="bandit fit run model nn op graph data plot backend comm base"
)

bad=0
complain() {
    echo "$1"
    bad=1
}
while IFS=: read -r file line text; do
    path=${text#*\"}
    path=${path%%\"*}
    folder=${file#src/}
    folder=${folder%%/*}
    target=${path%%/*}
    [ -n "${below[$folder]+known}" ] || complain "$file:$line: src/$folder is not a known folder"
    [[ $path == mnp*.h || $path == util/* ]] && continue
    [[ $path != ../* ]] && [ -e "$(dirname "$file")/$path" ] && continue # a neighbour
    if [ ! -e "src/$path" ] || [[ $path == *..* ]]; then
        complain "$file:$line: \"$path\" is not written from src/ (as in \"util/env.h\")"
    elif [[ " $folder ${below[$folder]-} " != *" $target "* ]]; then
        complain "$file:$line: $folder may not include $target (\"$path\")"
    fi
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' src --include='*.[ch]' --include='*.cu' \
    --include='*.cuh')

# NAME_internal.h is what the files of one subject share: its own folder includes it, and tests and bench.
while IFS=: read -r file line text; do
    path=${text#*\"}
    path=${path%%\"*}
    folder=$(dirname "$path")
    [[ $(dirname "$file") == "src/$folder" || $(dirname "$file") == "$folder" ]] || complain "$file:$line: \"$path\" belongs to its own folder"
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*".*_internal\.h"' src serve cli lab util include examples)

while IFS=: read -r file line text; do
    [[ $text == *'"util/'* || $text == *'"mnp.h"'* ]] || complain "$file:$line: util/ includes only itself: $text"
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' util)

while IFS=: read -r file line text; do
    path=${text#*\"}
    path=${path%%\"*}
    [[ $path == mnp*.h || $path == util/* || $path == serve/* ]] && continue
    [[ $file != serve/* ]] && [[ $path == cli/* || $path == lab/* ]] && continue
    [[ $file == cli/cmd_bench.c && $path == bench/* ]] && continue
    complain "$file:$line: serve/, cli/ and lab/ include public headers, util/ and themselves, not \"$path\""
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' serve cli lab --include='*.[ch]')

# A public header includes nothing of ours but the core, examples nothing but public headers.
while IFS=: read -r file line text; do
    [[ $text == *'"mnp.h"'* ]] || complain "$file:$line: only the public headers: $text"
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' include examples --include='*.[ch]' 2>/dev/null)
exit $bad
