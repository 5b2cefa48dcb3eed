# SPDX-License-Identifier: Apache-2.0
import gc
import re
import time

import horovod.torch as hvd
import pytest
import torch

TYPES = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.bool,
]


def block(rank, rows, dtype=torch.float32):
    return torch.full((rows, 2), rank + 1).to(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_allgather(dtype, rank, size):
    output = hvd.allgather(block(rank, rank + 1, dtype))
    assert torch.equal(output, torch.cat([block(r, r + 1, dtype) for r in range(size)]))


def test_allgather_of_nothing(rank, size):
    output = hvd.allgather(block(rank, 0 if rank == 0 else 2))
    assert output.shape == (2 * (size - 1), 2)
    assert hvd.allgather(torch.empty(0, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match="scalar"):
        hvd.allgather(torch.tensor(1.0))


def test_outputs_own_their_memory(rank, size):
    kept = [hvd.allgather(torch.full((1 << 14,), float(i))) for i in range(20)]
    slices = [one[1:3] for one in kept]
    del kept
    gc.collect()
    more = [hvd.allgather(torch.full((1 << 14,), -1.0)) for _ in range(20)]
    assert [one[0].item() for one in slices] == list(range(20)) and len(more) == 20
    hvd.shutdown()
    assert slices[7].sum() == 14
    slices[7].add_(1)


def test_allgather_gradient(rank, size):
    tensor = block(rank, rank + 1).requires_grad_()
    output = hvd.allgather(tensor)
    output.backward(torch.arange(float(len(output))).unsqueeze(1).expand_as(output) * (rank + 1))
    first = sum(range(1, rank + 1))
    mean = sum(range(1, size + 1)) / size
    assert torch.allclose(tensor.grad, torch.arange(first, first + rank + 1.0).unsqueeze(1).expand(-1, 2) * mean)


def test_grouped_allgather(rank, size):
    tensors = [block(rank, rank + 1).requires_grad_(), block(rank, 2).requires_grad_()]
    outputs = hvd.grouped_allgather(tensors, name="group")
    assert [len(one) for one in outputs] == [sum(range(1, size + 1)), 2 * size]
    sum(one.sum() for one in outputs).backward()
    assert all(torch.equal(one.grad, torch.ones_like(one)) for one in tensors)
    handle = hvd.grouped_allgather_async([block(rank, 1), block(rank, 3)])
    while not hvd.poll(handle):
        pass
    outputs = hvd.synchronize(handle)
    assert isinstance(outputs, tuple) and [len(one) for one in outputs] == [size, 3 * size]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_broadcast(dtype, rank, size):
    for root in range(size):
        tensor = block(rank, 3, dtype)
        assert torch.equal(hvd.broadcast(tensor, root), block(root, 3, dtype))
        assert torch.equal(tensor, block(rank, 3, dtype))
        assert hvd.broadcast_(tensor, root) is tensor
        assert torch.equal(tensor, block(root, 3, dtype))
    assert hvd.broadcast(torch.tensor(rank), root_rank=size - 1, name="scalar").item() == size - 1


def test_broadcast_in_place_of_what_is_not_contiguous(rank, size):
    table = torch.full((3, 2), float(rank))
    hvd.synchronize(hvd.broadcast_async_(table.t()[1], 0, name="column"))
    assert torch.equal(table, torch.tensor([[float(rank), 0.0]] * 3))
    assert hvd.synchronize(hvd.broadcast_async(table, size - 1))[0, 0] == size - 1


def test_broadcast_gradient(rank, size):
    tensor = torch.ones(3).requires_grad_()
    hvd.broadcast(tensor, 0).backward(torch.full((3,), float(rank + 1)))
    assert torch.allclose(tensor.grad, torch.full((3,), sum(range(1, size + 1)) / size if rank == 0 else 0.0))


def test_broadcast_with_a_wrong_root(rank, size):
    with pytest.raises(ValueError, match="root"):
        hvd.broadcast(torch.ones(1), size)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_alltoall(dtype, rank, size):
    splits = torch.tensor([r + 1 for r in range(size)], dtype=torch.int32)
    sent = torch.cat([block(rank, r + 1, dtype) for r in range(size)])
    output, received = hvd.alltoall(sent, splits)
    assert torch.equal(output, torch.cat([block(r, rank + 1, dtype) for r in range(size)]))
    assert received.dtype == torch.int32 and received.tolist() == [rank + 1] * size


def test_alltoall_with_equal_splits(rank, size):
    output = hvd.alltoall(torch.arange(2 * size) + 100 * rank)
    assert output.tolist() == [100 * r + 2 * rank + i for r in range(size) for i in range(2)]
    output, received = hvd.synchronize(hvd.alltoall_async(torch.ones(size), name="async"))
    assert len(output) == size and received.tolist() == [1] * size


def test_alltoall_of_nothing(rank, size):
    output, received = hvd.alltoall(torch.ones(4, 3), [0] * size)
    assert output.shape == (0, 3) and received.tolist() == [0] * size


def test_alltoall_arguments(rank, size):
    for splits, word in (
        (torch.ones(size), "float32"),
        (torch.ones(size, size, dtype=torch.int32), "dimension"),
        ([1] * (size + 1), "one for each"),
        ([size + 1] * size, "sum"),
        ([-1] * size, "negative"),
    ):
        with pytest.raises(ValueError, match=word):
            hvd.alltoall(torch.ones(size), splits)
    if size > 1:
        with pytest.raises(ValueError, match="multiple"):
            hvd.alltoall(torch.ones(size + 1))
    output, _ = hvd.alltoall(torch.arange(size + 1), [1] * size)  # the last row is not sent
    assert output.tolist() == [rank] * size


def test_alltoall_gradient(rank, size):
    tensor = torch.ones(size + 1, 2).requires_grad_()
    output, _ = hvd.alltoall(tensor, [1] * size)
    output.backward(torch.full((size, 2), float(rank)))
    assert tensor.grad.tolist() == [[float(r)] * 2 for r in range(size)] + [[0.0, 0.0]]


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average])
def test_reducescatter(op, rank, size):
    rows = 2 * size + 1  # rank 0 gets one more
    tensor = (torch.arange(rows * 2.0).reshape(rows, 2) + rank).requires_grad_()
    output = hvd.reducescatter(tensor, op=op)
    whole = sum(torch.arange(rows * 2.0).reshape(rows, 2) + r for r in range(size)) / (size if op == hvd.Average else 1)
    first = 0 if rank == 0 else 2 * rank + 1
    assert torch.allclose(output, whole[first : first + 2 + (rank == 0)])
    output.backward(torch.full_like(output, float(rank)))
    rank_of_row = [0] + [row // 2 for row in range(rows - 1)]
    scale = size if op == hvd.Sum else 1
    assert tensor.grad[:, 0].tolist() == [float(one * scale) for one in rank_of_row]


def test_reducescatter_arguments(rank, size):
    assert hvd.reducescatter(torch.ones(1, 3), op=hvd.Sum).shape == (1 if rank == 0 else 0, 3)
    output = hvd.reducescatter(torch.ones(size), op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0)
    assert output.tolist() == [6.0 * size]
    with pytest.raises(ValueError, match="scalar"):
        hvd.reducescatter(torch.tensor(1.0))
    with pytest.raises(hvd.HorovodInternalError):
        hvd.reducescatter(torch.ones(size), op=hvd.Max)
    small = hvd.reducescatter(torch.ones(size), op=hvd.Sum, compression=hvd.Compression.fp16)
    assert small.dtype == torch.float32 and small.tolist() == [float(size)]


def test_grouped_reducescatter(rank, size):
    tensors = [torch.ones(size).requires_grad_(), torch.ones(2 * size, 2).requires_grad_()]
    outputs = hvd.grouped_reducescatter(tensors, op=hvd.Sum, name="group")
    assert isinstance(outputs, list) and [one.shape for one in outputs] == [(1,), (2, 2)]
    sum(one.sum() for one in outputs).backward()
    assert all(torch.equal(one.grad, torch.full_like(one, float(size))) for one in tensors)
    outputs = hvd.synchronize(hvd.grouped_reducescatter_async([torch.ones(size)], op=hvd.Sum))
    assert outputs[0].tolist() == [float(size)]


def test_join(rank, size):
    for _ in range(size - 1 - rank):
        output = hvd.allreduce(torch.ones(3), op=hvd.Sum, name="uneven")
    last = hvd.join()
    assert last in range(size)
    assert hvd.allgather(torch.tensor([last])).tolist() == [last] * size
    if rank < size - 1:
        assert output[0] >= 1


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("seen", [False, True], ids=["new", "seen"])
@pytest.mark.parametrize("first", [0, 1])
def test_join_gives_zeros(first, seen, dtype, rank, size):
    """The average divides by all ranks, also for names that all ranks had before."""
    if size < 2:
        pytest.skip("needs two ranks")
    one, two = (torch.arange(-3, count - 3).to(dtype) for count in (5, 170))

    def both():
        handles = [hvd.allreduce_async(tensor, name=name, op=hvd.Average) for tensor, name in ((one, "1"), (two, "2"))]
        return [hvd.synchronize(handle) for handle in handles]

    if seen:
        both()
    outputs = None if rank == first else both()
    hvd.join()
    if outputs is not None:
        for tensor, output in zip((one, two), outputs):
            wanted = (tensor.double() * (size - 1) / size).to(dtype)  # of integers: toward zero
            assert output.dtype == dtype and torch.allclose(output.double(), wanted.double(), rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize(
    "function",
    [
        lambda tensor: hvd.allgather(tensor, name="joined"),
        lambda tensor: hvd.broadcast(tensor, 1, name="joined"),
        lambda tensor: hvd.alltoall(tensor, name="joined"),
        lambda tensor: hvd.reducescatter(tensor, name="joined"),
    ],
    ids=["allgather", "broadcast", "alltoall", "reducescatter"],
)
def test_what_is_not_for_ranks_that_have_joined(function, rank, size):
    if size < 2:
        pytest.skip("needs two ranks")
    if rank > 0:
        with pytest.raises(hvd.HorovodInternalError, match="join"):
            function(torch.ones(size, 2))
    assert hvd.join(hvd.local_rank()) in range(size)


@pytest.mark.parametrize(
    "function",
    [hvd.allgather, lambda tensor: hvd.broadcast(tensor, 0), hvd.alltoall, hvd.reducescatter],
    ids=["allgather", "broadcast", "alltoall", "reducescatter"],
)
def test_tensors_that_differ(function, rank, size):
    """In type, and in a dimension that is not the first."""
    if size < 2:
        pytest.skip("needs two ranks")
    with pytest.raises(hvd.HorovodInternalError, match="int32.*float32|float32.*int32"):
        function(torch.ones(2 * size, 2, dtype=torch.int32 if rank % 2 else torch.float32))
    with pytest.raises(hvd.HorovodInternalError, match="the shapes differ") as found:
        function(torch.ones(2 * size, 10 * (rank + 1)))
    named = {r: int(width) for width, r in re.findall(r"\[\d+, (\d+)\] on rank (\d+)", str(found.value))}
    assert len(named) == 2 and all(width == 10 * (int(r) + 1) for r, width in named.items()), found.value


@pytest.mark.parametrize(
    "function",
    [
        hvd.allreduce_async,
        hvd.allgather_async,
        lambda t, name: hvd.broadcast_async(t, 0, name),
        hvd.reducescatter_async,
    ],
    ids=["allreduce", "allgather", "broadcast", "reducescatter"],
)
def test_a_name_that_is_in_flight(function, rank, size):
    """Rank 0 waits, so the first operation of the other ranks cannot be complete."""
    if size < 2:
        pytest.skip("needs two ranks")
    tensor = torch.ones(size, 3)
    if rank == 0:
        hvd.barrier()
    handle = function(tensor, name="twice")
    if rank > 0:
        with pytest.raises(ValueError, match="twice"):
            function(tensor, name="twice")
        hvd.barrier()
    hvd.synchronize(handle)


@pytest.mark.parametrize(
    "function, factor",
    [
        (lambda x: hvd.allreduce(x, op=hvd.Sum), lambda n: n**3),
        (lambda x: hvd.grouped_allreduce([x, x], op=hvd.Sum)[0], lambda n: n**3),
        (hvd.allgather, lambda n: 1 / n),
        (lambda x: hvd.grouped_allgather([x, x])[0], lambda n: 1 / n),
        (lambda x: hvd.broadcast(x, 0), lambda n: 1 / n if hvd.rank() == 0 else 0),
        (hvd.alltoall, lambda n: 1),
        (lambda x: hvd.reducescatter(x, op=hvd.Sum), lambda n: n**3),
        (lambda x: hvd.grouped_reducescatter([x, x], op=hvd.Sum)[0], lambda n: n**3),
    ],
    ids="allreduce allreduces allgather allgathers broadcast alltoall reducescatter reducescatters".split(),
)
def test_gradients_of_gradients(function, factor, rank, size):
    """As a penalty for large gradients needs them. All ranks have the same x, and the loss is the third power of the
    output. The second derivative is 6 x, times what the operation, its gradient, and the gradient of that make of it:
    a sum counts n times, and the average of an output that only one rank uses 1/n times."""
    x = torch.arange(1.0, 2 * size + 1).requires_grad_()
    (first,) = torch.autograd.grad((function(x) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second, 6 * factor(size) * x.detach())


def test_barrier(rank, size):
    time.sleep(0.2 * (rank == 0))
    hvd.barrier()
    hvd.barrier()
