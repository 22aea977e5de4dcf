#!/usr/bin/env bash
# note_scores.sh MODEL...: scores models of table 1 on 5 000 test functions of their own data under both
# protocols and writes the scores into the files, as the notes score.strict and score.authors ("2.3862 +-
# 0.0063 on 5000 functions, 20 samples, seed 0"). `mnp info MODEL` shows them; make test and make
# test-long compare the models with them. Settings come from the environment:
#
#   DEVICE=cuda TRAINED="NVIDIA H200, tf32" lab/training/note_scores.sh models/*-rbf.safetensors
#
#   DEVICE     cpu or cuda                      FUNCTIONS  test functions
#   TRAINED    where and how the model was trained: kept as the note trained_on
set -eu
cd "$(dirname "$0")/../.."
MNP=${MNP:-build/mnp}
[ $# -gt 0 ] || { echo "usage: lab/training/note_scores.sh MODEL..." >&2 && exit 2; }
for model in "$@"; do
    for protocol in strict authors; do
        "$MNP" eval "$model" --functions "${FUNCTIONS:-5000}" --draws 0 --protocol "$protocol" \
            --device "${DEVICE:-cpu}" --note --quiet
    done
    [ -z "${TRAINED:-}" ] || "$MNP" info "$model" --note "trained_on=$TRAINED" --quiet
    "$MNP" info "$model" | grep -E '^  (score\.|trained_on)' | sed "s|^ |$model:|"
done
