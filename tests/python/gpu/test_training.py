# SPDX-License-Identifier: Apache-2.0
"""Trainings on real GPUs."""
import os

import horovod.torch as hvd
import pytest
import torch
from torch import distributed
from torch.nn.functional import cross_entropy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs PyTorch with CUDA, and a GPU")
STEPS, TOLERANCE = 50, 1e-5


def make_network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 5),
    ).cuda()


def make_optimizer(network, **options):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    return optimizer if not options else hvd.DistributedOptimizer(optimizer, network.named_parameters(), **options)


def losses_of(network, optimizer, rank, size, before_step=lambda: None):
    """Of this rank, in each step. Its part of the data differs from those of other ranks."""
    torch.manual_seed(2)
    inputs, labels = (
        torch.randn(64 * size, 3, 8, 8)[rank::size].cuda(),
        torch.randint(0, 5, (64 * size,))[rank::size].cuda(),
    )
    losses = []
    for step in range(STEPS):
        batch = slice(16 * (step % 4), 16 * (step % 4) + 16)
        optimizer.zero_grad()
        loss = cross_entropy(network(inputs[batch]), labels[batch])
        loss.backward()
        before_step()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


@pytest.fixture
def exact():
    """Every run gives the same bits."""
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = True, False
    yield
    torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = before


@pytest.fixture(scope="module")
def losses_of_ddp():
    """With torch.distributed on NCCL."""
    found = []

    def train(rank, size):
        if not found:
            if "MASTER_ADDR" not in os.environ:
                pytest.skip("needs hvdrun")
            distributed.init_process_group("nccl", init_method="env://")
            network = torch.nn.parallel.DistributedDataParallel(make_network(), broadcast_buffers=False)
            found.append(losses_of(network, make_optimizer(network), rank, size))
            distributed.destroy_process_group()
        return found[0]

    return train


@pytest.mark.parametrize("options", [{"op": hvd.Average}, {"groups": 2}, {"gradient_predivide_factor": 2.0}], ids=str)
def test_losses_are_those_of_ddp(options, gpu, exact, losses_of_ddp, rank, size):
    wanted = losses_of_ddp(rank, size)
    network = make_network()
    hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    found = losses_of(network, make_optimizer(network, **options), rank, size)
    assert wanted[-1] < wanted[0] - 0.1  # it learns
    assert max(abs(a - b) for a, b in zip(found, wanted)) < TOLERANCE


def test_a_training_in_another_stream(gpu, exact, losses_of_ddp, rank, size):
    wanted = losses_of_ddp(rank, size)
    network = make_network()
    optimizer = make_optimizer(network, op=hvd.Average)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        found = losses_of(network, optimizer, rank, size)
    assert max(abs(a - b) for a, b in zip(found, wanted)) < TOLERANCE


def test_gradients_that_are_clipped_after_synchronize(gpu, rank, size):
    network = make_network()
    optimizer = make_optimizer(network, op=hvd.Average)

    class Clipping:
        zero_grad = optimizer.zero_grad

        def step(self):
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()

    losses = losses_of(network, Clipping(), rank, size)
    assert losses[-1] < losses[0]
    everyone = hvd.allgather(next(network.parameters()).detach().reshape(1, -1))
    assert torch.equal(everyone[0], everyone[-1])


def test_half_precision_with_a_scaler(gpu, rank, size):
    network = make_network()
    optimizer = make_optimizer(network, compression=hvd.Compression.fp16)
    scaler = torch.cuda.amp.GradScaler()
    inputs, labels = torch.randn(16, 3, 8, 8).cuda(), torch.randint(0, 5, (16,)).cuda()
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = cross_entropy(network(inputs), labels)
        scaler.scale(loss).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_sparse_gradients(gpu, rank, size):
    network = torch.nn.Embedding(10, 3, sparse=True).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer, network.named_parameters())
    hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    before = network.weight.detach().clone()
    network(torch.tensor([rank, 9]).cuda()).sum().backward()
    optimizer.step()
    steps = torch.zeros(10, 3)
    steps[:size] += 1 / size
    steps[9] += 1
    assert torch.allclose((before - network.weight.detach()).cpu(), steps, atol=1e-6)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW], ids=lambda kind: kind.__name__)
def test_optimizer_state(kind, gpu, rank, size):
    network = make_network()
    optimizer = kind(network.parameters(), lr=0.1)
    if rank == 0:
        network(torch.randn(4, 3, 8, 8).cuda()).sum().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.0625
    hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.0625
    state = optimizer.state_dict()["state"]
    values = {(i, name): torch.as_tensor(value).cpu() for i, one in state.items() for name, value in one.items()}
    assert bool(values) == (kind != torch.optim.SGD)
    everyone = hvd.allgather_object(repr(values))
    assert len(set(everyone)) == 1


def test_torch_state(gpu, rank, size):
    torch.manual_seed(rank)
    network = torch.nn.Linear(3, 2).cuda()
    state = hvd.elastic.TorchState(model=network, optimizer=torch.optim.Adam(network.parameters()), batch=rank)
    state.sync()
    weight = network.weight.detach().clone()
    assert torch.equal(hvd.broadcast(weight, 0), weight) and state.batch == 0
    state.commit()
    network.weight.data.fill_(7)
    state.restore()
    assert torch.equal(network.weight, weight)


def test_sync_batch_norm(gpu, rank, size):
    torch.manual_seed(1)
    inputs = torch.randn(4 * size, 3, 2, 2) * 3 + 5
    alone, ours = torch.nn.BatchNorm2d(3), hvd.SyncBatchNorm(3).cuda()
    wanted = alone(inputs)[4 * rank : 4 * rank + 4]
    assert torch.allclose(ours(inputs[4 * rank : 4 * rank + 4].cuda()).cpu(), wanted, atol=1e-4)
