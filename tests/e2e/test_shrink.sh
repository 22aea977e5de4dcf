#!/usr/bin/env bash
# test_shrink.sh: mnp shrink: what it says of the file is so, the model answers and scores alike, and what
# it refuses.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
MODELS=${MODELS:-$PWD/models}
# shellcheck source=tests/shipped.sh
. tests/shipped.sh
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1
"$MNP" train --data rbf --functions 20 --preset tiny --steps 2 --quiet --out m || exit 1
"$MNP" train --model oracle --data rbf --functions 4 --quiet --out o || exit 1

sizes() {
    "$MNP" shrink m.safetensors --out s.safetensors --json >s.json 2>note.txt || return 1
    cat s.json note.txt
    local before after
    before=$(stat -c %s m.safetensors) after=$(stat -c %s s.safetensors)
    [ "$(number bytes_before <s.json)" = "$before" ] && [ "$(number bytes <s.json)" = "$after" ] &&
        [ $((100 * after)) -lt $((70 * before)) ] &&
        awk -v c="$(number change <s.json)" 'BEGIN { exit !(c > 0 && c <= 2 ^ -11) }' &&
        grep -q '^s.safetensors: .*, before .*; no weight changed by more than 0.000[34]' note.txt
}
twice() { # rounded numbers are not rounded again
    "$MNP" shrink s.safetensors --out t.safetensors --json --quiet >t.json && cmp s.safetensors t.safetensors &&
        [ "$(number change <t.json)" = 0 ]
}
exact_process() {
    "$MNP" shrink o.safetensors --out p.safetensors >note.txt && cmp o.safetensors p.safetensors && cat note.txt &&
        grep -q 'no weight changed$' note.txt
}
refused() {
    fails 2 '--out F.safetensors' "$MNP" shrink m.safetensors &&
        fails 2 'choose another name' "$MNP" shrink m.safetensors --out m.safetensors &&
        fails 1 'not' "$MNP" shrink note.txt --out u.safetensors && [ ! -e u.safetensors ]
}
# paired by seed: the same functions, contexts and draws
score() { "$MNP" eval "$1" --functions 16 --samples 5 --draws 0 --json --quiet | number loglik; }
scores_alike() {
    "$MNP" shrink "$models/mnp-monotonic.safetensors" --out half.safetensors --quiet || return 1
    local one two
    one=$(score "$models/mnp-monotonic.safetensors") two=$(score half.safetensors)
    echo "$one $two"
    awk -v a="$one" -v b="$two" 'BEGIN { d = a - b; exit !(a != b && d * d < 0.001 ^ 2) }'
}
run "sizes and the largest change, in words and JSON" sizes
run "shrinking twice changes nothing more" twice
run "a process that is no network stays as it is" exact_process
run "no output, its own input, no model: refused" refused
shipped mnp-monotonic && run "a shipped model scores the same to .001 nats" scores_alike
check_done
