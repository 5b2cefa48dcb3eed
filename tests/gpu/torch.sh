#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torch.sh [BUILD]: the package `horovod` on a machine with GPUs, with one rank for each of them: the tests of
# tests/python on the CPU and of tests/python/gpu on the GPUs, an elastic training with a killed rank, and the speed of a
# training beside DDP. Ends with 1 when something fails. Needs a Python with torch, torchvision and pytest, and no network.
# shellcheck source=tests/gpu/job.sh disable=SC2317 # check calls the functions
source "$(dirname "$0")/job.sh" "$@"
tests="$here/../python"
export PYTHONPATH="$build/lib/hvdrun/python" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

python() { # RANKS ARGUMENT...
    job "$1" --horovod bundled python3 "${@:2}"
}

pytest() { # RANKS FILE...
    python "$1" -m pytest -q -p no:cacheprovider "${@:2}"
}

python3 -c 'import torch; print("PyTorch", torch.__version__)'
passed='^\[[0-9]+\]<stdout>:[0-9]+ passed(, [0-9]+ (skipped|warnings?))* in '
check "tests/python, $count ranks" "$count" "$passed" pytest "$count" "$tests"/test_*.py
check "GPUs, 1 rank" 1 "$passed" pytest 1 "$tests/gpu/test_gpu.py"
check "GPUs, $count ranks" "$count" "$passed" pytest "$count" "$tests/gpu"
HOROVOD_ENABLE_ASYNC_COMPLETION=0 check "GPUs, $count ranks, complete on the GPU" "$count" "$passed" pytest "$count" "$tests/gpu/test_gpu.py"
for number in 1 2 3; do
    check "elastic, $number" 1 'all right: rank 0 of' job "$count" --min-np 1 --max-np "$count" -H "localhost:$count" \
        --horovod bundled python3 "$here/torch_elastic.py" "$scratch/once.$number"
done
check "speed" "$count" 'all right' python "$count" "$here/torch_speed.py" "${ROUNDS:-7}"
grep 'speed: ' "$scratch/out"
exit "$bad"
