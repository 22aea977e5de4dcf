#!/usr/bin/env bash
# test_emulator_general.sh: the general set of CUDA kernels on the CPU (tests/emulator), as a GPU of
# compute capability 8.6 has them: no more than 99 KB of shared memory, nothing of what came later.
# Every op, and steps of training runs against the CPU backend, in each precision, with the same bits
# in whatever order threads run.
if [ -x "$BUILD/emulator/test_cuda" ]; then
    export MNP_EMULATED_GPU=8.6
    exec "$BUILD/emulator/test_cuda" --small ops tiny paper image bits precision shapes culprit empty
fi
echo "skip emulator: it is built on x86-64, with a C++ compiler, without PORTABLE=1"
echo "0 passed, 0 failed, 1 skipped"
