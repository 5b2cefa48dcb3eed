#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hang.sh [BUILD]: a job of PyTorch with NCCL on a machine with two GPUs. `top` shows them, one rank skips an
# all_reduce and is named, and ranks that wait for long kernels do not hang. Ends with 1 when something fails.
# The library of NVIDIA and torch are the real ones. PYTHON names the interpreter that has torch.
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="${1:-$here/../../build/dev}"
python="${PYTHON:-python3}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
bad=0

check() { # WHAT, and then a command that must succeed
    local what="$1"
    shift
    if "$@"; then
        echo "right: $what"
    else
        echo "WRONG: $what"
        bad=1
    fi
}

hvdrun() { timeout 150 "$build/hvdrun" "$@"; }

nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader
"$python" -c 'import torch; print("torch", torch.__version__, "NCCL", torch.cuda.nccl.version())'

hvdrun -np 2 "$python" "$here/hang_torch.py" train 8 >"$scratch/train" 2>&1 &
job=$!
for _ in $(seq 600); do
    [[ "$(grep -c ready "$scratch/train")" == 2 ]] && break
    sleep 0.1
done
sleep 1
hvdrun top --once
hvdrun top --once --json >"$scratch/top.json"
check "top shows what the GPU of each rank does" "$python" - "$scratch/top.json" <<'END'
import json
import sys

usage = json.load(open(sys.argv[1]))
print(json.dumps(usage["hosts"][0]["gpus"]))
for rank in usage["ranks"]:
    assert rank["gpus"] == 1 and rank["gpu_power_w"] > 150 and rank["gpu_use_percent"] > 50, rank
    assert rank["gpu_memory_bytes"] > 2**29 and rank["gpu_energy_j"] > 0, rank
for gpu in usage["hosts"][0]["gpus"]:
    assert gpu["uuid"].startswith("GPU-") and gpu["memory_use_percent"] > 0, gpu
END
kill "$job"
wait "$job"

hvdrun -np 2 --hang-timeout 10 --grace 1 "$python" "$here/hang_torch.py" skip 1000 2>&1 | tee "$scratch/skip"
check "it exits with 119" test "${PIPESTATUS[0]}" = 119
check "NCCL says which rank is behind" grep -qE 'rank 1 on \S+ is behind: [0-9,]+ of [0-9,]+ allreduces; in hang_torch.py:[0-9]+ load' "$scratch/skip"

hvdrun -np 2 --hang-timeout 10 --grace 1 "$python" "$here/hang_torch.py" kernels 40 >"$scratch/kernels" 2>&1
status=$?
tail -5 "$scratch/kernels"
check "ranks that wait for kernels do not hang" test "$status" = 0
exit "$bad"
