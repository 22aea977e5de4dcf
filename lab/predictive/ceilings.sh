#!/usr/bin/env bash
# ceilings.sh [FUNCTIONS] [TASK...]: the scores of the true process on the predictive tasks, as the table of RESULTS.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
mnp=${MNP:-${BUILD:-build}/mnp}
functions=${1:-1000}
shift || true
tasks=("$@")
[ $# -gt 0 ] || tasks=(tnp-rbf tnp-matern tnp-periodic np-eq np-matern np-weakly-periodic sawtooth)
printf '| task | functions | joint | over all targets | each by itself | over all targets | CRPS |\n|---|---:|---:|---:|---:|---:|---:|\n'
for task in "${tasks[@]}"; do
    "$mnp" eval truth --data "$task" --functions "$functions" --seed 0 --json --quiet |
        python3 -c 'import json, sys
r = json.load(sys.stdin)
print("| `{data}` | {functions} | {joint:.3f} ± {joint_se:.3f} | {joint_pooled:.3f} | {marginal:.3f} ± {marginal_se:.3f} | {marginal_pooled:.3f} | {crps:.4f} |".format(**r))'
done
