# shipped.sh: what the tests of shipped models share; sourced after check.sh.
#
#     agrees NAME N PROTOCOL    the score on N test functions is the one noted in models/NAME, within the
#                               error that so few functions have
#     elbo_below NAME N         on N test functions the ELBO lies below the bound, and the KL of one sample is
#                               that of twenty (models of one step: it does not depend on the draw)
#     shipped NAME              is models/NAME.safetensors there? If not, a skip that names it
# MODELS is another folder than models.
# shellcheck shell=bash
models=${MODELS:-models}

shipped() {
    [ -e "$models/$1.safetensors" ] && return 0
    skip "the shipped model $1" "there is no $models/$1.safetensors"
    return 1
}

# The note reads "2.3862 +- 0.0063 on 5000 functions, ...". The error of N functions follows from that of
# 5 000; 3.5 of them are allowed.
agrees() {
    local file=$models/$1.safetensors n=$2 protocol=$3 note score
    note=$("$MNP" info "$file" | sed -n "s/^  score\.$protocol  *//p")
    [ -n "$note" ] || { echo "$file has no note score.$protocol: lab/training/note_scores.sh $file" && return 1; }
    score=$("$MNP" eval "$file" --functions "$n" --draws 0 --protocol "$protocol" --json --quiet |
        sed 's/^{"loglik":\([^,]*\).*/\1/') || return 1
    echo "$1, $protocol: $score on $n functions; noted: $note"
    echo "$score $note" | awk -v n="$n" '{ off = $1 - $2; if (off < 0) off = -off
        exit !($1 == $1 + 0 && off <= 3.5 * $4 * sqrt($6 / n)) }'
}

number() { grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d: -f2; }
elbo_below() {
    local file=$models/$1.safetensors one many
    one=$("$MNP" eval "$file" --functions "$2" --draws 0 --samples 1 --json --quiet) &&
        many=$("$MNP" eval "$file" --functions "$2" --draws 0 --samples 20 --json --quiet) || return 1
    printf '%s\n%s\n' "$one" "$many"
    echo "$(number loglik <<<"$many") $(number elbo <<<"$many") $(number kl <<<"$many") $(number kl <<<"$one")" |
        awk '{ off = $3 - $4; if (off < 0) off = -off; exit !($2 < $1 && $3 > 0 && off < 1e-9) }'
}
