#!/usr/bin/env bash
# Checks and times the learner and the networks on a CUDA device; about 9 minutes.
# From the project's folder: bash tests/benchmarks/learner/gpu.sh [record.json] [python]
set -eu
record=${1:-bench-gpu.json}
python=${2:-python3}
cd "$(dirname "$0")/../../.."
"$python" -c 'import torch; print(torch.__version__, torch.cuda.get_device_name())'
"$python" -m pytest -q -p no:cacheprovider -W ignore tests/cppcl/optim/test_devices.py
for kind in cuda cpu; do
    "$python" tests/benchmarks/learner/bench_training.py cufs flickr15k tuberlin --device "$kind" --json "$record"
done
"$python" tests/benchmarks/learner/bench_coding.py --device cuda --json "$record"
OMP_NUM_THREADS=1 "$python" tests/benchmarks/bench_features.py
OMP_NUM_THREADS=1 "$python" tests/benchmarks/bench_features.py --precision
"$python" tests/benchmarks/bench_networks.py --json "$record"
