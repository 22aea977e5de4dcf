#!/usr/bin/env bash
# test_check.sh: mnp check from the command line: the laws by replicates and context sizes, and
# calibration with its picture, on a tiny model.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

"$MNP" train --model np --preset tiny --data rbf --functions 40 --steps 20 --batch 4 \
    --set encoder=deepset --out m --quiet || exit 1
"$MNP" train --model oracle --data rbf --functions 4 --out o --quiet || exit 1

number() { # FIELD FILE: the first number of that name in a JSON line
    grep -o "\"$1\":[-0-9.e+]*" "$2" | head -n 1 | cut -d: -f2
}
within() { # A B ERROR
    awk -v a="$1" -v b="$2" -v e="$3" 'BEGIN { exit !(a - b <= e && b - a <= e) }'
}

laws() { # the same number as without the new flags, and what is said of it
    "$MNP" check m.safetensors --functions 3 --samples 8 --json >a.json 2>a.txt &&
        "$MNP" check m.safetensors --functions 3 --samples 8 --condition network --replicates 2 \
            --json >b.json 2>/dev/null &&
        cmp a.json b.json && grep -q '"half_samples":4,' a.json &&
        grep -q '"verdict":"[a-z]*"' a.json && grep -q 'with     4 samples' a.txt
}
by_context() {
    "$MNP" check m.safetensors --functions 2 --samples 4 --context 3,6 --json >c.json &&
        [ "$(grep -o '"context":[0-9]*' c.json | tr '\n' ' ')" = '"context":3 "context":6 ' ]
}
exact() { # zero by construction, whatever the model: within a few of its errors
    "$MNP" check m.safetensors --condition exact --functions 4 --samples 16 --context 3 \
        --targets 4 --replicates 3 --gradients 100 --json >x.json 2>x.txt &&
        grep -q '"condition":"exact"' x.json && grep -q 'with     8 particles' x.txt &&
        awk -v g="$(number joint x.json)" -v e="$(number joint_se x.json)" \
            'BEGIN { exit !(e > 0 && g < 6 * e && g > -6 * e) }'
}
calibration() { # CONDITION
    "$MNP" check m.safetensors --calibration --condition "$1" --functions 30 --draws 9 \
        --context 2,4 --gradients 60 --out "$1.svg" --json >r.json 2>r.txt &&
        [ "$(grep -o '"inside99":' r.json | wc -l)" = 2 ] && grep -q '</svg>' "$1.svg" &&
        grep -q 'given 4 points' "$1.svg" && grep -q '99 % band' "$1.svg" &&
        [ "$(grep -o '"ranks":\[[0-9,]*\]' r.json | head -n 1 | tr ',' '\n' | wc -l)" = 30 ]
}
closed_form() { # the oracle's draws are those of its own prior
    "$MNP" check o.safetensors --calibration --functions 200 --draws 19 --context 5 --json \
        >o.json 2>/dev/null && grep -q '"inside99":true' o.json &&
        within "$(number rank_mean o.json)" 0.5 0.1 && within "$(number rank_spread o.json)" 1 0.2
}
repeats() {
    "$MNP" check m.safetensors --calibration --condition refine --functions 8 --draws 9 \
        --gradients 20 --threads 1 --json >1.json 2>/dev/null &&
        "$MNP" check m.safetensors --calibration --condition refine --functions 8 --draws 9 \
            --gradients 20 --threads 2 --json >2.json 2>/dev/null && cmp 1.json 2.json
}

run laws laws
run by_context by_context
run exact exact
for how in network refine exact; do run "calibration $how" calibration "$how"; done
run closed_form closed_form
run repeats repeats
run no_refine_laws fails 2 'refine' "$MNP" check m.safetensors --condition refine --quiet
run bad_size fails 2 '--context takes sizes' "$MNP" check m.safetensors --context 3,x
run bad_size fails 2 '--context takes sizes' "$MNP" check m.safetensors --context 0
run large_size fails 2 '--context 127 is too large: give up to 126 points' "$MNP" check m.safetensors --context 5,127 --quiet
run draws_alone fails 2 '--draws needs --calibration' "$MNP" check m.safetensors --draws 5
run targets_alone fails 2 '--targets belongs to the laws' \
    "$MNP" check m.safetensors --calibration --targets 5
run too_many fails 1 'points' "$MNP" check m.safetensors --calibration --context 100000 --quiet
check_done
