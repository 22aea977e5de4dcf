#!/usr/bin/env bash
# python_test.sh: the tests of the Python package, from the wheel in dist/ (make test-python builds it)
# in a new virtual environment, away from the source folder and with no compiler on the PATH.
#
# First what the wheel is made of and what it does with NumPy alone; then pytest on python/tests and
# the examples in the docstrings, with every library that the package can work with. Needs a network.
# Reads BUILD, PYTHON and T (only tests of pytest whose name holds T). The last line is the count, also
# kept in $BUILD/python/test-logs/summary; MNP_COMMAND tells tests where the command is.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/python_tools.sh
. tests/check.sh
top=$PWD logs=$work/test-logs fresh=$work/fresh
wheels=(dist/mnp-*.whl)
MNP_COMMAND=$(cd "$BUILD" && pwd)/mnp
[ -f "${wheels[0]}" ] || die "there is no wheel in dist/: make wheel"
set_up_tools
rm -rf "$logs" "$work/run" && mkdir -p "$logs" "$work/run"

# ---- the wheel -----------------------------------------------------------------------------------
# shellcheck disable=SC2317 # the functions below are called through run
one_wheel() { # with the tag that auditwheel confirmed, at most 12 MB, one library, no second copy
    [ ${#wheels[@]} = 1 ] && [[ ${wheels[0]} == *-py3-none-manylinux_*_"$(uname -m)".whl ]] &&
        [ "$(stat -c %s "${wheels[0]}")" -le 12000000 ] &&
        python -m zipfile --list "${wheels[0]}" | awk '/\.so/ {n++} END {exit n != 1}'
}
# shellcheck disable=SC2317
clean_library() { # that of make, and nothing of the machine that built it
    python -m zipfile --extract "${wheels[0]}" "$work/run/wheel" || return 1
    local library=$work/run/wheel/mnp/libmnp.so
    cmp "$library" "$work/mnp/libmnp.so" || return 1
    readelf -dW "$library" | grep -E 'RPATH|RUNPATH' && return 1
    readelf -SW "$library" | grep -F '.debug_' && return 1
    ! grep -qaF "$top" "$library"
}
# shellcheck disable=SC2317
whole_sdist() { # every source, and of the models the two
    rm -rf "$work/sdist"
    python -m build --sdist --no-isolation --outdir "$work/sdist" . >"$logs/sdist.log" 2>&1 || return 1
    tar -tzf "$work"/sdist/mnp-*.tar.gz | sed 's|^[^/]*/||' | sort >"$work/run/packed"
    find src util include cmake python/mnp -type f ! -name '*.pyc' | sort >"$work/run/wanted"
    comm -13 "$work/run/packed" "$work/run/wanted" | grep . && return 1
    [ "$(grep -c '^models/' "$work/run/packed")" = 2 ]
}
run "ruff: rules" ruff check python scripts
run "ruff: format" ruff format --check python scripts
run "one wheel" one_wheel
run "a clean library" clean_library
run "a whole sdist" whole_sdist

# ---- installed -----------------------------------------------------------------------------------
# The environment of a person without a compiler: its own programs and the plainest of the system's.
bare=$work/bare
rm -rf "$bare" && mkdir "$bare"
for name in bash sh env cat cp cut date dirname basename echo false head ln ls mkdir mv pwd rm rmdir sed sleep \
    sort tail touch tr true uname wc; do
    ln -s "$(command -v $name)" "$bare/$name" 2>/dev/null
done
user() { # COMMAND...: away from the source folder
    (cd "$work/run" && env -u PYTHONPATH -u MNP_LIBRARY -u LD_LIBRARY_PATH PATH="$fresh/bin:$bare" MPLBACKEND=Agg \
        PYTHONPYCACHEPREFIX="$work/pycache" MNP_COMMAND="$MNP_COMMAND" "$@")
}
# shellcheck disable=SC2317
no_compiler() { ! user sh -c 'command -v cc || command -v gcc || command -v clang || command -v c99'; }
# shellcheck disable=SC2317
numpy_alone() { # the wheel brings NumPy and nothing else
    [ "$(user pip --disable-pip-version-check list --format=freeze | grep -vE '^(pip|setuptools|wheel)=' |
        sed 's/=.*//' | sort | tr '\n' ' ')" = "mnp numpy " ]
}
environment "$fresh"
pip_install "$fresh" "${wheels[0]}"
run "no compiler on the PATH" no_compiler
run "NumPy is all it needs" numpy_alone
run "the installed package is imported" user python -c 'import sys, mnp; sys.exit(sys.prefix not in mnp.__file__)'
run "a prediction with NumPy alone" user python "$top/scripts/python_first.py"

# ---- pytest --------------------------------------------------------------------------------------
pip_install "$fresh" --no-compile "${wheels[0]}[test]"
user python -m pytest -q -p no:cacheprovider -rs --timeout=240 --junitxml="$logs/junit.xml" \
    -o junit_family=xunit1 --durations=10 --doctest-modules ${T:+-k "$T"} \
    "$top/python/tests" --pyargs mnp 2>&1 | tee "$logs/pytest.log"
status=${PIPESTATUS[0]}
read -r passed failed skipped <<<"$(python - "$logs/junit.xml" <<'EOF'
import sys, xml.etree.ElementTree as tree
try:
    suites = tree.parse(sys.argv[1]).getroot().iter("testsuite")
    total, failed, skipped = 0, 0, 0
    for suite in suites:
        total += int(suite.get("tests"))
        failed += int(suite.get("failures")) + int(suite.get("errors"))
        skipped += int(suite.get("skipped"))
    print(total - failed - skipped, failed, skipped)
except Exception:
    print(0, 1, 0)
EOF
)"
# The one test that asks a compiler: the headers' structs are laid out as the package believes.
if command -v cc >/dev/null; then
    run "structs as the compiler has them" env -C "$work/run" MNP_COMMAND="$MNP_COMMAND" "$fresh/bin/python" -m pytest -q \
        -p no:cacheprovider "$top/python/tests/test_structs.py"
fi
[ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
check_passed=$((check_passed + passed)) check_failed=$((check_failed + failed)) check_skipped=$((check_skipped + skipped))
[ "$check_failed" = 0 ] || { echo "FAIL python (the log is $logs/pytest.log)" && tail -n 60 "$logs/pytest.log"; } >"$logs/python.report"
check_done | tee "$logs/summary"
[ "$check_failed" = 0 ]
