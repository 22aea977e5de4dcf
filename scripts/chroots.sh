#!/usr/bin/env bash
# chroots.sh [CASE...]: make demo and make test of a clean clone of HEAD on clean machines: Debian 12
# in chroots made with debootstrap. Needs root and, for the first run and most cases, a network.
#
#   root        a compiler and make alone, as root: set-up installs what it likes
#   offline     the same without a network
#   user        the same, as an unprivileged user
#   blas        with Debian's reference BLAS (libblas-dev), as root
#   openblas    with OpenBLAS (libopenblas-dev), as root
#   python      make wheel and make test-python instead, as root
#
# Without CASE all six, one after the other. Prints a table; the status is 0 if both commands passed
# in every case, 1 if one failed, 2 if a chroot cannot be made here. Reads
#   CHROOTS     where they are made (/var/tmp/mnp-chroots): bookworm.tar is kept there for later runs
#               (remove it to have it made anew), and logs/CASE-{prepare,COMMAND}.log
#   MIRROR      the Debian mirror (that of this machine's apt, else the one debootstrap knows)
#   KEEP=1      leaves the chroots in place
#
# A case mounts in a namespace of its own, which ends with it: nothing stays mounted, whatever happens.
set -u
cases=(root offline user blas openblas python)
release=bookworm
folder=${CHROOTS:-/var/tmp/mnp-chroots}
base=$folder/$release.tar
logs=$folder/logs
certificates=/etc/host-certificates.crt # in a chroot, those of this machine: a proxy may have its own

say() { echo "chroots.sh: $*" >&2; }
die() { say "$*" && exit 2; }

# ---- inside the namespaces of a case: chroots.sh --in ROOT CASE COMMAND... -----------------------
devices() { # ROOT: only those that a program may ask for, so that none can be lost
    local name
    mount -t tmpfs -o mode=755 tmpfs "$1/dev" && mkdir "$1/dev/shm" "$1/dev/pts" &&
        mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm" &&
        mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/dev/pts" &&
        ln -s /proc/self/fd "$1/dev/fd" && ln -s pts/ptmx "$1/dev/ptmx" &&
        ln -s /proc/self/fd/0 "$1/dev/stdin" && ln -s /proc/self/fd/1 "$1/dev/stdout" &&
        ln -s /proc/self/fd/2 "$1/dev/stderr" || return 1
    for name in null zero full random urandom tty; do
        touch "$1/dev/$name" && mount --bind "/dev/$name" "$1/dev/$name" || return 1
    done
}
inside() { # ROOT CASE COMMAND...
    local root=$1 who=root network=() home=/root pip=()
    if [ -e "$root$certificates" ]; then pip=("PIP_CERT=$certificates"); fi
    if [ "$2" = user ]; then who=user home=/home/user; fi
    if [ "$2" = offline ]; then network=(unshare --net); fi
    shift 2
    mount -t proc proc "$root/proc" || die "cannot mount $root/proc"
    devices "$root" || die "cannot make $root/dev"
    # shellcheck disable=SC2016 # the last shell reads its own arguments
    "${network[@]}" chroot --userspec="$who:$who" "$root" /usr/bin/env -i \
        PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME="$home" LANG=C.UTF-8 "${pip[@]}" \
        /bin/bash -c 'cd "$HOME" && cd "$0" && exec "$@"' "$@"
}
if [ "${1:-}" = --in ]; then
    shift
    inside "$@"
    exit
fi

# apart COMMAND...: mounts and processes of the command end with it, and with this script
apart() {
    unshare --mount --pid --fork --kill-child "$@" </dev/null &
    wait $!
}
# within CASE FOLDER COMMAND...: in the chroot of the case; the folder is seen from the home folder
within() { apart "$0" --in "$folder/$1" "$@"; }
tidy() {
    local jobs
    jobs=$(jobs -p)
    # shellcheck disable=SC2086 # a list; unshare heeds no other signal
    [ -z "$jobs" ] || kill -KILL $jobs
    [ "${KEEP:-0}" = 1 ] || (cd "$folder" && rm -rf base clone "${cases[@]}")
}

