#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nccl.sh [BUILD]: libhvd's NCCL engine on a machine with GPUs, with one rank for each of them: each
# collective with each type, what is refused, streams, killed ranks, an elastic job, and the bandwidth
# beside bare NCCL. Ends with 1 when something fails. Before: cmake --preset dev && cmake --build
# build/dev && cmake --build build/dev --target bench_hvd_nccl
# shellcheck source=tests/gpu/job.sh
source "$(dirname "$0")/job.sh" "$@"
rounds="${ROUNDS:-11}"
right="all right"
gpu="$build/tests/hvd/hvd_test_gpu"

run_all() {
    check "collectives, 1 rank" 1 "$right" job 1 "$build/tests/hvd/hvd_test_collectives" gpu
    check "collectives, $count ranks" "$count" "$right" job "$count" "$build/tests/hvd/hvd_test_collectives" gpu
    check "Adasum, $count ranks" "$count" "$right" job "$count" "$build/tests/hvd/hvd_test_adasum" gpu
    for case in rules streams join early; do
        check "$case" "$count" "$right" job "$count" "$gpu" "$case"
    done
    for number in 0 1 2 3; do
        check "rank $((number % count)) is killed" "$((count - 1))" "$right" job "$count" "$gpu" killed "$number"
        grep 'the last step' "$scratch/out"
    done
    if python3 -c 'import torch' 2>/dev/null; then
        check "tensors of PyTorch" "$count" "$right" job "$count" python3 "$here/torch_tensors.py" "$build/lib/libhvd.so"
    fi
    rm -rf "$scratch/once"
    HVD_TEST_ONCE="$scratch/once" check "elastic" "$count" "$right" \
        job "$count" --min-np 1 --max-np "$count" -H "localhost:$count" "$gpu" elastic 30

    echo "rounds of $count ranks, in microseconds"
    job "$count" "$build/tests/bench/hvd_nccl" "$rounds" >"$scratch/rounds" 2>&1 || bad=1
    sed -n 's/^\[0\]<stdout>://p' "$scratch/rounds" >"$scratch/rows"
    [[ -s "$scratch/rows" ]] || tail -20 "$scratch/rounds"
    python3 - "$scratch/rows" "$count" <<'END'
import statistics
import sys

rows, size = {}, int(sys.argv[2])
for line in open(sys.argv[1]):
    name, *times = line.split()
    rows.setdefault(name, []).append([float(time) for time in times])
for name, times in rows.items():
    medians = [statistics.median(column) for column in zip(*times)]
    ratios = [statistics.median(row[0] / row[i] for row in times) for i in range(len(medians))]
    print(name, "medians:", *(f"{value:.0f}" for value in medians),
          "| first by each:", *(f"{value:.3f}" for value in ratios))
    if name.endswith("_MiB"):
        data = 20 * int(name.split("_")[0]) * 2**20 * 2 * (size - 1) / size
        print(name, "bus bandwidth, GB/s:", *(f"{data / value / 1000:.1f}" for value in medians))
END
}

run_all
export HOROVOD_ENABLE_ASYNC_COMPLETION=1
echo "the same with HOROVOD_ENABLE_ASYNC_COMPLETION=1"
run_all
exit "$bad"
