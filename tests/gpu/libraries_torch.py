#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libraries_torch.py NAME: a short training on CPUs with one of the libraries above PyTorch, as its users write it. Each rank
prints "all right: NAME RANK of SIZE" when all ranks have the same weights."""
import os
import sys

import torch
import torch.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def batches():
    generator = torch.Generator().manual_seed(RANK)
    return [(torch.randn(8, 16, generator=generator), torch.randn(8, 1, generator=generator)) for _ in range(12)]


def make():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def plain():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(make())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, wanted in batches():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()
    dist.monitored_barrier()
    return model


def accelerate():
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    model = make()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for inputs, wanted in batches():
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.mse_loss(model(inputs), wanted))
        optimizer.step()
    assert accelerator.num_processes == SIZE, accelerator.num_processes
    return model


def lightning():
    import pytorch_lightning

    class Module(pytorch_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = make()

        def training_step(self, batch, _):
            return torch.nn.functional.mse_loss(self.network(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Module()
    trainer = pytorch_lightning.Trainer(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp", max_epochs=1,
                                        logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(module, torch.utils.data.DataLoader(batches(), batch_size=None))
    assert trainer.world_size == SIZE, trainer.world_size
    return module


def transformers():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
    torch.manual_seed(3)
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64, n_positions=32))
    data = [{"input_ids": torch.randint(0, 64, (16,)), "labels": torch.randint(0, 64, (16,))} for _ in range(64)]
    arguments = TrainingArguments(sys.argv[2], use_cpu=True, max_steps=4, per_device_train_batch_size=2, report_to=[],
                                  save_strategy="no", disable_tqdm=True)
    assert arguments.world_size == SIZE, arguments.world_size
    trainer = Trainer(model, arguments, train_dataset=data)
    trainer.train()
    return model


def main():
    name = sys.argv[1]
    model = {"plain": plain, "accelerate": accelerate, "lightning": lightning, "transformers": transformers}[name]()
    weights = torch.cat([one.detach().flatten() for one in model.parameters()])
    if not dist.is_initialized():
        sys.exit(f"{name} has made no group")
    others = [torch.empty_like(weights) for _ in range(SIZE)]
    dist.all_gather(others, weights)
    if not all(torch.equal(weights, one) for one in others):
        sys.exit(f"{name}: the weights differ")
    print(f"all right: {name} {RANK} of {SIZE}", flush=True)
    dist.destroy_process_group()


main()
