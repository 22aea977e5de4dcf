#!/usr/bin/env bash
# test_examples.sh: the example programs do what their comments say, use the public header alone (and
# minimal.c none at all), and fail with a sentence.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh

model=$TEST_TMP/curves.safetensors
bin=$BUILD/examples

trains() {
    "$bin/train_and_predict" "$model" >"$TEST_TMP/train" && cat "$TEST_TMP/train" && [ -s "$model" ]
}
# The loss falls, and nine rows of x, mean, sd follow; an observed point is known best.
train_says_something() {
    awk '/^step/ {sub(":", "", $4); if (!seen++) first = $6; last = $6}
         /^ *-?[0-9.]+ +-?[0-9.]+ +[0-9.]+$/ {rows++; sd[$1 + 0] = $3; mean[$1 + 0] = $2}
         END {exit !(seen == 5 && last < first - 0.2 && rows == 9 && sd[0] < sd[1.5] &&
              mean[-1.5] < mean[0] && mean[0] < mean[1])}' "$TEST_TMP/train"
}
loads() { "$bin/load_and_predict" "$model" >"$TEST_TMP/load" && cat "$TEST_TMP/load"; }
# x = 0 is in both tables: the same functions have the same values there.
functions_stay() {
    [ "$(awk '$1 == 0 && NF == 4' "$TEST_TMP/load" | wc -l)" = 2 ] &&
        [ "$(awk '$1 == 0 && NF == 4 {$1 = $1; print}' "$TEST_TMP/load" | uniq | wc -l)" = 1 ] &&
        grep -q 'log p(.*) = -*[0-9]*\.[0-9]* nats' "$TEST_TMP/load"
}
streams() { "$bin/stream_observations" "$model" >"$TEST_TMP/stream" && cat "$TEST_TMP/stream"; }
doubt_shrinks() {
    awk '/points/ {if (!rows++) first = $NF; last = $NF}
         END {exit !(rows == 9 && last < 0.7 * first)}' "$TEST_TMP/stream"
}
# a wheel from nothing but quickly trained weights: better than by lot, and bad rewards are refused
plays() {
    "$BUILD/mnp" train --data wheel:points=120,context=10:100 --functions 200 --preset wheel --steps 300 \
        --batch 16 --set valid_functions=10 --set lr=3e-3 --seed 1 --quiet --out "$TEST_TMP/wheel" \
        --set enc_width=64 --set ds_layers=2 --set flow_hidden=64 --set flow_layers=2 --set flow_gain=1 \
        --set kappa=8 --set y_scale=10 --set sigma_z_floor=0.05 &&
        "$bin/bandit" "$TEST_TMP/wheel.safetensors" 600 >"$TEST_TMP/bandit" && cat "$TEST_TMP/bandit" &&
        awk '/by the model/ {model = $5} /by lot/ {lot = $4} /refused: .*row 601.*not a number/ {refused = 1}
             END {exit !(refused && model > 1.3 * lot)}' "$TEST_TMP/bandit"
}
fails_clearly() {
    local why
    ! why=$("$bin/load_and_predict" "$TEST_TMP/none" 2>&1) && [[ $why == *"$TEST_TMP/none"* ]]
}
# A plain compiler and the C library are enough; what it has learnt, the command can score.
minimal() {
    local mine=$TEST_TMP/minimal.safetensors cc
    read -ra cc <<<"${CC:-cc}"
    "${cc[@]}" -O2 examples/minimal.c -o "$TEST_TMP/minimal" -lm &&
        "$TEST_TMP/minimal" 100 "$mine" >"$TEST_TMP/lesson" && cat "$TEST_TMP/lesson" &&
        awk '/of new functions/ {if (!seen++) first = $NF; last = $NF} /^step/ {rows++} /O/ {marks++}
             END {exit !(seen == 2 && last > first + 0.5 && rows == 20 && marks >= 4)}' "$TEST_TMP/lesson" &&
        "$BUILD/mnp" eval "$mine" --functions 50 --protocol authors >"$TEST_TMP/scored" && cat "$TEST_TMP/scored"
}
public_header_only() {
    ! grep -n '#include "' examples/*.c && ! grep -n '<mnp.*>' examples/minimal.c &&
        ! grep -n '#include <' examples/*.c |
        grep -v '<\(mnp[a-z_]*\|math\|stdbool\|stdint\|stdio\|stdlib\|string\|time\).h>'
}
short() {
    local f most
    for f in examples/*.c; do
        most=80
        [ "$f" = examples/minimal.c ] && most=801
        [ "$(wc -l <"$f")" -lt $most ] || return 1
    done
}

run train_and_predict trains
run train_output train_says_something
run load_and_predict loads
run same_functions functions_stay
run stream_observations streams
run doubt_shrinks doubt_shrinks
run bandit plays
run minimal minimal
run missing_model fails_clearly
run public_header public_header_only
run short short
check_done
