#!/usr/bin/env bash
# check_library.sh: the promises of libmnp, read from the compiled library in $BUILD: it never
# prints, exits, reads the environment, touches the host's signals or BLAS threads, keeps no
# variable of its own, and the shared library shows the functions of the public headers alone.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
bad=0

forbidden='printf|vprintf|puts|putchar|perror|__printf_chk|__vprintf_chk|stdout|stderr|exit|_exit|_Exit'
forbidden+='|quick_exit|abort|getenv|secure_getenv|setenv|putenv|signal|sigaction|raise|rand|srand'
forbidden+='|omp_set_num_threads|openblas_set_num_threads|setlocale'
calls=$(nm -A -u "$build/libmnp.a" | grep -E " U ($forbidden)(@.*)?$" |
    sed -E 's/^[^:]*:([^:]*):.* U (.*)$/\1 uses \2/')
[ -z "$calls" ] || { echo "$calls" && bad=1; }

# .data.rel.ro holds constant tables with pointers; .data, .bss and thread-local data are state.
state=$(objdump -t "$build/libmnp.a" | awk '
    /file format/ { object = $1; sub(":", "", object) }
    / O \.(data|bss|data\.rel|data\.rel\.local)\t/ || /\*COM\*/ || (/ \.(tdata|tbss)\t/ && !/ d  \./) {
        print object " keeps the variable " $NF }' | grep -v 'DW\.ref\.' | sort -u)
[ -z "$state" ] || { echo "$state" && bad=1; }

# What the shared library shows is what the headers declare with MNP_API, neither more nor less.
declared=$(sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' -e '/^#/d' include/*.h | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*MNP_API[^(]*[ *]\([a-z0-9_]*\)(.*/\1/p' | sort)
[ -n "$declared" ] || { echo "no function was found in include/*.h" && bad=1; }
shown=$(nm -D --defined-only "$build/libmnp.so" | awk '{print $3}' | sort)
extra=$(comm -13 <(echo "$declared") <(echo "$shown"))
[ -z "$extra" ] || { echo "libmnp.so shows, and no header declares: ${extra//$'\n'/ }" && bad=1; }
hidden=$(comm -23 <(echo "$declared") <(echo "$shown"))
[ -z "$hidden" ] || { echo "a header declares, and libmnp.so does not show: ${hidden//$'\n'/ }" && bad=1; }
exit $bad
