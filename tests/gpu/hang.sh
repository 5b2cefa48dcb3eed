#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hang.sh [BUILD]: a job of PyTorch with NCCL on a machine with two GPUs. `top` must show them. When one rank skips an
# all_reduce, hvdrun must name it, with the evidence of NCCL and PyTorch. Ranks that wait for long kernels do not hang.
# Ends with 1 when something fails.
# NVIDIA's library and torch are the real ones. PYTHON names the interpreter that has torch.
# shellcheck source=tests/gpu/begin.sh
source "$(dirname "${BASH_SOURCE[0]}")/begin.sh"
python="${PYTHON:-python3}"

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

hvdrun -np 2 --hang-timeout 10 --grace 1 --evidence "$scratch/evidence" "$python" "$here/hang_torch.py" skip 1000 2>&1 |
    tee "$scratch/skip"
check "it exits with 119" test "${PIPESTATUS[0]}" = 119
check "NCCL says which rank is behind" grep -qE 'rank 1 on \S+ is behind: [0-9,]+ of [0-9,]+ allreduces; in hang_torch.py:[0-9]+ load' "$scratch/skip"
check "PyTorch does not complain about our variables" test -z "$(grep -i deprecat "$scratch/skip")"
folder="$(echo "$scratch"/evidence/*)"
(cd "$folder" && ls -lR && head -c 1500 ras_0.json)
check "the evidence has the flight recorder of both ranks, and what NCCL says" "$python" - "$folder" <<'END'
import json
import pickle
import sys

folder = sys.argv[1]
facts = json.load(open(folder + "/facts.json"))
print(json.dumps(facts["flight_recorder"]), facts["rank_by"], facts["hosts"][0].get("gpus"))
last = []
for rank in sorted(facts["flight_recorder"], key=lambda one: one["rank"]):  # in the order of their dumps
    with open(f"{folder}/{rank['file']}", "rb") as file:
        dump = pickle.load(file)
    last.append(dump["pg_status"]["0"]["last_enqueued_collective"] if "0" in dump["pg_status"]
                else list(dump["pg_status"].values())[0]["last_enqueued_collective"])
print("last collectives:", last)
assert len(last) == 2 and last[0] == last[1] + 1, last
assert facts["rank"] == 1 and facts["rank_by"] == "nccl", facts
counts = [rank["collective_counts"]["AllReduce"] for rank in json.load(open(folder + "/ras_0.json"))["communicators"][0]["ranks"]]
assert counts[0] == counts[1] + 1, counts
END
hvdrun explain "$folder" | tee "$scratch/story"
check "explain names both" grep -q "ras_0.json has NCCL's own numbers" "$scratch/story"
(cd "$folder" && "$python" -m torch.distributed.flight_recorder.fr_trace --prefix rank_ flight_recorder 2>&1 | tail -20)

hvdrun -np 2 --hang-timeout 10 --grace 1 "$python" "$here/hang_torch.py" kernels 40 >"$scratch/kernels" 2>&1
status=$?
tail -5 "$scratch/kernels"
check "ranks that wait for kernels do not hang" test "$status" = 0
exit "$bad"
