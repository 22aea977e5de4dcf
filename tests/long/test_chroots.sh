#!/usr/bin/env bash
# test_chroots.sh: make demo and make test, and make wheel and make test-python, pass on clean machines
# (scripts/chroots.sh), from a clean clone of HEAD: what is not committed is not tried.
set -u
. tests/check.sh
log=$TEST_TMP/log
for case in root offline user blas openblas python; do
    scripts/chroots.sh $case >"$log" 2>&1
    status=$?
    if [ $status = 2 ]; then
        skip "clean machine: $case" "$(tail -n 1 "$log")"
    else
        run "clean machine: $case" bash -c "cat '$log'; exit $status"
    fi
done
check_done
