#!/usr/bin/env bash
# test_binary.sh: what the command and libmnp.so need (libc and libm alone), that they are hardened,
# and that they work on a system with nothing else: a folder with those two libraries, in a chroot.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
cd "$TEST_TMP" || exit 1

needs_libc_alone() {
    ! readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libm|libdl|libpthread|libc\.musl|ld-linux)[-_.]'
}
read_only_relocations() {
    readelf -lW "$1" | grep -q GNU_RELRO && readelf -dW "$1" | grep -qE 'BIND_NOW|\(FLAGS_1\).*NOW'
}
no_code_on_the_stack() { readelf -lW "$1" | grep -qE 'GNU_STACK.* RW +0x'; }
position_independent() { readelf -hW "$1" | grep -q 'Type: *DYN' && readelf -dW "$1" | grep -q '(FLAGS_1).*PIE'; }
stack_protected() { readelf --dyn-syms -W "$1" | grep -q '__stack_chk_fail'; }
fortified() { readelf --dyn-syms -W "$1" | grep -qE '__(snprintf|memcpy|vsnprintf|fprintf)_chk'; }

if ! command -v readelf >/dev/null; then
    skip binary "readelf is not installed"
elif ! grep -q -- '-z,now' "$BUILD/flags"; then
    skip binary "this build is not hardened"
else
    run "mnp needs libc and libm alone" needs_libc_alone "$MNP"
    run "libmnp.so needs libc and libm alone" needs_libc_alone "$BUILD/libmnp.so"
    run "mnp is loaded anywhere" position_independent "$MNP"
    for file in "$MNP" "$BUILD/libmnp.so"; do
        run "stack protector: ${file##*/}" stack_protected "$file"
        run "fortified: ${file##*/}" fortified "$file"
    done
    # objects of another build may still lie there
    for file in "$MNP" "$BUILD/libmnp.so" "$BUILD"/libmnp_*.so; do
        [ "$file" -nt "$BUILD/flags" ] || continue
        run "read-only relocations: ${file##*/}" read_only_relocations "$file"
        run "no code on the stack: ${file##*/}" no_code_on_the_stack "$file"
    done
fi

# ---- nothing but libc and libm -------------------------------------------------------------------
bare() { chroot "$PWD/root" /mnp "$@"; }
trains() { bare train --data rbf --functions 20 --preset tiny --steps 3 --quiet --out /m && bare info /m.safetensors; }
large_gp() { # more points than go to a LAPACK from
    bare train --data rbf --functions 8 --model gp --steps 1 --quiet --out /gp &&
        [ "$(bare sample /gp.safetensors --grid=-2:2:300 -n 1 | wc -l)" = 301 ]
}
svg() { bare plot --log /m.log.csv --out /l.svg && grep -q '</svg>' root/l.svg; }
no_file() { [ ! -e root/l.png ] && [ ! -e root/l.pdf ]; }
if [ "$(id -u)" != 0 ] || ! chroot / true 2>/dev/null; then
    skip bare "only root may chroot"
else
    mkdir root
    cp "$MNP" root/mnp
    ldd "$MNP" | grep -oE '/[^ ]+' | while read -r file; do
        mkdir -p "root$(dirname "$file")" && cp "$file" "root$file"
    done
    run "trains without any other library" trains
    run "a Gaussian process without LAPACK" large_gp
    run "SVG without any other library" svg
    for kind in png pdf; do
        run "$kind without cairo: one line" fails 1 \
            "PNG and PDF need libcairo.so.2: apt-get install libcairo2" bare plot --log /m.log.csv --out "/l.$kind"
    done
    run "nothing was written" no_file
fi
check_done
