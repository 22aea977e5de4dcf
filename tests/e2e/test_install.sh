#!/usr/bin/env bash
# test_install.sh: make install puts everything where pkg-config and the compiler find it, programs
# link against the shared and the static library, and make uninstall leaves nothing behind.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh

root=$TEST_TMP/root
# The prefix that the build has: with another one make would build everything anew, under the other
# tests that are using it.
prefix=$(sed -n '1s/^[^ ]* \([^ ]*\) .*/\1/p' "$BUILD/flags")
cc=${CC:-cc}
consumer=tests/e2e/cmake_consumer/consumer.c
export PKG_CONFIG_PATH=$root$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1

do_make() { env -u BUILD make --no-print-directory PREFIX="$prefix" DESTDIR="$root" "$@"; }
installs() {
    do_make install && [ -x "$root$prefix/bin/mnp" ] && [ -f "$root$prefix/share/man/man1/mnp.1" ] &&
        "$root$prefix/bin/mnp" --version
}
# The library paths of the consumer point into $root; the names of the rest come from pkg-config.
links_shared() {
    # shellcheck disable=SC2046,SC2086 # lists of flags
    $cc $(pkg-config --cflags mnp) $consumer $(pkg-config --libs mnp) -o "$TEST_TMP/shared" &&
        LD_LIBRARY_PATH=$root$prefix/lib "$TEST_TMP/shared"
}
links_static() {
    # shellcheck disable=SC2046,SC2086 # lists of flags
    $cc -I"$root$prefix/include" $consumer "$root$prefix/lib/libmnp.a" \
        $(sed -n 's/^Libs.private: //p' "$PKG_CONFIG_PATH/mnp.pc") -o "$TEST_TMP/static" &&
        "$TEST_TMP/static"
}
# Every header is there and needs none before it, in C and, where there is a compiler, in C++.
headers_stand_alone() {
    local header
    for header in include/*.h; do
        header=$(basename "$header")
        # shellcheck disable=SC2086 # CC may carry flags
        echo "#include <$header>" | $cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$root$prefix/include" -xc - ||
            return 1
        command -v c++ >/dev/null || continue
        echo "#include <$header>" | c++ -Wall -Wextra -Werror -fsyntax-only -I"$root$prefix/include" -xc++ - || return 1
    done
}
# No internal name of the static library can clash with one of the program that links it.
shows_only_its_own() {
    nm -g --defined-only "$root$prefix/lib/libmnp.a" | awk 'NF == 3 && $3 !~ /^mnp_/ {print; bad = 1} END {exit bad}'
}
leaves_the_build() { [ "$(stat -c %y "$BUILD/mnp" "$BUILD/flags")" = "$built" ]; }
uninstalls() { do_make uninstall && [ -z "$(find "$root" -type f -o -type l)" ]; }

if [[ $(basename "$BUILD") == *-asan || $(basename "$BUILD") == *-tsan || $BUILD == *-coverage ]]; then
    skip install "instrumented builds are not installed"
else
    built=$(stat -c %y "$BUILD/mnp" "$BUILD/flags")
    run install installs
    run "the build is as it was" leaves_the_build
    if command -v pkg-config >/dev/null; then
        run shared links_shared
    else
        skip shared "pkg-config is not installed"
    fi
    run static links_static
    run headers headers_stand_alone
    run names shows_only_its_own
    run uninstall uninstalls
fi
check_done
