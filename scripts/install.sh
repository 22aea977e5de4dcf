#!/usr/bin/env bash
# install.sh [--remove]: put the command, the libraries, the headers, the pkg-config file, the manual
# page and the trained models under DESTDIR/PREFIX, or take them away again.
# Reads PREFIX, DESTDIR, BUILD, VERSION, LIBS.
set -eu
cd "$(dirname "$0")/.."
root=${DESTDIR:-}${PREFIX:-/usr/local}
so=libmnp.so.$VERSION
soname=libmnp.so.${VERSION%%.*}

if [ "${1:-}" = --remove ]; then
    rm -f "$root/bin/mnp" "$root/lib/libmnp.a" "$root/lib/pkgconfig/mnp.pc" \
        "$root/lib/$so" "$root/lib/$soname" "$root/lib/libmnp.so" "$root/lib/libmnp_cuda.so" \
        "$root/lib/libmnp_mpi.so" "$root/lib/libmnp_nccl.so" \
        "$root/share/man/man1/mnp.1"
    for header in include/*.h; do rm -f "$root/$header"; done
    rm -rf "$root/share/mnp"
    echo "mnp removed from $root"
    exit 0
fi

install -d "$root/bin" "$root/include" "$root/lib/pkgconfig" "$root/share/man/man1"
[ ! -x "$BUILD/mnp" ] || install -m 755 "$BUILD/mnp" "$root/bin/mnp"
install -m 644 include/*.h "$root/include/"
# In the installed archive every internal name is local, so that a program which links it may have
# a json_parse of its own.
ld -r --whole-archive "$BUILD/libmnp.a" -o "$BUILD/mnp-all.o"
objcopy --localize-hidden "$BUILD/mnp-all.o"
rm -f "$root/lib/libmnp.a"
ar qcs "$root/lib/libmnp.a" "$BUILD/mnp-all.o"
install -m 755 "$BUILD/libmnp.so" "$root/lib/$so"
ln -sf "$so" "$root/lib/$soname"
ln -sf "$soname" "$root/lib/libmnp.so"
for part in cuda mpi nccl; do
    [ ! -f "$BUILD/libmnp_$part.so" ] || install -m 755 "$BUILD/libmnp_$part.so" "$root/lib/libmnp_$part.so"
done
install -m 644 man/mnp.1 "$root/share/man/man1/mnp.1"
sed -e "s|@PREFIX@|$PREFIX|" -e "s|@VERSION@|$VERSION|" -e "s|@LIBS@|$LIBS|" mnp.pc.in \
    >"$root/lib/pkgconfig/mnp.pc"
if [ -d models ]; then
    find models -type f | while read -r file; do install -D -m 644 "$file" "$root/share/mnp/$file"; done
fi
echo "mnp $VERSION installed in $root"
