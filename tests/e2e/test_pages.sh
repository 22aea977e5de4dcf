#!/usr/bin/env bash
# test_pages.sh: what the pages for users show works. Shell blocks (```sh) of a page run one after the
# other in a folder of their own, with the command on the PATH and examples/ and models/ at hand. C blocks
# that begin with the name of a file are compiled against the public headers and run. A comment before a
# block changes it for the test: <!-- test: skip -->, or a sed script: <!-- test: s/--steps 2000/--steps 60/ -->.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
top=$PWD
tmp=${TEST_TMP:-$(mktemp -d)}
BUILD=${BUILD:-$PWD/build}
MNP=${MNP:-$BUILD/mnp}
PATH=$(dirname "$MNP"):$PATH
compile=$(cut -d'|' -f2 "$BUILD/flags")
link=$(cut -d'|' -f4 "$BUILD/flags")

blocks() { # LANGUAGE PAGE DIR: its blocks as DIR/1, DIR/2, ..., changed as their comments say
    awk -v language="$1" -v dir="$3" '
        /^<!-- test: / { edit = $0; sub(/^<!-- test: /, "", edit); sub(/ -->$/, "", edit); next }
        $0 == "```" language && edit == "skip" { edit = ""; next }
        $0 == "```" language { file = dir "/" ++count; printf "" > file; print edit > (file ".sed"); edit = ""; next }
        /^```/ { if (file) { close(file); close(file ".sed") } file = ""; next }
        file { print > file }
        NF { edit = "" }' "$2"
    local block
    for block in "$3"/*.sed; do [ ! -e "$block" ] || sed -i -e "$(cat "$block")" "${block%.sed}"; done
    rm -f "$3"/*.sed
}
commands() { # PAGE DIR NUMBER: one block of it
    cd "$2" && bash -euo pipefail "blocks/$3"
}
page() { # PAGE: every block is a test, and there must be one
    local dir block
    dir=$tmp/$(basename "$1" .md)
    rm -rf "$dir/blocks" && mkdir -p "$dir/blocks"
    [ -e "$dir/examples" ] || ln -s "$top/examples" "$top/models" "$dir"
    blocks sh "$1" "$dir/blocks"
    run "$1 has commands" test -e "$dir/blocks/1"
    for ((block = 1; ; block++)); do
        [ -e "$dir/blocks/$block" ] || break
        if grep -q python3 "$dir/blocks/$block" && ! command -v python3 >/dev/null; then
            skip "$1: $(head -n 1 "$dir/blocks/$block" | cut -c 1-60)" "python3 is not installed"
            continue
        fi
        run "$1: $(head -n 1 "$dir/blocks/$block" | cut -c 1-60)" commands "$1" "$dir" "$block"
    done
}
program() { # DIR NUMBER: compiled, linked and run with a model of curves and one of images
    local dir=$1 name
    name=$(sed -n '1s:^/\* \([a-z_]*\)\.c.*:\1:p' "$dir/$2")
    [ -n "$name" ] || return 1
    cp "$dir/$2" "$dir/$name.c"
    # shellcheck disable=SC2086
    (cd "$top" && $compile "$dir/$name.c" "$BUILD/libmnp.a" $link -o "$dir/$name") &&
        (cd "$dir" && "./$name" "$top/models/mnp-monotonic.safetensors" "$top/models/geofluvial.safetensors")
}
programs() { # PAGE
    local dir block
    dir=$tmp/$(basename "$1" .md)-c
    mkdir -p "$dir"
    blocks c "$1" "$dir"
    run "$1 has programs" test -e "$dir/1"
    for ((block = 1; ; block++)); do
        [ -e "$dir/$block" ] || break
        run "$1: $(head -n 1 "$dir/$block" | cut -c 1-60)" program "$dir" "$block"
    done
}
forecast() { # the tutorial's result: 61 days of 3 plants, quantiles in order, a picture
    cd "$tmp/tutorial/out/tutorial" && [ "$(wc -l <forecast.csv)" = 184 ] &&
        awk -F, 'NR > 1 && !($5 <= $6 && $6 <= $7 && $7 <= $8 && $8 <= $9) { bad = 1 } END { exit bad }' forecast.csv &&
        grep -q '</svg>' forecast.svg
}
scores() { # README's scores are those that the model files carry, to three digits
    local family
    for family in rbf matern periodic monotonic convex sde; do
        { "$MNP" info "models/mnp-$family.safetensors" && grep "^| \`$family\` | [0-9]" README.md; } |
            awk -v family="$family" 'function off(a, b) { return a - b > 0.00056 || b - a > 0.00056 }
                $1 == "score.authors" { all = $2 } $1 == "score.strict" { new = $2 } /^\|/ { split($0, c, "|") }
                END { if (!all || off(all, c[3]) || off(new, c[7])) { print family, all, new, c[3], c[7]; exit 1 } }' || return 1
    done
}
caught() { # a block that fails is a failed test
    mkdir -p "$tmp/bad/blocks"
    printf '%s\n' 'text' '```sh' 'false' 'true' '```' '<!-- test: skip -->' '```sh' 'false' '```' >"$tmp/bad.md"
    blocks sh "$tmp/bad.md" "$tmp/bad/blocks"
    [ "$(echo "$tmp"/bad/blocks/*)" = "$tmp/bad/blocks/1" ] && ! (commands "$tmp/bad.md" "$tmp/bad" 1)
}

simulated() { # the truth in the page on simulators is what the simulator's runs give
    local days
    days=$(awk -v runs=100000 -v given="$tmp/simulator/out/sim/early.csv" -v peak=20 -v at=25,30,45,60 -f examples/epidemics.awk |
        awk '/probability/ { event = substr(sprintf("%.2f", $8), 2) }
            /^day/ { sub(/,/, "", $4); row = row sprintf(" %.1f ± %.1f |", $4, $6) } END { print "| truth |" row " " event " |" }')
    grep -qF "$days" docs/user/simulator.md || { echo "$days" && return 1; }
}

run "a block that fails is seen" caught
for file in docs/user/tutorial.md docs/user/simulator.md docs/user/fit.md docs/user/models.md docs/user/data.md docs/user/plots.md docs/user/faq.md docs/user/maps.md docs/user/bandits.md README.md; do
    page "$file"
done
run "the tutorial's forecast" forecast
run "README's scores" scores
run "the simulator's truth" simulated
programs docs/user/c-api.md
check_done
