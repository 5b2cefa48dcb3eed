#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# restart.sh [BUILD]: PyTorch with NCCL, one rank for each GPU, in which a rank is killed again and again: cold and warm
# (--warm), with rank 0's store and the agent's (--torch-store agent). Each start must reduce a vector right, and must find
# the memory of all GPUs given back. Prints the time from a kill to the first sum of the next start: median and worst.
# STARTS and COLD are the numbers of starts, warm and cold (51, 11); STORES names the stores. Ends with 1 when something fails.
# shellcheck source=tests/gpu/job.sh disable=SC2317 # check calls the functions
source "$(dirname "$0")/job.sh" "$@"
python="${PYTHON:-python3}"

restarts() { # STARTS OPTION...
    rm -f "$scratch/lines"
    timeout 400 "$build/hvdrun" -np "$count" --max-restarts "$1" --grace 1 "${@:2}" \
        "$python" "$here/restart_torch.py" "$scratch/lines" "$1"
    "$python" - "$scratch/lines" "$1" <<'END'
import statistics
import sys

rows = [[float(word) for word in line.split()] for line in open(sys.argv[1])]
assert [row[0] for row in rows] == list(range(1, int(sys.argv[2]) + 1)), [row[0] for row in rows]
times = [after[1] - before[2] for before, after in zip(rows, rows[1:]) if len(after) == 4]
looks = [row[4] for row in rows if len(row) == 5]
kept = max(looks) - looks[0]
assert kept < 100, f"{kept} MiB of a GPU were not given back"
print(f"starts: {len(rows)}, {statistics.median(times):.2f} / {max(times):.2f} s from a kill to the next sum, "
      f"{max(row[3] for row in rows):.0f} keys, {kept:.0f} MiB kept")
END
}

"$python" -c 'import torch; print("PyTorch", torch.__version__, "NCCL", torch.cuda.nccl.version())'
for store in ${STORES:-rank0 agent}; do
    for warm in "" --warm=torch; do
        number="${COLD:-11}"
        [[ -z "$warm" ]] || number="${STARTS:-51}"
        check "restarts, store of $store, ${warm:-cold}" 1 '^starts: ' restarts "$number" --torch-store "$store" ${warm:+"$warm"}
        grep 'hvdrun:' "$scratch/out" | grep -viE 'rank [0-9]+ .*(killed|restart)' | head -3
    done
done
exit "$bad"
