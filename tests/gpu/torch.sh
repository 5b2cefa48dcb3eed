#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torch.sh [BUILD]: the package `horovod` on a machine with GPUs, with one rank for each of them: the tests of
# tests/python on the CPU and of tests/python/gpu on the GPUs, an elastic training with a killed rank, and the speed of a
# training beside DDP. Ends with 1 when something fails. Needs a Python with torch, torchvision and pytest, and no network.
# shellcheck disable=SC2317 # check calls the functions
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="${1:-$here/../../build/dev}"
tests="$here/../python"
count="$(nvidia-smi --query-gpu=index --format=csv,noheader | grep -c .)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
bad=0
export PYTHONPATH="$build/lib/hvdrun/python" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

job() { # RANKS ARGUMENT...
    local ranks="$1"
    shift
    timeout 200 "$build/hvdrun" -np "$ranks" --controller gloo --horovod bundled "$@"
}

check() { # WHAT HOW-MANY WORDS COMMAND...: so many ranks say the words
    local what="$1" wanted="$2" words="$3" found
    shift 3
    "$@" >"$scratch/out" 2>&1
    found="$(grep -cE "$words" "$scratch/out")"
    if [[ "$found" == "$wanted" ]]; then
        echo "right: $what: $(grep -E "$words" "$scratch/out" | head -1)"
    else
        bad=1
        printf 'WRONG: %s: %s of %s ranks\n' "$what" "$found" "$wanted"
        grep -E 'Error|FAILED|rank' "$scratch/out" | tail -30
    fi
}

pytest() { # RANKS FILE...
    local ranks="$1"
    shift
    job "$ranks" python3 -m pytest -q -p no:cacheprovider "$@"
}

python3 -c 'import torch; print("PyTorch", torch.__version__, torch.cuda.get_device_name(0))'
passed='^\[[0-9]+\]<stdout>:[0-9]+ passed'
check "tests/python, $count ranks" "$count" "$passed" pytest "$count" "$tests"/test_*.py
check "GPUs, 1 rank" 1 "$passed" pytest 1 "$tests/gpu/test_gpu.py"
check "GPUs, $count ranks" "$count" "$passed" pytest "$count" "$tests/gpu"
HOROVOD_ENABLE_ASYNC_COMPLETION=0 check "GPUs, $count ranks, complete on the GPU" "$count" "$passed" pytest "$count" "$tests/gpu/test_gpu.py"
for number in 1 2 3; do
    check "elastic, $number" 1 'all right: rank 0 of' job "$count" --min-np 1 --max-np "$count" -H "localhost:$count" \
        python3 "$here/torch_elastic.py" "$scratch/once.$number"
done
check "speed" "$count" 'all right' job "$count" python3 "$here/torch_speed.py" "${ROUNDS:-7}"
grep 'images/s' "$scratch/out"
exit "$bad"
