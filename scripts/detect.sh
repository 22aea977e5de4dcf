#!/usr/bin/env bash
# detect.sh FILE: what this compiler and machine offer to the build, found by compiling and linking tiny
# programs, written to FILE (config.mk) as make variables. (Libraries that are loaded at run time are not
# asked for: util/syslib.h.) Reads CC and PORTABLE from the environment. A file whose answers still hold
# is left alone: same settings, same tools, no package installed or removed since (KEEP=1: same settings).
# The same file serves CMakeLists.txt.
set -u
out=$1
cc=${CC:-cc}
portable=${PORTABLE:-0}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# links SOURCE FLAGS...: does this program compile and link?
links() {
    local source=$1
    shift
    printf '%s\n' "$source" >"$dir/probe.c"
    # shellcheck disable=SC2086 # CC may carry flags
    $cc -std=c17 "$dir/probe.c" "$@" -o "$dir/probe" >/dev/null 2>&1
}
say() { printf '%s := %s\n' "$1" "$2"; }

# part NAME SOURCE "CFLAGS" "LIBS": writes the part down if its program links; false if not.
part() {
    # shellcheck disable=SC2086 # flags are lists
    if links "$2" $3 $4; then
        say "HAVE_$1" 1
        say "$1_CFLAGS" "$3"
        say "$1_LIBS" "$4"
    else
        return 1
    fi
}

# What the answers depend on is the first line of the file.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
wasm_cc=${WASM_CC:-$(command -v clang || compgen -c clang- | grep -xE 'clang-[0-9]+' | sort -t- -k2n | tail -n 1)}
wasi=${WASI_SYSROOT:-/usr}
tools="$(command -v mpicc) $nvcc ${NCCL_HOME:-} $wasm_cc $wasi"
packages=$(stat -c %y /var/lib/dpkg/status 2>/dev/null)
key="# found with $cc; PORTABLE=$portable; $tools; packages of ${packages:-?}; $(cksum <"$0")"
settings="DETECTED_FOR := $cc PORTABLE=$portable"
grep -qsxF "$key" "$out" && exit 0
[ "${KEEP:-0}" = 1 ] && grep -qsxF "$settings" "$out" && exit 0
if ! links 'int main(void) { return 0; }'; then
    echo "the C compiler \"$cc\" does not work: install gcc or clang, or set CC=..." >&2
    exit 1
fi
exec >"$out.tmp"
echo "$key"
echo "$settings"

# Instruction sets the compiler can write; the processor is asked at run time.
x86='#ifndef __x86_64__
#error other
#endif
#include <immintrin.h>
int main(void) { return !__builtin_cpu_supports("avx2"); }'
links "$x86" -mavx2 -mfma && say HAVE_AVX2 1
links "$x86" -mavx512f -mavx512dq -mavx512vl -mavx512bw -mprefer-vector-width=512 &&
    say HAVE_AVX512 1

# What makes mistakes harder to exploit, as far as this compiler and C library have it.
nothing='#include <string.h>
int main(int argc, char **argv) { return argc > 9 && strlen(argv[9]); }'
harden=()
for flag in -fstack-protector-strong -fstack-clash-protection -fcf-protection; do
    links "$nothing" -Werror "$flag" && harden+=("$flag")
done
say HARDEN_CFLAGS "${harden[*]}"
for level in 3 2; do
    fortify="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$level"
    # shellcheck disable=SC2086 # flags are lists
    links "$nothing" -O2 -Werror $fortify && say FORTIFY_CFLAGS "$fortify" && break
done
links "$nothing" -Wl,-z,relro,-z,now,-z,noexecstack && say HARDEN_LIBS -Wl,-z,relro,-z,now,-z,noexecstack
links "$nothing" -fPIC -pie && say PIE_LIBS -pie

# WebAssembly: clang, its linker wasm-ld, the C library wasi-libc and the compiler's own for wasm32.
# Only the folder of wasi-libc is searched for headers: those of this machine lie beside it.
if [ -n "$wasm_cc" ]; then
    wasm=("$wasm_cc" --target=wasm32-wasi "--sysroot=$wasi" -nostdlibinc -isystem src/wasi
        -isystem "$wasi/include/wasm32-wasi" -msimd128 -mbulk-memory -mnontrapping-fptoint)
    printf '%s\n' '#include <math.h>' 'double f(double x) { return exp(x); }' >"$dir/probe.c"
    if "${wasm[@]}" "$dir/probe.c" -mexec-model=reactor -Wl,--export=f -lwasi-emulated-getpid -o "$dir/probe" >/dev/null 2>&1; then
        say HAVE_WASM 1
        say WASM_COMPILER "${wasm[*]}"
    fi
fi

if [ "$portable" != 1 ]; then
    # Of an MPI the flags of its compiler wrapper: Open MPI answers --showme, MPICH -compile-info.
    if command -v mpicc >/dev/null 2>&1; then
        mpi_cflags=$(mpicc --showme:compile 2>/dev/null || mpicc -compile-info | cut -d' ' -f2-)
        mpi_libs=$(mpicc --showme:link 2>/dev/null || mpicc -link-info | cut -d' ' -f2-)
        part MPI '#include <mpi.h>
        int main(void) { return MPI_Init(0, 0); }' "$mpi_cflags" "$mpi_libs"
    fi
    if [ -n "$nvcc" ]; then
        say HAVE_NVCC 1
        say NVCC "$nvcc"
        # NCCL adds gradients over GPUs; NCCL_HOME names a place of its own.
        cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
        for home in ${NCCL_HOME:-} "$cuda" /usr /usr/local; do
            for lib in "$home/lib" "$home/lib64" "$home/lib/x86_64-linux-gnu"; do
                [ -e "$lib/libnccl.so.2" ] || continue
                part NCCL '#include <nccl.h>
                int main(void) { ncclUniqueId id; return (int)ncclGetUniqueId(&id); }' \
                    "-I$home/include -I$cuda/include" "-L$lib -Wl,-rpath,$lib -l:libnccl.so.2" && break 2
            done
        done
    fi
fi
mv "$out.tmp" "$out"
