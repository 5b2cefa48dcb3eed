#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Gives a running elastic job more nodes:
#   examples/slurm/grow.sh JOB [NODES [SLOTS]]
# JOB is Slurm's number; NODES (1) more nodes are asked for, with SLOTS (1) workers on each. It waits
# until Slurm has them. The site must allow it: SchedulerParameters=permit_job_expansion.
set -euo pipefail

job=${1:?the number of the Slurm job} nodes=${2:-1} slots=${3:-1}

# Inside of a job these are options for salloc and srun, and belong to another job.
for name in "${!SLURM_@}" "${!SALLOC_@}"; do
    if [[ "$name" != SLURM_CONF ]]; then unset "$name"; fi
done

field() { # of a job
    scontrol show job -o "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1
}

present=$(field "$job" NodeList)
script_host=$(field "$job" BatchHost)

# A helper job gets the nodes, then hands them over; Slurm leaves notes about that in the folder.
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

# The launcher listens on the node of the batch script, and looks for its socket below /tmp.
env TMPDIR=/tmp srun --jobid="$job" --overlap --nodes=1 --ntasks=1 --nodelist="$script_host" --mpi=none \
    --chdir=/tmp hvdrun add "$hosts"
