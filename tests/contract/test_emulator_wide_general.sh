#!/usr/bin/env bash
# test_emulator_wide_general.sh: wide instructions (src/backend/cuda/wide) in the general set of CUDA
# kernels, on the CPU (tests/emulator), as a GPU of compute capability 8.6 has them: ops, and steps
# in each precision, of which one half of the set has fp32 and mixed, the other tf32 and bf16.
if [ -x "$BUILD/emulator/test_cuda" ]; then
    export MNP_EMULATED_GPU=8.6
    exec "$BUILD/emulator/test_cuda" --wide --small linear attention precision
fi
echo "skip emulator: it is built on x86-64, with a C++ compiler, without PORTABLE=1"
echo "0 passed, 0 failed, 1 skipped"
