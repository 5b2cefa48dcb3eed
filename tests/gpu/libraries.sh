#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libraries.sh [BUILD]: Accelerate, Lightning and Transformers above the newest PyTorch, with four ranks on CPUs: with rank 0's
# store, with the agent's, warm, and as a line of torchrun. Then what torchrun itself tells its workers, beside hvdrun torchrun.
# LIBRARIES names some of them. Ends with 1 when something fails. Needs no GPU.
# shellcheck source=tests/gpu/job.sh disable=SC2317 # check calls the functions
source "$(dirname "$0")/job.sh" "$@"
script="$here/libraries_torch.py"
export CUDA_VISIBLE_DEVICES="" OMP_NUM_THREADS=1

hvdrun() { timeout 120 "$build/hvdrun" "$@"; }

python3 -c 'import accelerate, pytorch_lightning as pl, torch, transformers as t
print("PyTorch", torch.__version__, "Accelerate", accelerate.__version__, "Lightning", pl.__version__, "Transformers", t.__version__)'
for name in ${LIBRARIES:-plain accelerate lightning transformers}; do
    check "$name, store of rank 0" 4 '<stdout>:all right: ' hvdrun -np 4 python3 "$script" "$name" "$scratch/model"
    check "$name, store of an agent" 4 '<stdout>:all right: ' hvdrun -np 4 --torch-store agent python3 "$script" "$name" "$scratch/model"
    check "$name, auto, warm" 4 '<stdout>:all right: ' hvdrun -np 4 --torch-store auto --warm python3 "$script" "$name" "$scratch/model"
    check "$name, torchrun's line" 4 '<stdout>:all right: ' hvdrun torchrun --standalone --nproc-per-node 4 "$script" "$name" "$scratch/model"
done
cat >"$scratch/show.py" <<'END'
import os
for name in sorted(os.environ):
    if name.startswith(("TORCHELASTIC_", "GROUP_", "ROLE_", "LOCAL_", "TORCH_NCCL", "OMP_")) or name in ("RANK", "WORLD_SIZE"):
        print("SHOW", name, "" if name in ("TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID") else os.environ[name], flush=True)
END
shown() { sed -n 's/.*SHOW //p' | sort; }
unset OMP_NUM_THREADS
timeout 60 torchrun --standalone --nproc-per-node 2 --max-restarts 2 "$scratch/show.py" 2>&1 | shown >"$scratch/theirs"
hvdrun torchrun --standalone --nproc-per-node 2 --max-restarts 2 "$scratch/show.py" 2>&1 | shown >"$scratch/ours"
echo "what differs from torchrun (<: only there):"
diff "$scratch/theirs" "$scratch/ours"
exit "$bad"
