#!/usr/bin/env bash
# judge.sh: real tables, mnp against independent methods, on curves that none of them has seen.
#   lab/curves/judge.sh [METHOD...]     (default: fit; also classical, lmm, smooth, average, gp, offset)
#
# JOBS=N cells at once (all cores), SETS="A B" some sets only, LIMIT=S seconds for one command, OUT=DIR,
# SEED=TEXT other folds (with an OUT of their own).
# What is there in OUT is not computed again, so a run can be stopped, and taken to a machine without R
# together with OUT/sets and OUT/baseline. README.md says what is needed where.
set -euo pipefail
here=$(dirname "$0")
OUT=${OUT:-out/curves}
JOBS=${JOBS:-$(nproc)}
PYTHON=${PYTHON:-python3}
export LIMIT=${LIMIT:-1800} MNP=${MNP:-build/mnp} THREADS=${THREADS:-1} OMP_NUM_THREADS=1
methods=("${@:-fit}")

if [ ! -d "$OUT/sets" ]; then
    [ -d "$OUT/data" ] || Rscript "$here/export.R" "$OUT/data" "$PYTHON"
    "$PYTHON" "$here/prepare.py" "$OUT" ${SEED:+"$SEED"}
fi
sets=${SETS:-$(cd "$OUT/sets" && printf '%s\n' *.csv | sed 's/\.csv$//')}

# Baselines that are missing, where R and scipy are.
for s in $sets; do
    [ -e "$OUT/baseline/$s.offset.rough.csv" ] || echo "Rscript $here/mixed.R $s $OUT"
    [ -e "$OUT/baseline/$s.gp.csv" ] || echo "$PYTHON $here/process.py $s $OUT"
done | xargs -r -P "$JOBS" -I{} timeout -k 5 3600 sh -c '{} || echo "missing: {}" >&2'

# Cells: a failure is printed, the others go on.
for m in "${methods[@]}"; do
    for s in $sets; do
        for fold in 0 1 2; do
            [ -e "$OUT/mnp/$m/$s.$fold.json" ] || echo "$m $s $fold $OUT"
        done
    done
done | xargs -r -P "$JOBS" -I{} timeout -k 5 $((LIMIT * 4)) sh -c "'$PYTHON' '$here/cell.py' {} || echo 'failed: {}' >&2" || true

"$PYTHON" "$here/score.py" "$OUT" "${methods[@]}"
