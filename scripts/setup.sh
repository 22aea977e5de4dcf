#!/usr/bin/env bash
# setup.sh [dev]: install what the build can use and this machine lacks, with apt, without asking.
#
# Silent and quick when nothing is missing. Where packages cannot be installed (no apt, no rights,
# no network) it prints the line to run and ends well: the build goes on with what there is.
# "dev" adds the tools of make lint, coverage and fuzz. MNP_NO_SETUP=1 skips everything.
set -u
[ "${MNP_NO_SETUP:-0}" = 1 ] && exit 0

missing=()
failed=()
need_command() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need_header() { # header package: looked up by the compiler, so any install location counts
    echo "#include <$1>" | cc ${3:+"$3"} -E - >/dev/null 2>&1 || missing+=("$2")
}

# Without a compiler no header can be looked up: then everything is asked for.
need_command cc gcc
need_command make make
need_header stdio.h libc6-dev
if [ "${PORTABLE:-0}" != 1 ]; then
    need_command pkg-config pkg-config
    need_header cblas.h libopenblas-dev "-I/usr/include/openblas"
    need_header cairo/cairo.h libcairo2-dev
    need_command mpicc libopenmpi-dev
    need_command mpirun openmpi-bin
fi
if [ "${1:-}" = dev ]; then
    need_command clang clang
    need_command clang-format clang-format
    need_command clang-tidy clang-tidy
    need_command shellcheck shellcheck
    need_command gcovr gcovr
    need_command cmake cmake
fi
[ ${#missing[@]} -eq 0 ] && exit 0

by_hand() {
    echo "setup: $1; going on without. To install them:"
    echo "    sudo apt-get install -y ${missing[*]}"
    exit 0
}
command -v apt-get >/dev/null 2>&1 || by_hand "not here: ${missing[*]} (and this machine has no apt)"
as_root=()
if [ "$(id -u)" != 0 ]; then
    sudo -n true >/dev/null 2>&1 || by_hand "not here: ${missing[*]} (and no right to install them)"
    as_root=(sudo -n)
fi

# A dead network must cost seconds: short timeouts, no retries, and a limit over all.
apt() {
    timeout 300 "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq \
        -o Acquire::Retries=0 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 \
        -o DPkg::Lock::Timeout=60 -o APT::Install-Recommends=false -o Dpkg::Use-Pty=0 \
        "$@" </dev/null >>"$log" 2>&1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: installing ${missing[*]}"
apt install -y "${missing[@]}" && exit 0
# Package lists may be stale or absent; and one package that is not to be had stops no other.
if apt update; then
    apt install -y "${missing[@]}" && exit 0
    for package in "${missing[@]}"; do apt install -y "$package" || failed+=("$package"); done
    [ ${#failed[@]} -eq 0 ] && exit 0
    missing=("${failed[@]}")
fi
tail -n 3 "$log"
by_hand "could not install ${missing[*]}"
