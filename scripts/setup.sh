#!/usr/bin/env bash
# setup.sh [--note FILE] [dev|python|web]: install what mnp can use and this machine lacks, with apt.
#
# Silent and quick when nothing is missing. Before it installs, it says what and how to refuse: SETUP=0
# in the environment (make SETUP=0 demo) installs nothing. Where packages cannot be installed (no apt,
# no rights, no network) it prints the line to run: the build goes on with what there is. The status is
# 1 as long as something is missing. "dev" adds the tools of make lint, coverage and fuzz, and those
# of the Python package and of the page; "python" and "web" ask for these alone.
#
# --note FILE (seen from the top folder) is for a caller that comes often: a try that failed is noted
# there, and is not repeated for ten minutes.
set -u
cd "$(dirname "$0")/.." || exit 1
[ "${SETUP:-1}" = 0 ] && exit 0
note=
if [ "${1:-}" = --note ]; then
    note=$2
    shift 2
fi

missing=()
need_command() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need_file() { [ -e "$2" ] || missing+=("$1"); } # PACKAGE FILE
need_header() { # looked up by the compiler, so any install location counts
    echo "#include <$1>" | cc -E - >/dev/null 2>&1 || missing+=("$2")
}
need_library() { # PACKAGE FILE.def: any of its libraries, which mnp loads when they are wanted
    local paths=${LD_LIBRARY_PATH:-} name folder
    for name in $(sed -n 's/^LIBRARY("\(.*\)").*/\1/p' "$2"); do
        [[ $libraries == *[[:space:]]"$name "* ]] && return
        for folder in ${paths//:/ }; do [ ! -e "$folder/$name" ] || return; done
    done
    missing+=("$1")
}

look() {
    local libraries
    libraries=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null)
    missing=()
    need_command cc gcc
    need_command make make
    need_header stdio.h libc6-dev
    if [ "$1" = dev ] || [ "$1" = web ]; then
        need_command clang clang
        need_command wasm-ld lld
        need_file wasi-libc "${WASI_SYSROOT:-/usr}/lib/wasm32-wasi/libc.a"
        need_file libclang-rt-dev-wasm32 "$(clang --target=wasm32-wasi --print-libgcc-file-name 2>/dev/null)"
        need_command node nodejs
        need_command chromium chromium
    fi
    if [ "$1" = web ]; then
        need_library libmicrohttpd12 serve/microhttpd.def
        return
    fi
    if [ -n "$1" ]; then
        need_command python3 python3
        python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    fi
    [ "$1" != python ] || return
    if [ "${PORTABLE:-0}" != 1 ]; then
        need_library libcairo2 src/plot/cairo.def
        need_library libopenblas0 src/backend/cpu/blas.def
        need_library libmicrohttpd12 serve/microhttpd.def
        need_command mpicc libopenmpi-dev
        need_command mpirun openmpi-bin
    fi
    [ "$1" = dev ] || return
    need_command clang-format clang-format
    need_command clang-tidy clang-tidy
    need_command shellcheck shellcheck
    need_command gcovr gcovr
    need_command cmake cmake
    need_command pkg-config pkg-config
}
look "${1:-}"
if [ ${#missing[@]} -eq 0 ]; then
    [ -z "$note" ] || rm -f "$note"
    exit 0
fi
if [ -n "$note" ] && [ -n "$(find "$note" -mmin -10 2>/dev/null)" ] && [ "$(cat "$note")" = "${missing[*]}" ]; then
    echo "setup: still without ${missing[*]} (make setup tries again)"
    exit 1
fi

by_hand() {
    echo "setup: $1; going on without. To install what is missing:"
    echo "    sudo apt-get install -y ${missing[*]}"
    [ -z "$note" ] || echo "${missing[*]}" >"$note"
    exit 1
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
echo "setup: installing, with apt-get as root: ${missing[*]}"
echo "setup: to refuse, stop this and say SETUP=0 (make SETUP=0 ...); make info says what each part gives"
if ! apt install -y "${missing[@]}" && apt update && ! apt install -y "${missing[@]}"; then
    # One package that is not to be had stops no other.
    for package in "${missing[@]}"; do apt install -y "$package"; done
fi
# What counts is what is here now, whatever apt said.
look "${1:-}"
[ ${#missing[@]} -eq 0 ] && exit 0
tail -n 3 "$log"
by_hand "could not install ${missing[*]}"
