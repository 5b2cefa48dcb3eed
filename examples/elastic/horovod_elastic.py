#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ordinary elastic Horovod script: you start it with hvdrun instead of horovodrun, and change nothing
else. A worker or a host may be lost, and new hosts may join. The surviving workers keep their processes
and their memory, and continue the training.

    hvdrun -np 2 --min-np 1 --max-np 8 --host-discovery-script examples/elastic/discover.sh \\
        python3 examples/elastic/horovod_elastic.py

Without torch, the script says so and exits with status 77. hvdrun has a package `horovod` for it if Horovod
is not installed.
"""
import argparse
import sys

try:
    import torch
    import horovod.torch as hvd
except ModuleNotFoundError as missing:
    print(f"horovod_elastic.py: skipped, {missing.name} is not installed "
          "(pip install torch, then horovod)", flush=True)
    sys.exit(77)

RATE = 0.01


def make_data():
    torch.manual_seed(1)
    inputs = torch.randn(1024, 8)
    wanted = inputs @ torch.linspace(-1, 1, 8).unsqueeze(1) + 0.5
    return torch.utils.data.TensorDataset(inputs, wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()

    # no collective between hvd.init() and train(): a worker that joins later would not take part in it
    hvd.init()
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    dataset = make_data()
    sampler = hvd.elastic.ElasticSampler(dataset, shuffle=True, seed=1)
    loader = torch.utils.data.DataLoader(dataset, batch_size=16, sampler=sampler)

    @hvd.elastic.run
    def train(state):
        while state.epoch < options.epochs:
            loss = torch.zeros(())
            for index, (inputs, wanted) in enumerate(loader):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(inputs), wanted)
                loss.backward()
                optimizer.step()
                state.batch = index
                sampler.record_batch(index, 16)  # these samples are not used again after a reset
                if index % 8 == 7:
                    state.commit()  # a failure goes back to this point, and new hosts join here
            mean = hvd.allreduce(loss.detach(), name="loss").item()
            if hvd.rank() == 0:
                print(f"epoch {state.epoch + 1}: {hvd.size()} workers, loss {mean:.6f}", flush=True)
            state.epoch, state.batch = state.epoch + 1, 0
            sampler.set_epoch(state.epoch)  # the next epoch begins with all samples again
            state.commit()

    def on_reset():
        """Runs after each change, before rank 0 sends the state. The learning rate follows the number of workers."""
        for group in optimizer.param_groups:
            group["lr"] = RATE * hvd.size()

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, batch=0)
    state.register_reset_callbacks([on_reset])
    train(state)
    if hvd.rank() == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
