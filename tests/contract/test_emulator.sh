#!/usr/bin/env bash
# test_emulator.sh: the CUDA kernels on the CPU (tests/emulator): every op, and steps of training
# runs against the CPU backend, in each precision, and the same bits in whatever order threads run.
if [ -x "$BUILD/emulator/test_cuda" ]; then
    exec "$BUILD/emulator/test_cuda" --small ops tiny paper general sleep gradient image bits precision shapes attend culprit watch empty
fi
echo "skip emulator: it is built on x86-64, with a C++ compiler, without PORTABLE=1"
echo "0 passed, 0 failed, 1 skipped"
