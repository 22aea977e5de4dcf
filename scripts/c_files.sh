#!/usr/bin/env bash
# c_files.sh: every C, C++ and CUDA file of the project, one a line.
find include src util serve cli lab bench tests examples -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' \) 2>/dev/null |
    LC_ALL=C sort
