# shellcheck shell=bash disable=SC2034 # the scripts use the variables
# SPDX-License-Identifier: Apache-2.0
# How nccl.sh and torch.sh begin: `source job.sh [BUILD]`. A job has a rank for each GPU of the machine, and each
# check counts the ranks that say what they should. The script ends with `exit "$bad"`.
# shellcheck source=tests/gpu/begin.sh
source "$(dirname "${BASH_SOURCE[0]}")/begin.sh"
count="$(nvidia-smi --query-gpu=index --format=csv,noheader | grep -c .)"

job() { # RANKS ARGUMENT...
    local ranks="$1"
    shift
    timeout 400 "$build/hvdrun" -np "$ranks" --controller gloo "$@"
}

check() { # WHAT HOW-MANY WORDS COMMAND...: so many lines have the words
    local what="$1" wanted="$2" words="$3" found start
    shift 3
    start="$(date +%s%N)"
    "$@" >"$scratch/out" 2>&1
    found="$(grep -cE "$words" "$scratch/out")"
    if [[ "$found" == "$wanted" ]]; then
        echo "right: $what, $((($(date +%s%N) - start) / 1000000)) ms: $(grep -m1 -E "$words" "$scratch/out")"
    else
        bad=1
        printf 'WRONG: %s: %s of %s\n' "$what" "$found" "$wanted"
        tail -40 "$scratch/out"
    fi
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
