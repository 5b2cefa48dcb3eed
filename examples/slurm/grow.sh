#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Adds nodes to a running elastic job:
#   examples/slurm/grow.sh JOB [NODES [SLOTS]]
# JOB is the number of the Slurm job. The script requests NODES (1) more nodes with SLOTS (1) workers
# on each, and waits until Slurm has them. The site must allow it with
# SchedulerParameters=permit_job_expansion.
set -euo pipefail

job=${1:?the number of the Slurm job} nodes=${2:-1} slots=${3:-1}

# Inside a job, salloc and srun would read these variables as options, and they describe another job.
for name in "${!SLURM_@}" "${!SALLOC_@}"; do
    if [[ "$name" != SLURM_CONF ]]; then unset "$name"; fi
done

field() { # of a job
    scontrol show job -o "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1
}

present=$(field "$job" NodeList)
script_host=$(field "$job" BatchHost)

# A helper job gets the nodes and then hands them over. Slurm writes scripts about that to the folder.
notes=$(mktemp -d)
helper=
# shellcheck disable=SC2317 # by the trap
clean() {
    rm -rf "$notes"
    if [[ -n "$helper" ]]; then scancel --quiet "$helper"; fi
}
trap clean EXIT
cd "$notes"
said=$(salloc --no-shell --job-name=grow --nodes="$nodes" --ntasks-per-node="$slots" --exclude="$present" \
    --dependency="expand:$job" 2>&1) || { echo "$said" >&2; exit 1; }
helper=$(sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p' <<< "$said")
hosts=$(scontrol show hostnames "$(field "$helper" NodeList)" | sed "s/\$/:$slots/" | paste -s -d, -)
scontrol update jobid="$helper" NumNodes=0
helper=

# hvdrun runs on the node of the batch script, and its control socket is below /tmp.
env TMPDIR=/tmp srun --jobid="$job" --overlap --nodes=1 --ntasks=1 --nodelist="$script_host" --mpi=none \
    --chdir=/tmp hvdrun add "$hosts"
