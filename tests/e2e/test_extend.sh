#!/usr/bin/env bash
# test_extend.sh: the examples of docs/dev/extend.md, taken out of the page, compiled with the flags of
# this build and used. Files that include a list are compiled again with the longer list and linked
# before the library, so the library's own are not taken.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
BUILD=${BUILD:-$PWD/build}
tmp=${TEST_TMP:-$(mktemp -d)}
top=$PWD
page=$top/docs/dev/extend.md
tree=$tmp/tree
mkdir -p "$tree" && cp -r include src util tests cli serve lab bench "$tree"

compile=$(cut -d'|' -f2 "$BUILD/flags")
link=$(cut -d'|' -f4 "$BUILD/flags")
emulate=$(cut -d'|' -f5 "$BUILD/flags")
files="src/data/bumps.c src/model/transition/gentle.c src/model/encoder/single.c src/op/square.c
    src/backend/cuda/ops/square.cuh src/model/process/hasty.c cli/cmd_count.c lab/bound.c"

# The C blocks go to the file that their first line names, the lines into their lists.
take_out() {
    awk -v tree="$tree" '
        /^```c$/ { getline; path = $2; sub(/:$/, "", path); file = tree "/" path }
        /^```$/ { if (file) close(file); file = "" }
        file { print > file }' "$page"
    sed -n 's/^The line at the end of `\(.*\)`: `\(.*\)`$/\1 \2/p' "$page" >"$tmp/lines"
    while read -r list line; do echo "$line" >>"$tree/$list"; done <"$tmp/lines"
    # shellcheck disable=SC2086
    [ "$(wc -l <"$tmp/lines")" = 8 ] && cd "$tree" && ls $files
}
formatted() {
    # shellcheck disable=SC2086
    cp .clang-format "$tree" && cd "$tree" && clang-format --dry-run -Werror $files
}
build() {
    local file objects
    cd "$tree" || return 1
    for file in src/data/bumps.c src/data/families.c src/model/spec.c src/model/transition/gentle.c \
        src/model/transition/transition.c src/model/encoder/single.c src/model/encoder/encoder.c \
        src/model/process/hasty.c src/model/process/process.c cli/cmd_count.c cli/cmd_help.c lab/bound.c lab/study.c; do
        $compile -Isrc -I. -c "$file" -o "$tmp/$(basename "$file" .c).o" || return 1
    done
    mapfile -t objects < <(cd "$top" && find cli serve lab bench -name '*.c' ! -name cmd_help.c ! -path lab/study.c ! -name wasm.c | sed "s#^#$BUILD/obj/#; s#c\$#o#")
    objects+=("$BUILD/obj/serve/page.o")
    # shellcheck disable=SC2086
    $compile $link "$tmp"/*.o "${objects[@]}" "$BUILD/libmnp.a" $link -o "$tmp/mnp"
}
family() {
    cd "$tmp" && ./mnp help gen | grep -q bumps && ./mnp gen bumps --functions 3 --out b.csv --quiet &&
        [ "$(wc -l <b.csv)" = 385 ] && ./mnp gen bumps --functions 3 --threads 1 --out c.csv --quiet &&
        cmp b.csv c.csv && ./mnp gen bumps:width=0.1,points=64 --functions 3 --out d.csv --quiet &&
        [ "$(wc -l <d.csv)" = 193 ] && ! ./mnp gen bumps:widht=1 --functions 3 --out x.csv 2>err.txt &&
        grep -q width err.txt
}
# trained, saved, loaded, and lawful: the order of the points does not matter
part() { # OPTION
    cd "$tmp" && ./mnp train --data bumps --functions 40 --preset tiny --steps 20 --batch 8 --set "$1" --out p \
        --quiet && ./mnp info p.safetensors | grep -q "$1" &&
        ./mnp check p.safetensors --functions 5 --json --quiet >check.json &&
        awk 'match($0, /"permutation":[-+0-9.e]*/) { v = substr($0, RSTART + 14, RLENGTH - 14); exit !(v + 0 < 1e-3) }' \
            check.json
}

