#!/usr/bin/env bash
# test_cmake.sh: another project finds libmnp with CMake, installed and as a subfolder, and its
# programs run. The libraries are built without optimisation: what is tested is the packaging.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh

source=$PWD/tests/e2e/cmake_consumer
work=$BUILD/cmake-test
quick=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-g0)

installed() {
    rm -rf "$work/prefix"
    cmake -S . -B "$work/mnp" "${quick[@]}" -DCMAKE_INSTALL_PREFIX="$work/prefix" &&
        cmake --build "$work/mnp" && cmake --install "$work/mnp" &&
        cmake -S "$source" -B "$work/found" "${quick[@]}" -DCMAKE_PREFIX_PATH="$work/prefix" &&
        cmake --build "$work/found" && "$work/found/consumer" && "$work/found/consumer_static"
}
hardened() { # as the Makefile's is
    ! command -v readelf >/dev/null || ! grep -q 'HARDEN_LIBS' "$work/mnp/config.mk" ||
        { readelf -dW "$work/prefix"/lib*/libmnp.so | grep -qE 'BIND_NOW|\(FLAGS_1\).*NOW' &&
            readelf --dyn-syms -W "$work/prefix"/lib*/libmnp.so | grep -q __stack_chk_fail; }
}
carriers() { # what shared runs load lies beside the library
    ! command -v mpicc || [ "$(find "$work/prefix" -name libmnp_mpi.so | wc -l)" = 1 ]
}
subfolder() {
    cmake -S "$source" -B "$work/sub" "${quick[@]}" -DMNP_SOURCE="$PWD" &&
        cmake --build "$work/sub" && "$work/sub/consumer" && "$work/sub/consumer_static"
}

if ! command -v cmake >/dev/null; then
    skip cmake "cmake is not installed"
elif [ "$(basename "$BUILD")" != build ]; then
    skip cmake "done once, in the default build"
else
    run find_package installed
    run "objects of shared runs" carriers
    run hardened hardened
    run add_subdirectory subfolder
fi
check_done
