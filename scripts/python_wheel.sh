#!/usr/bin/env bash
# python_wheel.sh [cuda]: pack the library that make has built into a wheel, in dist/.
#
#   (nothing)   python/mnp with $BUILD/libmnp.so and two models
#   cuda        $BUILD/libmnp_cuda.so alone, an extra wheel: it lands beside libmnp.so
#
# The wheel serves every Python 3; auditwheel finds the oldest C library that it runs on, and names the
# wheel after it. The tools live in a virtual environment in $BUILD/python. Reads BUILD and PYTHON.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/python_tools.sh
. scripts/python_tools.sh
part=${1:-mnp}
case $part in
mnp) source=. name=mnp library=libmnp.so variable=MNP_LIBRARY_FILE ;;
cuda) source=python/cuda name=mnp_cuda library=libmnp_cuda.so variable=MNP_CUDA_FILE ;;
*) die "no part '$part': there are mnp (the default) and cuda" ;;
esac
[ -f "$BUILD/$library" ] || die "there is no $BUILD/$library: make it first (CUDA needs nvcc)"
set_up_tools

# Neither debug information nor the names of this machine's folders go into the wheel.
packed=$work/$part
rm -rf "$packed" && mkdir -p "$packed"
strip --strip-unneeded -o "$packed/$library" "$BUILD/$library"
python -m build --wheel --no-isolation --outdir "$packed/plain" \
    -Cbuild-dir="$packed/cmake" -Ccmake.define.$variable="$packed/$library" "$source" >"$packed/log" 2>&1 ||
    { tail -n 30 "$packed/log" && die "the wheel was not built: see $packed/log"; }

# Nothing is to be grafted in: the library loads what it can use of a machine at run time.
auditwheel repair --wheel-dir "$packed/named" "$packed"/plain/*.whl >>"$packed/log" 2>&1 ||
    { tail -n 30 "$packed/log" && die "auditwheel refused the wheel: see $packed/log"; }
wheel=$(echo "$packed"/named/*.whl)
grafted=$(python -m zipfile --list "$wheel" | grep -F "$name.libs/" || true)
[ -z "$grafted" ] || die "auditwheel put other libraries in: $grafted"
auditwheel show "$wheel" | tee "$packed/show" | sed 's/^/  /'
tag=$(basename "$wheel" .whl | sed 's/.*-none-//; s/\..*//')
grep -qF "\"$tag\"" "$packed/show" || die "auditwheel does not confirm $tag"
mkdir -p dist
rm -f dist/"$name"-*.whl
cp "$wheel" dist/
ls -l dist/"$name"-*.whl
