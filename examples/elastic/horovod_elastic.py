#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An elastic Horovod script as users have it: started with hvdrun instead of horovodrun, otherwise
unchanged. When a worker or a host is lost, or a host is added, the others keep their processes and
their memory, and train on with what there is.

    hvdrun -np 2 --min-np 1 --max-np 8 --host-discovery-script examples/elastic/discover.sh \\
        python3 examples/elastic/horovod_elastic.py

Without Horovod the script says so and exits with status 77.
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

    # hvd.init(), and then no collective outside of train(): a worker that comes later would miss it
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
                sampler.record_batch(index, 16)  # not dealt out again after a reset
                if index % 8 == 7:
                    state.commit()  # what a failure rolls back to; also where new hosts come in
            mean = hvd.allreduce(loss.detach(), name="loss").item()
            if hvd.rank() == 0:
                print(f"epoch {state.epoch + 1}: {hvd.size()} workers, loss {mean:.6f}", flush=True)
            state.epoch, state.batch = state.epoch + 1, 0
            sampler.set_epoch(state.epoch)  # forgets what was processed: the next epoch begins with all
            state.commit()

    def on_reset():
        """After a change, before the state is sent to all: the step grows with the batch."""
        for group in optimizer.param_groups:
            group["lr"] = RATE * hvd.size()

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, batch=0)
    state.register_reset_callbacks([on_reset])
    train(state)
    if hvd.rank() == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
