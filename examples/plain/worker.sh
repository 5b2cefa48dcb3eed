#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Any program can be a worker: it finds everything about the job in its environment.
#   hvdrun -np 4 examples/plain/worker.sh
set -eu

if [ -z "${HOROVOD_RANK-}" ]; then
    echo "worker.sh: no rank in the environment: start it with hvdrun -np 2 $0" >&2
    exit 2
fi

echo "I am rank $HOROVOD_RANK of $HOROVOD_SIZE," \
    "number $HOROVOD_LOCAL_RANK of $HOROVOD_LOCAL_SIZE on $HOROVOD_HOSTNAME"

# Rank 0 also shows the same facts under the names that other libraries read.
if [ "$HOROVOD_RANK" = 0 ]; then
    env | grep -E '^(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_|OMPI_COMM_WORLD_|OMP_NUM_)' | sort
fi
