#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ordinary Horovod script: you start it with hvdrun instead of horovodrun, and change nothing else.

    hvdrun -np 2 python3 examples/hvd_static.py

Without torch, the script says so and exits with status 77. hvdrun has a package `horovod` for it if Horovod
is not installed.
"""
import sys

try:
    import torch
    import horovod.torch as hvd
except ModuleNotFoundError as missing:
    print(f"hvd_static.py: skipped, {missing.name} is not installed "
          "(pip install torch, then horovod)", flush=True)
    sys.exit(77)


def main():
    hvd.init()
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    # every rank has its own data, which all ranks make by the same rule
    torch.manual_seed(100 + hvd.rank())
    weights = torch.linspace(-1, 1, 8).unsqueeze(1)
    inputs = torch.randn(256, 8)
    wanted = inputs @ weights + 0.5

    for step in range(50):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            mean = hvd.allreduce(loss.detach(), name="loss").item()
            if hvd.rank() == 0:
                print(f"step {step + 1}: mean loss over {hvd.size()} ranks {mean:.6f}", flush=True)


if __name__ == "__main__":
    main()
