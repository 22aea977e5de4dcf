#!/usr/bin/env bash
# test_emulator_wide.sh: the CUDA kernels that take a dense layer or an attention for all functions
# at once (src/backend/cuda/wide), on the CPU (tests/emulator), wherever they can: ops, and steps of
# training runs against the CPU backend, in each precision, with the same bits in whatever order
# threads run.
if [ -x "$BUILD/emulator/test_cuda" ]; then
    exec "$BUILD/emulator/test_cuda" --wide --small linear attention tiny general image bits precision shapes culprit empty memory scores
fi
echo "skip emulator: it is built on x86-64, with a C++ compiler, without PORTABLE=1"
echo "0 passed, 0 failed, 1 skipped"
