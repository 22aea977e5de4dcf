#!/usr/bin/env bash
# cluster.sh [ROUNDS]: what sharing a training step over ranks costs, as a table (lab/notebook/cluster.md).
#
#   same batch   1 rank x 2 threads against 2 ranks x 1 thread, and whether the bits agree
#   weak         2 ranks x 1 thread against two processes that train at the same time and know
#                nothing of each other, each on as many functions: what is lost is lost to sharing,
#                not to cores that slow each other down
#   hosts        the same between two network namespaces with a cable of veth, and with one that
#                keeps every packet for 1 ms (netem where the kernel has it, else slow_link.py);
#                as root only
#
# Runs of a row alternate, ROUNDS times; a run's number is the median of its steps, a row's the median
# of its runs. PREFIX goes in front of every run ("nice -n -20" on a busy machine).
set -u
cd "$(dirname "$0")/../.." || exit 1
MNP=$PWD/${MNP:-build/mnp} PREFIX=${PREFIX:-} rounds=${1:-5} steps=${STEPS:-6}
links=$PWD/lab/cluster/slow_link.py
dir=$(mktemp -d)
cd "$dir" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
cable=
clean() {
    [ -z "$cable" ] || kill "$cable" 2>/dev/null
    ip netns del mnp1 2>/dev/null
    ip netns del mnp2 2>/dev/null
    rm -rf "$dir"
}
trap clean EXIT

median() { sort -g | awk '{a[NR] = $1} END {print NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2}'; }
run="train --data monotonic --functions 1000 --preset paper --seed 1 --quiet --set valid_every=100000 --set valid_functions=1 --steps 100000"
# Seconds of a step: the median over a run's steps but the first.
timed() { # out "flags" launcher...
    local out=$1 flags=$2
    shift 2
    # shellcheck disable=SC2086
    $PREFIX "$@" "$MNP" $run $flags --out "$out" >"$out.txt" 2>&1 || {
        cat "$out.txt" >&2
        return 1
    }
    awk -F, 'NR > 2 {print ($7 - last) / ($1 - step)} {step = $1; last = $7}' "$out.log.csv" | median
}
# Two processes without a job, at the same time: the mean of their medians.
unrelated() { # out "flags"
    timed "$1" "$2" env >"$1.1" &
    timed "$1b" "$2" env >"$1.2"
    wait $!
    awk '{sum += $1} END {print sum / NR}' "$1.1" "$1.2"
}
# compare NAME one|two "flags of the base" "flags of the ranks" launcher...: a row. one: the base is one
# process with the same batch, and the bits are compared; two: two unrelated ones
compare() {
    local name=$1 kind=$2 base=$3 ranks=$4 a=() b=() note=
    shift 4
    for _ in $(seq "$rounds"); do
        if [ "$kind" = one ]; then a+=("$(timed base "$base" env)"); else a+=("$(unrelated base "$base")"); fi
        b+=("$(timed other "$ranks" "$@")") || return 1
    done
    [ "$kind" = one ] && note="same bits" && { cmp -s base.train.safetensors other.train.safetensors || note="OTHER BITS"; }
    awk -v name="$name" -v a="$(printf '%s\n' "${a[@]}" | median)" -v b="$(printf '%s\n' "${b[@]}" | median)" -v note="$note" \
        'BEGIN {printf "%-44s %8.3f %8.3f %7.1f %%  %s\n", name, a, b, 100 * a / b, note}'
}

echo "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg); $(mpirun --version | head -n 1)"
echo "paper preset, seconds a step: medians of $((steps - 1)) steps or more and $rounds alternating runs"
printf '%-44s %8s %8s %9s\n' "" base ranks speed
two="mpirun -n 2" few="--stop-at $steps" many="--stop-at $((8 * steps))"
compare "batch 100: 1 rank x 2 threads, 2 x 1" one "--batch 100 --threads 2 $few" "--batch 100 --threads 1 $few" $two
compare "batch 100: the same, --reduce fast" one "--batch 100 --threads 2 $few" "--batch 100 --threads 1 --reduce fast $few" $two
compare "2 ranks, 12 functions each" two "--batch 12 --threads 1 $many" "--batch 24 --threads 1 $many" $two
compare "2 ranks, 50 functions each" two "--batch 50 --threads 1 $few" "--batch 100 --threads 1 $few" $two
compare "2 ranks, 125 functions each" two "--batch 125 --threads 1 $few" "--batch 250 --threads 1 $few" $two

# ---- hosts of our own making
[ "$(id -u)" = 0 ] && command -v ip >/dev/null || { echo "hosts: needs root and ip" && exit 0; }
cat >agent <<'A'
#!/bin/sh
# The remote shell of mpirun: a namespace with a host name of its own.
host=$1
shift
exec ip netns exec "mnp${host##*.}" unshare -u sh -c "hostname host${host##*.}; $*"
A
chmod +x agent
hosts() { # makes the two namespaces; $1: veth or slow
    ip netns del mnp1 2>/dev/null
    ip netns del mnp2 2>/dev/null
    ip netns add mnp1 && ip netns add mnp2 || return 1
    if [ "$1" = slow ]; then
        python3 "$links" mnpt1 mnpt2 1 >link.txt &
        cable=$!
        until grep -q ready link.txt; do kill -0 $cable 2>/dev/null && sleep 0.05 || return 1; done
    else
        ip link add mnpt1 type veth peer name mnpt2 || return 1
    fi
    local k
    for k in 1 2; do
        ip link set mnpt$k netns mnp$k
        ip -n mnp$k addr add 10.77.0.$k/24 dev mnpt$k
        [ "$1" = slow ] && ip -n mnp$k link set mnpt$k mtu 60000
        ip -n mnp$k link set mnpt$k up
        ip -n mnp$k link set lo up
    done
    [ "$1" != netem ] || for k in 1 2; do ip netns exec mnp$k tc qdisc add dev mnpt$k root netem delay 1ms || return 1; done
}
# A job of two ranks, one on each host.
cat >far <<F
#!/bin/sh
exec ip netns exec mnp1 unshare -u sh -c 'hostname host1; exec "\$@"' sh mpirun -n 2 \\
    --host 10.77.0.1:1,10.77.0.2:1 --mca plm_rsh_agent $dir/agent --mca btl self,tcp \\
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 "\$@"
F
chmod +x far
for kind in veth netem slow; do
    if ! hosts $kind >hosts.txt 2>&1; then
        echo "hosts ($kind): not to be had here ($(head -n 1 hosts.txt))"
        continue
    fi
    trip=$(ip netns exec mnp1 ping -c 3 -i 0.2 -q 10.77.0.2 2>/dev/null | sed -n 's|.*= [^/]*/\([^/]*\)/.*|\1|p')
    compare "$kind, round trip ${trip:-?} ms, 12 each" two "--batch 12 --threads 1 $many" "--batch 24 --threads 1 $many" "$dir/far"
    compare "$kind, round trip ${trip:-?} ms, 125 each" two "--batch 125 --threads 1 $few" "--batch 250 --threads 1 $few" "$dir/far"
    [ -z "$cable" ] || { kill "$cable" && wait "$cable" 2>/dev/null; }
    cable=
done
