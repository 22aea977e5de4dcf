#!/usr/bin/env bash
# test_library.sh: what the compiled library promises (scripts/check_library.sh), and that the check
# finds a function which is shown and not declared, or declared and not shown.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh

if ! command -v nm >/dev/null || ! command -v objdump >/dev/null; then
    skip "the library's promises" "there is no nm or objdump"
    check_done
    exit
fi

# A copy of the tree's headers with one line more or less, beside the library as it is.
other_headers() { # name of the copy, sed program for mnp.h
    mkdir -p "$TEST_TMP/$1/scripts" "$TEST_TMP/$1/include"
    cp scripts/check_library.sh "$TEST_TMP/$1/scripts/"
    cp include/*.h "$TEST_TMP/$1/include/"
    sed -i "$2" "$TEST_TMP/$1/include/mnp.h"
}
refuses() { # name of the copy, what it must say
    local said
    if said=$(bash "$TEST_TMP/$1/scripts/check_library.sh"); then return 1; fi
    [ "$said" = "$2" ] || { echo "$said" && return 1; }
}
finds_hidden() {
    other_headers hidden '/mnp_version(void)/i MNP_API int mnp_nowhere(int k);'
    refuses hidden "a header declares, and libmnp.so does not show: mnp_nowhere"
}
finds_extra() {
    other_headers extra '/mnp_version(void)/d'
    refuses extra "libmnp.so shows, and no header declares: mnp_version"
}
run "prints nothing, keeps no state, shows what is declared" bash scripts/check_library.sh
run "a declared function that is not shown is found" finds_hidden
run "a function that is shown and not declared is found" finds_extra
check_done
