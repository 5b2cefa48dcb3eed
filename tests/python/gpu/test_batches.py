# SPDX-License-Identifier: Apache-2.0
"""Gradients on GPUs that DistributedOptimizer submits together."""
import horovod.torch as hvd
import pytest
import torch
from horovod.torch import memory, optimizer
from horovod.torch.slot import Batch, Slot
from test_gpu import same, total, values


def slots_of(tensors):
    return [Slot(f"batch.{i}", one, hvd.Sum, 1.0, 1.0, hvd.global_process_set) for i, one in enumerate(tensors)]


def submit(tensors, slots):
    batch = Batch(memory.place_of(tensors[0]))
    for tensor, slot in zip(tensors, slots):
        assert slot.fits(tensor)
        batch.add(slot, tensor)
    assert batch.bytes == sum(one.numel() * one.element_size() for one in tensors)
    return batch.submit()


def test_ranks_have_other_batches(gpu, rank, size):
    types = (torch.float32, torch.float16, torch.float32, torch.bfloat16)
    tensors = [gpu.put(values(rank, dtype)) for dtype in types]
    slots = slots_of(tensors)
    for turn in range(3):
        for tensor in tensors:
            tensor.copy_(values(rank, tensor.dtype))
        middle = 1 + (rank + turn) % 3
        parts = [slice(0, middle), slice(middle, 4)]
        for handle in [submit(tensors[part], slots[part]) for part in parts]:
            hvd.synchronize(handle)
        assert [same(one, total(size, one.dtype)) for one in tensors] == [True] * 4


def test_a_batch_waits_for_its_input(gpu, rank, size):
    late, value = [gpu.put(torch.zeros(3, 4)) for _ in range(2)], gpu.put(values(rank))
    slots = slots_of(late)
    for one in late:
        gpu.compute_late(one, value)
    handle = submit(late, slots)
    with gpu.another_stream():  # it waits for the result
        hvd.synchronize(handle)
        assert [same(one, total(size)) for one in late] == [True] * 2


def test_what_does_not_fit(gpu):
    tensor = gpu.put(torch.ones(3, 4))
    (slot,) = slots_of([tensor])
    assert slot.fits(tensor)
    assert not slot.fits(torch.ones(3, 4))
    assert not slot.fits(gpu.put(torch.ones(4, 3)).t())
    assert not slot.fits(gpu.put(torch.ones(3, 4).half()))
    (other,) = slots_of([gpu.put(torch.ones(2, dtype=torch.int32))])
    assert not other.fits(gpu.put(torch.ones(2, dtype=torch.int32)))


def leaves(gpu):
    made = [gpu.put(torch.zeros(3, 4)) for _ in range(4)]
    for one in made:
        one.requires_grad_()
    return made


@pytest.fixture
def sent(monkeypatch):
    """How many tensors each call of libhvd got."""
    found, submit_one = [], Batch.submit

    def count(batch):
        found.append(len(batch._tensors))
        return submit_one(batch)

    monkeypatch.setattr(Batch, "submit", count)
    return found


@pytest.mark.parametrize("limit, wanted", [(1 << 20, [4]), (96, [2, 2]), (1, [1] * 4)])
def test_the_optimizer(limit, wanted, gpu, rank, size, sent, monkeypatch):
    monkeypatch.setattr(optimizer, "GPU_BATCH_BYTES", limit)
    parameters = leaves(gpu)
    ours = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0), op=hvd.Sum)
    for _ in range(2):
        sent.clear()
        for parameter in parameters:
            parameter.grad = gpu.put(values(rank))
            if size > 1:
                ours._gradient_is_complete(parameter)
        ours.step()
        ours.zero_grad()
        assert sent == (wanted if size > 1 else [])
    assert [same(one.detach(), -2 * total(size)) for one in parameters] == [True] * 4


def test_gradients_of_two_streams(gpu, rank, size, sent):
    """They are not in one batch, and a gradient that is missing is zero."""
    if size < 2:
        pytest.skip("needs two ranks")
    parameters = leaves(gpu)
    ours = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0), op=hvd.Sum)
    late = [gpu.put(torch.zeros(3, 4)) for _ in range(3)]
    for parameter, gradient in zip(parameters, late):
        parameter.grad = gradient
    value = gpu.put(values(rank))
    for i in range(2):
        gpu.compute_late(late[i], value)
        ours._gradient_is_complete(parameters[i])
    with gpu.another_stream():
        gpu.compute_late(late[2], value)
        ours._gradient_is_complete(parameters[2])
    ours.step()
    assert sent == [2, 1, 1]
    sums = [total(size)] * 3 + [torch.zeros(3, 4)]
    assert [same(one.detach(), -wanted) for one, wanted in zip(parameters, sums)] == [True] * 4
