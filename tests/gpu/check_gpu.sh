#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_gpu.sh [HVDRUN]: on a machine with GPUs, what hvdrun finds against what nvidia-smi says: how
# many, in which order, near which CPUs, and what --gpus-per-proc and --nic-hints make of it. On a
# healthy machine, `hvdrun check --gpu` has no finding in ROUNDS runs (20). Prints each comparison;
# ends with 1 when one differs. Needs no package but NVIDIA's driver.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
hvdrun="${1:-$here/../../build/dev/hvdrun}"
bad=0
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

compare() { # WHAT WANTED FOUND
    if [[ "$2" == "$3" ]]; then
        echo "same: $1: $(tr '\n' ' ' <<<"$2")"
    else
        bad=1
        printf 'DIFFERENT: %s\n  nvidia-smi: %s\n  hvdrun:     %s\n' "$1" "$(tr '\n' ' ' <<<"$2")" "$(tr '\n' ' ' <<<"$3")"
    fi
}

bind() { # ARGUMENT...: the lines about bindings, without the host's name
    env -u CUDA_VISIBLE_DEVICES "$hvdrun" "$@" --report-bindings true 2>&1 | sed 's/^hvdrun: [^:]*: //'
}

smi="$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader)"
count="$(grep -c . <<<"$smi")"
report="$(bind -np "$count" --bind-to gpu)"
echo "$report"
ls -d /proc/driver/nvidia/gpus/* /sys/bus/pci/drivers/nvidia/*:* /dev/nvidia[0-9]* 2>/dev/null || true
nvidia-smi topo -m || true

# nvidia-smi writes the domain in 8 digits and capitals
addresses="$(tr 'A-F' 'a-f' <<<"$smi" | sed 's/^0000//')"
compare "PCI addresses" "$addresses" "$(sed -n 's/^GPU [0-9]* at \([^,: ]*:[^,: ]*:[^,: ]*\).*/\1/p' <<<"$report")"
compare "slots when no number is given" "$count" \
    "$(env -u CUDA_VISIBLE_DEVICES "$hvdrun" sh -c 'echo x' | grep -c x)"

near=""
for address in $addresses; do
    near+="$(cat "/sys/bus/pci/devices/$address/local_cpulist" 2>/dev/null || true)"$'\n'
done
compare "near CPUs (of /sys)" "${near%$'\n'}" "$(sed -n 's/^GPU [0-9]* .*near CPUs \([^:]*\):.*/\1/p' <<<"$report")"

# shellcheck disable=SC2016 # for the workers
parts="$(env -u CUDA_VISIBLE_DEVICES "$hvdrun" -np "$count" --gpus-per-proc 1 \
    sh -c 'echo "$LOCAL_RANK $CUDA_VISIBLE_DEVICES"' | sed 's/^[^:]*://' | sort -n | cut -d' ' -f2)"
compare "parts of the GPUs" "$(seq 0 "$((count - 1))")" "$parts"

uuids="$(nvidia-smi --query-gpu=uuid --format=csv,noheader | tac)"
list="$(paste -sd, <<<"$uuids")"
# shellcheck disable=SC2016 # for the workers
parts="$(CUDA_VISIBLE_DEVICES="$list" "$hvdrun" -np "$count" --gpus-per-proc 1 \
    sh -c 'echo "$LOCAL_RANK $CUDA_VISIBLE_DEVICES"' | sed 's/^[^:]*://' | sort -n | cut -d' ' -f2)"
compare "parts of a list of ids" "$uuids" "$parts"

if python3 -c 'import torch; torch.cuda.get_device_properties(0).uuid' 2>/dev/null; then
    parts="$(env -u CUDA_VISIBLE_DEVICES "$hvdrun" -np "$count" --gpus-per-proc 1 python3 -c '
import os, torch
assert torch.cuda.device_count() == 1
print(os.environ["LOCAL_RANK"], "GPU-%s" % torch.cuda.get_device_properties(0).uuid)' |
        sed 's/^[^:]*://' | sort -n | cut -d' ' -f2)"
    compare "the GPU that torch sees" "$(nvidia-smi --query-gpu=uuid --format=csv,noheader)" "$parts"
fi

for _ in $(seq "${ROUNDS:-20}"); do
    status=0
    env -u CUDA_VISIBLE_DEVICES "$hvdrun" check --gpu >"$scratch/check" || status=$?
    compare "alarms of hvdrun check --gpu, and its status" "0 0" "$(grep -cE '^(warning|problem): .*GPU' "$scratch/check") $status"
done
grep -E '^(GPU|warning|problem)' "$scratch/check"
if python3 -c 'import torch' 2>/dev/null; then
    echo "the same by PyTorch's own timer, and what nvidia-smi says:"
    env -u CUDA_VISIBLE_DEVICES python3 "$here/plain_torch.py"
    [[ "$count" == 1 ]] || torchrun --standalone --nproc-per-node "$count" "$here/plain_torch.py" 2>/dev/null
    nvidia-smi --query-gpu=index,name,driver_version,memory.total,memory.used,clocks.sm,power.draw,ecc.errors.uncorrected.volatile.total \
        --format=csv,noheader
fi

echo "network adapters, as nvidia-smi topo -m above shows them:"
# shellcheck disable=SC2016 # for the workers
env -u CUDA_VISIBLE_DEVICES -u NCCL_IB_HCA -u UCX_NET_DEVICES "$hvdrun" -np "$count" --nic-hints \
    sh -c 'echo "$LOCAL_RANK ${NCCL_IB_HCA-none} ${UCX_NET_DEVICES-none}"' | sort
exit "$bad"
