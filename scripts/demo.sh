#!/usr/bin/env bash
# demo.sh: what make demo shows.
set -eu
cd "$(dirname "$0")/.."
mnp=${BUILD:-build}/mnp
"$mnp" --version
