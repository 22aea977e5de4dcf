#!/usr/bin/env bash
# test_shipped.sh: two of the shipped models score what their files say, on 50 test functions; an ELBO is
# a lower bound; how scores come into a file; and the sizes of what is shipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
# shellcheck source=tests/shipped.sh
. tests/shipped.sh
export MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}

# fails STATUS "text" COMMAND... writes files: into the test's own folder
refused() { (cd "$tmp" && fails "$@"); }
weights() { tail -c 100000 "$1" | cksum; }
score_of() { sed 's/^{"loglik":\(-*[0-9]*\.[0-9][0-9]\).*/\1/'; }

noted() {
    "$MNP" train --data monotonic --functions 40 --preset tiny --steps 3 --batch 2 --quiet \
        --set valid_functions=5 --out "$tmp/m.safetensors" && cp "$tmp/m.safetensors" "$tmp/before.safetensors" &&
        FUNCTIONS=6 TRAINED="a test" lab/training/note_scores.sh "$tmp/m.safetensors" >"$tmp/said.txt" || return 1
    cat "$tmp/said.txt"
    [ "$(wc -l <"$tmp/said.txt")" = 3 ] && grep -q 'trained_on  *a test$' "$tmp/said.txt" &&
        grep -qE 'score.authors +-?[0-9.]+ \+- [0-9.]+ on 6 functions, 20 samples, seed 0$' "$tmp/said.txt" &&
        "$MNP" eval "$tmp/m.safetensors" --functions 6 --draws 0 --json --quiet >"$tmp/a.json" &&
        "$MNP" eval "$tmp/before.safetensors" --functions 6 --draws 0 --json --quiet >"$tmp/b.json" &&
        cmp "$tmp/a.json" "$tmp/b.json" && [ "$(weights "$tmp/m.safetensors")" = "$(weights "$tmp/before.safetensors")" ] &&
        grep -qF "score.strict     $(score_of <"$tmp/a.json")" "$tmp/said.txt"
}
same_bytes() { # notes are replaced, and a removed one leaves no trace
    cp "$tmp/m.safetensors" "$tmp/once.safetensors" &&
        FUNCTIONS=6 TRAINED="a test" lab/training/note_scores.sh "$tmp/m.safetensors" >/dev/null &&
        cmp "$tmp/m.safetensors" "$tmp/once.safetensors" || return 1
    for key in score.strict score.authors trained_on; do
        "$MNP" info "$tmp/m.safetensors" --note "$key=" --quiet || return 1
    done
    cmp "$tmp/m.safetensors" "$tmp/before.safetensors"
}
too_large() {
    mkdir -p "$tmp/box" && head -c 4000001 /dev/zero >"$tmp/box/a.safetensors" &&
        head -c 4000001 /dev/zero >"$tmp/box/geofluvial.safetensors" &&
        ! lab/training/check_models.sh "$tmp/box" >"$tmp/sizes.txt" && cat "$tmp/sizes.txt" &&
        [ "$(wc -l <"$tmp/sizes.txt")" = 1 ] && grep -q 'box/a.safetensors has 4000001' "$tmp/sizes.txt" || return 1
    rm "$tmp/box/a.safetensors" && touch "$tmp/box/b-s2.safetensors"
    for k in 1 2 3; do truncate -s 12000000 "$tmp/box/geofluvial-$k.safetensors"; done
    ! lab/training/check_models.sh "$tmp/box" >"$tmp/sizes.txt" && cat "$tmp/sizes.txt" &&
        [ "$(wc -l <"$tmp/sizes.txt")" = 2 ] && grep -q 'b-s2.safetensors: one seed' "$tmp/sizes.txt" &&
        grep -q 'box has 40000001 bytes' "$tmp/sizes.txt"
}

run "scores are noted in a file" noted
run "noting twice changes nothing; notes can be removed" same_bytes
run "a note is for the model's own data" refused 2 "leave out --context" \
    "$MNP" eval m.safetensors --note --context 2:5
run "some notes are not for people" refused 2 "mnp train alone" "$MNP" info m.safetensors --note steps=7
run "a note has a key" refused 2 "KEY=TEXT" "$MNP" info m.safetensors --note seven
run "what is too large is named" too_large
run "the shipped models are small enough" lab/training/check_models.sh
for name in mnp-rbf mnp-monotonic; do
    shipped $name || continue
    for protocol in strict authors; do
        run "$name scores what its file says ($protocol)" agrees $name 50 $protocol
    done
done
for name in np-rbf np-sde; do
    ! shipped $name || run "$name: ELBO below the bound" elbo_below $name 20
done
check_done
