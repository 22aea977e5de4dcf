#!/usr/bin/env bash
# test_setup.sh: what make setup, demo and test install and when, on a made-up machine: a folder that
# is the whole PATH, with an apt-get that installs into it. Nothing real is installed.
set -u
. tests/check.sh
top=$PWD
machine=$TEST_TMP/machine # the commands of the made-up machine, and what is installed
export machine

fake() { # NAME: a command whose text comes on stdin
    cat >"$machine/bin/$1" && chmod +x "$machine/bin/$1"
}
mkdir "$TEST_TMP/tools"
for tool in make bash sh awk cat chmod cksum cmp cp cut date dirname env find grep head ls mkdir mktemp mv \
    nproc readlink rm sed sleep stat tail timeout touch tr true uname xargs; do
    ln -s "$(type -P $tool)" "$TEST_TMP/tools/$tool"
done
# A machine with a compiler, make and the basic tools, root and a network; nothing optional.
new_machine() {
    cd "$top" && rm -rf "$machine" && mkdir -p "$machine/tree" &&
        cp -a "$TEST_TMP/tools" "$machine/bin" || return 1
    fake cc <<'END'
#!/bin/sh
# Compiles everything, but mpi.h only where its package says it is.
for word; do
    case $word in -I"$machine/mpi") exit 0 ;; *.c) source=$word ;; esac
done
[ -z "$source" ] || ! grep -q mpi.h "$source"
END
    : >"$machine/libraries"
    : >"$machine/online"
    fake id <<<'#!/bin/sh
echo 0'
    fake ldconfig <<<'#!/bin/sh
cat "$machine/libraries"'
    fake apt-get <<'END'
#!/bin/bash
# Notes how it was called and what set-up had said by then; installs what it knows, if online.
[ -e "$machine/calls" ] || cat "$machine/said" >"$machine/said-before" 2>/dev/null
echo "$*" >>"$machine/calls"
[ -e "$machine/online" ] || exit 100
[[ " $* " == *" install "* ]] || exit 0
for package in "$@"; do
    [[ "$(cat "$machine/refused" 2>/dev/null)" == "$package" ]] && exit 100
done
for package in "$@"; do
    case $package in
    libopenmpi-dev) printf '#!/bin/sh\n[ "$1" != --showme:compile ] || echo "-I%s"\n' "$machine/mpi" >"$machine/bin/mpicc" ;;
    openmpi-bin) printf '#!/bin/sh\n' >"$machine/bin/mpirun" ;;
    libcairo2) echo "	libcairo.so.2 (libc6,x86-64) => /usr/lib/libcairo.so.2" >>"$machine/libraries" ;;
    libopenblas0) echo "	libopenblas.so.0 (libc6,x86-64) => /usr/lib/libopenblas.so.0" >>"$machine/libraries" ;;
    libmicrohttpd12) echo "	libmicrohttpd.so.12 (libc6,x86-64) => /usr/lib/libmicrohttpd.so.12" >>"$machine/libraries" ;;
    esac
