#!/usr/bin/env bash
# test_limits.sh: SECURITY.md shows the limits that the code has.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
run "the table of SECURITY.md" scripts/limits.sh --check
check_done