kind() {
    cd "$tmp" && ./mnp train --data bumps --functions 20 --model hasty --steps 3 --out k --quiet &&
        ./mnp info k.safetensors | grep -q 'kind=hasty' && ./mnp eval k.safetensors --functions 3 | grep -q exact &&
        ! ./mnp train --data bumps --model hastier --out k 2>err.txt && grep -q hasty err.txt
}
counts() {
    cd "$tmp" && ./mnp help | grep -q '^  count  *count the functions' &&
        ./mnp count rbf --functions 7 | grep -qx 'rbf: 7 functions, 896 points' &&
        ./mnp count "$top/examples/data/plants.csv" --json | tail -n 1 | grep -q '"functions":60,"points":'
}
study() { # tables from cells that are kept
    cd "$tmp" && ./mnp help repro | grep -q '^  bound  *the score of a model file' &&
        ./mnp repro bound --models p.safetensors --data bumps --functions 5 --out bound >said.txt &&
        [ "$(grep -cE '^\| [0-9]+ \| -?[0-9.]+ ± [0-9.]+ \|$' bound/bound.md)" = 4 ] &&
        ./mnp eval p.safetensors --data bumps --functions 5 --samples 5 --draws 0 --seed 0 --json --quiet >e.json &&
        grep -qF "\"loglik\": $(sed 's/^{"loglik":\([^,]*\).*/\1/' e.json)," bound/bound.json &&
        rm bound/cells/5-*.json && ./mnp repro bound --models p.safetensors --data bumps --functions 5 --out bound |
        grep -q '^3 of them are finished already'
}

# The op on the CPU and, in the emulator, as a kernel. Ops are counted in the files named here.
device_op() {
    local file
    mkdir -p "$tmp/op" && cd "$tree" || return 1
    for file in src/op/square.c src/op/op.c src/backend/cpu/cpu.c src/backend/cuda/*/*.c; do
        $compile -O0 -Isrc -I. -c "$file" -o "$tmp/op/$(basename "$file" .c).o" || return 1
    done
    # shellcheck disable=SC2086
    $compile -O0 -Isrc -Itests -I. tests/contract/test_cuda.c bench/contract.c "$tmp"/op/*.o "$BUILD/libmnp.a" $link -o "$tmp/op/test_cuda" ||
        return 1
    for file in kernels/functions host/runtime; do
        $emulate -O0 -w -x c++ -c "src/backend/cuda/$file.cu" -o "$tmp/op/$(basename $file).cu.o" || return 1
    done
    # the general sets do not know the op: they are there to be linked, for other GPUs than the emulated one
    $emulate -shared "$tmp"/op/*.cu.o "$BUILD"/emulator/src/backend/cuda/{kernels/{products,update},wide/*}.cu.o \
        "$BUILD"/emulator/general-*/src/backend/cuda/*/*.o "$BUILD"/emulator/tests/emulator/*.o -o "$tmp/op/libmnp_cuda.so" &&
        "$tmp/op/test_cuda" --small square | tee "$tmp/op/said" && grep -q '^2 passed, 0 failed$' "$tmp/op/said"
}

run "the page's files and lines" take_out
if command -v clang-format >/dev/null; then
    run "they are formatted as the sources are" formatted
else
    skip "they are formatted as the sources are" "clang-format is not installed"
fi
run "they compile with this build's flags" build
run "the family draws" family
run "the transition trains" part transition=gentle
run "the encoder trains" part encoder=single
run "the kind of model trains" kind
run "the command counts" counts
run "the study makes its table" study
if [ -e "$BUILD/emulator/libmnp_cuda.so" ]; then
    run "the device op agrees with its reference" device_op
else
    skip "the device op agrees with its reference" "the emulator is not built"
fi
check_done
