#!/usr/bin/env bash
# test_python.sh: the ways to install the Python package that compile the library (by CMake): from the
# checkout, as on other architectures, from the source package, and where it lies; and the wheel under
# every Python 3 from 3.9 on that is found. make test-python has the tests of the wheel.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
python=${PYTHON:-python3}
first=$PWD/scripts/python_first.py
environment=$TEST_TMP/environment

# shellcheck disable=SC2317 # the functions below are called through run
installed() { # WHAT...: pip installs it into a new environment, and the first prediction comes out
    "$python" -m venv --clear "$environment" && "$environment/bin/pip" install -v "$@" &&
        (cd "$TEST_TMP" && env -u MNP_LIBRARY -u PYTHONPATH "$environment/bin/python" "$first")
}
# shellcheck disable=SC2317
from_sdist() {
    "$python" -m venv --clear "$environment" && "$environment/bin/pip" install build &&
        "$environment/bin/python" -m build --sdist --outdir "$TEST_TMP/sdist" . && installed "$TEST_TMP"/sdist/*.tar.gz
}
# shellcheck disable=SC2317
elsewhere() { # no kernels for AVX, and no library opened at run time
    printf '#!/bin/sh\ncase " $* " in *" -mavx"*) exit 1 ;; esac\nexec cc "$@"\n' >"$TEST_TMP/plain-cc" &&
        chmod +x "$TEST_TMP/plain-cc" && CC=$TEST_TMP/plain-cc installed . -Ccmake.define.MNP_PORTABLE=ON &&
        ! objdump -d "$environment"/lib/python*/site-packages/mnp/libmnp.so | grep -q '%[yz]mm' &&
        grep -qa 'a build with PORTABLE=1' "$environment"/lib/python*/site-packages/mnp/libmnp.so
}
# shellcheck disable=SC2317
where_it_lies() {
    installed -e . && rm python/mnp/libmnp.so
}

# shellcheck disable=SC2317
under() { # PYTHON: the wheel, without a compiler's work
    python=$1 installed --only-binary :all: dist/mnp-*.whl
}
pythons() { # of the PATH, and those that pyenv has
    local minor
    for minor in 9 10 11 12 13 14; do
        for found in "python3.$minor" ~/.pyenv/versions/3.$minor.*/bin/python; do
            if "$found" -c 'import ensurepip' 2>/dev/null; then echo "$found" && break; fi
        done
    done
}

if ! { "$python" -m venv "$environment" && "$environment/bin/pip" download --no-deps -d "$TEST_TMP" -q numpy; }; then
    skip "pip install" "needs python3-venv and a network"
    check_done
    exit
fi
run "pip install ." installed .
run "pip install . as on other architectures" elsewhere
run "pip install from the source package" from_sdist
run "pip install -e ." where_it_lies
run "make wheel" "${MAKE:-make}" BUILD="$BUILD" SETUP=0 wheel
for other in $(pythons); do run "the wheel under $("$other" --version)" under "$other"; done
check_done