# ---- the base: made once -------------------------------------------------------------------------
mirror() { # the one apt reaches here, if it has this release
    [ -n "${MIRROR:-}" ] && echo "$MIRROR" && return
    # shellcheck disable=SC2016 # the names are apt's
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
        awk -v release="$release" '$2 == release {print $1; exit}'
}
make_base() {
    local tree=$folder/base include=gcc,libc6-dev,make mirror
    mirror=$(mirror)
    [[ $mirror == https:* ]] && include+=,ca-certificates
    say "making $base, once (log: $logs/debootstrap.log)"
    rm -rf "$tree"
    apart debootstrap --variant=minbase --include=$include "$release" "$tree" ${mirror:+"$mirror"} \
        >"$logs/debootstrap.log" 2>&1 || die "debootstrap failed: see $logs/debootstrap.log"
    # proxies and the like, as apt has them here
    apt-config dump 2>/dev/null | grep -E '^Acquire::(https?::|Check-Valid-Until)' >"$tree/etc/apt/apt.conf.d/90host"
    chroot "$tree" useradd --create-home --shell /bin/bash user && chroot "$tree" apt-get clean &&
        tar -C "$tree" -cf "$base.new" . && mv "$base.new" "$base" && rm -rf "$tree"
}

# ---- a case --------------------------------------------------------------------------------------
prepare() { # CASE: its chroot, its packages, a clean clone
    local root=$folder/$1 home=root package=()
    [ "$1" = user ] && home=home/user
    [ "$1" = blas ] && package=(libblas-dev)
    [ "$1" = openblas ] && package=(libopenblas-dev)
    rm -rf "$root" && mkdir "$root" && tar -C "$root" -xf "$base" && cp /etc/resolv.conf "$root/etc/" || return 1
    if [ ${#package[@]} -gt 0 ]; then
        within "$1" . sh -c "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
            --no-install-recommends ${package[*]}" || return 1
    fi
    [ "$1" != python ] || cp /etc/ssl/certs/ca-certificates.crt "$root$certificates" || return 1
    cp -a "$folder/clone" "$root/$home/mnp" && chown -R --reference="$root/$home" "$root/$home/mnp"
}
command_of() { # CASE NAME: make NAME, timed; says how it went in "result" and "seconds"
    local start=$SECONDS
    result=pass
    within "$1" mnp make "$2" >"$logs/$1-$2.log" 2>&1 || result="FAIL ($?)"
    seconds=$((SECONDS - start))
}
try() { # CASE: one row of the table; the status as above
    local commands=(demo test) first first_seconds count
    [ "$1" != python ] || commands=(wheel test-python)
    if ! prepare "$1" >"$logs/$1-prepare.log" 2>&1; then
        row "$1" "not made" "" "" "" "see $logs/$1-prepare.log"
        return 2
    fi
    command_of "$1" "${commands[0]}"
    first=$result first_seconds=$seconds
    command_of "$1" "${commands[1]}"
    count=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$logs/$1-${commands[1]}.log" | tail -n 1)
    row "$1" "$first" "$first_seconds" "$result" "$seconds" "$count"
    [ "${KEEP:-0}" = 1 ] || rm -rf "${folder:?}/$1"
    [ "$first$result" = passpass ]
}
row() { printf '%-9s  %-9s %5s  %-9s %5s  %s\n' "$@"; }

[ "$(id -u)" = 0 ] || die "needs root (debootstrap and chroot do)"
for tool in debootstrap git unshare tar; do
    command -v $tool >/dev/null || die "needs $tool: apt-get install debootstrap git util-linux tar"
done
[ $# -eq 0 ] && set -- "${cases[@]}"
for case in "$@"; do
    [[ " ${cases[*]} " == *" $case "* ]] || die "no case '$case': there are ${cases[*]}"
done
top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$logs"
# Two runs at once would take each other's folders away.
exec 9>"$folder/lock"
flock -w 30 9 || die "another run uses $folder: wait, or set CHROOTS"
trap tidy EXIT
trap 'exit 130' INT TERM
[ -e "$base" ] || make_base || die "could not make $base"
rm -rf "$folder/clone" && git clone --quiet --depth 1 "file://$top" "$folder/clone" || die "cannot clone $top"
status=0
row case "make demo" s "make test" s "$(git -C "$folder/clone" log -1 --format='%h, Debian 12')"
for case in "$@"; do
    try "$case"
    result=$?
    [ $status = 1 ] || [ $result = 0 ] || status=$result
done
exit $status