done
chmod +x "$machine"/bin/mpi* 2>/dev/null
exit 0
END
    # shellcheck disable=SC2046 # a list
    cp -r Makefile scripts "$machine/tree/" && cp --parents include/*.h $(find src serve -name '*.def') "$machine/tree/"
}
# on_it ARGUMENT...: make there, with nothing of this machine's environment; what it says is kept
on_it() {
    (cd "$machine/tree" && env -i PATH="$machine/bin" machine="$machine" ${refuse:+"$refuse"} \
        make --silent CUDA=0 MPI=0 "$@") >"$machine/said" 2>&1
    local status=$?
    cat "$machine/said"
    return $status
}
calls() { wc -l 2>/dev/null <"$machine/calls" || echo 0; }
said() { grep -qF -- "$1" "$machine/said" || { echo "did not say: $1" && return 1; }; }
quiet() { ! grep -F setup: "$machine/said"; }
has_mpi() { on_it info | grep -E '^  MPI  *yes'; }
all_packages="libcairo2 libopenblas0 libmicrohttpd12 libopenmpi-dev openmpi-bin"

told_before() { # what, as whom, and how to refuse, before the first call of apt-get
    local package
    new_machine && on_it setup || return 1
    for package in $all_packages; do grep -q "as root:.* $package" "$machine/said-before" || return 1; done
    grep -q 'SETUP=0' "$machine/said-before" && [ "$(grep -c 'as root' "$machine/said")" = 1 ]
}
run "set-up says what it installs and how to refuse, before it does" told_before

seen_at_once() {
    new_machine && ! has_mpi && on_it setup && has_mpi
}
run "what set-up installed is found at once" seen_at_once

by_hand() { # there, and gone again
    new_machine && ! has_mpi && (PATH=$machine/bin:$PATH apt-get install libopenmpi-dev) && has_mpi &&
        rm "$machine/bin/mpicc" && ! has_mpi
}
run "so is what was installed or removed by hand" by_hand

as_built() { # root may have another PATH: what was found for the build holds
    new_machine && on_it setup && has_mpi && rm "$machine/bin/mpicc" && on_it --dry-run install
    grep -q '^HAVE_MPI' "$machine/tree/build/config.mk" && ! has_mpi
}
run "make install installs what was built" as_built

complete() {
    new_machine && on_it setup && [ "$(calls)" -gt 0 ] && rm "$machine/calls" && on_it setup && quiet &&
        on_it test
    quiet && [ "$(calls)" = 0 ]
}
run "a complete set-up is silent" complete

for goal in demo test; do
    sets_up() {
        new_machine && on_it $goal
        said "as root: " && rm "$machine/calls" && on_it $goal
        quiet && [ "$(calls)" = 0 ] && has_mpi
    }
    run "make $goal sets up" sets_up
done

builds_alone() {
    new_machine && on_it info && on_it examples && quiet && [ "$(calls)" = 0 ]
}
run "other goals install nothing" builds_alone

offline_then_online() {
    local before
    new_machine && rm "$machine/online" && on_it test
    said "could not install" && said "sudo apt-get install -y libcairo2" && before=$(calls) || return 1
    on_it test
    said "still without libcairo2" && [ "$(calls)" = "$before" ] || return 1
    ! on_it setup && said "could not install" && [ "$(calls)" -gt "$before" ] || return 1
    touch "$machine/online"
    on_it setup && has_mpi && on_it test
    quiet
}
run "a set-up that failed is tried again by make setup" offline_then_online

later() {
    new_machine && rm "$machine/online" && on_it test
    touch "$machine/online" && touch -d '11 minutes ago' "$machine/tree/build/setup-tried" && on_it test
    said "as root: " && has_mpi
}
run "and by make test ten minutes later" later

one_is_not_to_be_had() {
    new_machine && echo libopenblas0 >"$machine/refused" && ! on_it setup && has_mpi &&
        on_it test
    said "still without libopenblas0 (" && rm "$machine/refused" && on_it setup && quiet_after
}
quiet_after() { on_it setup && quiet; }
run "one package that is not to be had stops no other" one_is_not_to_be_had

refused() { # as a make variable, and from the environment
    new_machine && on_it setup SETUP=0 && quiet && on_it test SETUP=0
    quiet || return 1
    refuse=SETUP=0 on_it test
    quiet && refuse=SETUP=0 on_it setup && quiet && [ "$(calls)" = 0 ]
}
run "SETUP=0 installs nothing and says nothing" refused

unprivileged() {
    new_machine && fake id <<<'#!/bin/sh
echo 1000' && ! on_it setup && said "no right to install" && said "    sudo apt-get install -y $all_packages" && [ "$(calls)" = 0 ]
}
run "without rights it prints the line to run" unprivileged

with_sudo() {
    new_machine && fake id <<<'#!/bin/sh
echo 1000' && fake sudo <<<'#!/bin/sh
[ "$1" = -n ] || exit 1
shift
echo "$*" >>"$machine/as-root"
exec "$@"' && on_it setup && said "as root: " && grep -q apt-get "$machine/as-root" && has_mpi
}
run "with sudo that asks nothing it installs" with_sudo

no_apt() {
    new_machine && rm "$machine/bin/apt-get" && ! on_it setup && said "has no apt" &&
        said "sudo apt-get install -y $all_packages"
}
run "without apt it prints the line to run" no_apt

no_compiler() { # no stale answer is left behind: a compiler that comes later is found
    new_machine && mv "$machine/bin/cc" "$machine/cc" && ! on_it info && said 'the C compiler "cc" does not work' &&
        mv "$machine/cc" "$machine/bin/cc" && on_it info && said 'CPU kernels'
}
run "a compiler that comes later is found" no_compiler
check_done
