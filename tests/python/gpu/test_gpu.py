# SPDX-License-Identifier: Apache-2.0
import horovod.torch as hvd
import pytest
import torch
from horovod.common.library import hvd as libhvd
from horovod.torch import memory, stream

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def values(rank, dtype=torch.float32, shape=(3, 4)):
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 5 + rank).reshape(shape).to(dtype)


def total(size, dtype=torch.float32, shape=(3, 4)):
    return sum(values(r, torch.float64, shape) for r in range(size)).to(dtype)


def same(found, wanted):
    return found.is_cuda and found.dtype == wanted.dtype and torch.equal(found.cpu(), wanted)


def test_what_is_built():
    assert hvd.nccl_built() == libhvd.hvd_nccl_version() >= 21300
    assert hvd.cuda_built()


def test_tensors_go_to_nccl(gpu):
    place = memory.place_of(gpu.put(torch.ones(1)))
    assert place.device == hvd.local_rank()
    assert memory.place_of(torch.ones(1)) is None
    for dtype in FLOATS:
        assert memory.place_of(gpu.put(torch.ones(1).to(dtype)), True, True) is not None
    for dtype in INTEGERS:
        tensor = gpu.put(torch.ones(1).to(dtype))
        assert memory.place_of(tensor) is not None  # it can be moved
        assert (memory.place_of(tensor, True) is None) == (dtype == torch.int16)
        assert memory.place_of(tensor, True, True) is None


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)
def test_allreduce(dtype, gpu, rank, size):
    tensor = gpu.put(values(rank, dtype))
    assert same(hvd.allreduce(tensor, op=hvd.Sum), total(size, dtype))
    assert same(tensor, values(rank, dtype))
    assert hvd.allreduce_(tensor, op=hvd.Max) is tensor
    assert same(tensor, values(size - 1, dtype))


@pytest.mark.parametrize("dtype", FLOATS + [torch.int32], ids=str)
def test_scales(dtype, gpu, rank, size):
    found = hvd.allreduce(gpu.put(values(rank, dtype)), op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)
    assert same(found, total(size, dtype))
    average = hvd.allreduce(gpu.put(values(rank, dtype)))
    mean = total(size, torch.float64) / size
    assert torch.allclose(average.cpu().double(), mean if dtype.is_floating_point else mean.floor(), rtol=1e-2)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (5, 1, 7)], ids=str)
def test_shapes(shape, gpu, rank, size):
    assert same(hvd.allreduce(gpu.put(values(rank, shape=shape)), op=hvd.Sum), total(size, shape=shape))
    assert same(hvd.broadcast(gpu.put(values(rank, shape=shape)), size - 1), values(size - 1, shape=shape))
    if shape:
        assert hvd.allgather(gpu.put(values(rank, shape=shape))).shape[0] == shape[0] * size


def test_tensors_that_are_not_contiguous(gpu, rank, size):
    tensor = gpu.put(values(rank)).t()
    assert same(hvd.allreduce(tensor, op=hvd.Sum), total(size).t())
    hvd.allreduce_(tensor, op=hvd.Sum)
    assert same(tensor, total(size).t()) and not tensor.is_contiguous()
    hvd.broadcast_(tensor, 0)
    assert same(tensor, total(size).t())


def test_groups(gpu, rank, size):
    tensors = [gpu.put(values(rank, dtype)) for dtype in (torch.float32, torch.int16, torch.float16)]
    for found in (hvd.grouped_allreduce(tensors, op=hvd.Sum), hvd.grouped_allreduce_(tensors, op=hvd.Sum)):
        assert [same(one, total(size, one.dtype)) for one in found] == [True] * 3
    with pytest.raises(hvd.HorovodInternalError, match="use one device"):
        hvd.grouped_allreduce([tensors[0], torch.ones(1)])


def test_adasum_is_that_of_the_cpu(gpu, rank):
    torch.manual_seed(rank)
    tensor = torch.randn(1000)
    assert same(hvd.allreduce(gpu.put(tensor), op=hvd.Adasum, name="gpu"),
                hvd.allreduce(tensor, op=hvd.Adasum, name="cpu"))  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.bfloat16, torch.float32], ids=str)
def test_allgather(dtype, gpu, rank, size):
    found = hvd.allgather(gpu.put(values(rank, dtype, (rank + 1, 2))))
    assert same(found, torch.cat([values(r, dtype, (r + 1, 2)) for r in range(size)]))
    found = hvd.grouped_allgather([gpu.put(values(rank, dtype)), gpu.put(values(rank, dtype, (rank, 1)))])
    assert same(found[1], torch.cat([values(r, dtype, (r, 1)) for r in range(size)]))


@pytest.mark.parametrize("splits_on_gpu", [False, True])
def test_alltoall(splits_on_gpu, gpu, rank, size):
    tensor = gpu.put(torch.full((sum(range(size + 1)), 2), float(rank)))
    splits = torch.arange(size, dtype=torch.int32)
    found, received = hvd.alltoall(tensor, gpu.put(splits) if splits_on_gpu else splits)
    assert received.tolist() == [rank] * size
    assert same(found, torch.arange(size).float().repeat_interleave(rank).unsqueeze(1).expand(-1, 2).contiguous())


def test_reducescatter(gpu, rank, size):
    rows = 2 * size + 1
    found = hvd.reducescatter(gpu.put(values(rank, shape=(rows, 3))), op=hvd.Sum)
    first = rank * 2 + min(rank, 1)
    assert same(found, total(size, shape=(rows, 3))[first : first + 2 + (rank < 1)])
    found = hvd.reducescatter(gpu.put(values(rank, shape=(0, 3))), op=hvd.Sum)
    assert found.shape == (0, 3)


def test_compression(gpu, rank, size):
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        assert same(hvd.allreduce(gpu.put(values(rank)), compression=compression, op=hvd.Sum), total(size))


def test_an_operation_waits_for_its_input(gpu, rank, size):
    """No thread waits: the tensor is computed after it was submitted."""
    late, value = gpu.put(torch.zeros(3, 4)), gpu.put(values(rank))
    for turn in range(3):
        late.zero_()
        gpu.compute_late(late, value)
        found = hvd.synchronize(hvd.allreduce_async(late, op=hvd.Sum, name=f"late.{turn}"))
        assert same(found, total(size))
        gpu.compute_late(late, value)
        assert same(hvd.allgather(late), torch.cat([values(r) for r in range(size)]))


def test_the_stream_of_synchronize_waits_for_the_result(gpu, rank, size):
    late, value = gpu.put(torch.zeros(3, 4)), gpu.put(values(rank))
    for _ in range(3):  # the first time, a GPU also loads what it needs, and that may wait for all streams
        late.zero_()
        gpu.compute_late(late, value)
        handle = hvd.allreduce_async_(late, op=hvd.Sum, name="late")
        other = hvd.allgather_async(late, name="other")
        with gpu.another_stream():
            assert same(hvd.synchronize(handle), total(size))
            assert hvd.synchronize(other).shape == (3 * size, 4)


def test_a_rank_that_joins_before_its_first_tensor(gpu, rank, size):
    """It says which GPU it has; a number that no GPU has is not used."""
    if rank > 0:
        with pytest.raises(NotImplementedError, match="it has joined, and has not used a GPU before"):
            hvd.allreduce(gpu.put(values(rank)), name="first")
    hvd.join(99 if rank == 0 else -1)
    if rank > 0:
        assert same(hvd.allreduce(gpu.put(values(rank)), op=hvd.Sum, name="second"), total(size) - values(0))
    hvd.join(hvd.local_rank())
    assert same(hvd.allreduce(gpu.put(values(rank)), op=hvd.Sum, name="third"), total(size))


def test_parameters(gpu, rank, size):
    tensors = {"a": gpu.put(values(rank)), "b": gpu.put(values(rank, torch.int64, ())), "c": values(rank)}
    hvd.broadcast_parameters(tensors, root_rank=size - 1)
    assert same(tensors["a"], values(size - 1)) and same(tensors["b"], values(size - 1, torch.int64, ()))
    assert torch.equal(tensors["c"], values(size - 1))


def test_a_commit_waits_for_the_gpu(gpu, rank, size, monkeypatch):
    state = hvd.elastic.TorchState(batch=0)
    hvd.allreduce(gpu.put(torch.ones(1)))
    waited = []
    synchronize = stream.cuda.synchronize
    monkeypatch.setattr(stream.cuda, "synchronize", lambda device: (waited.append(device), synchronize(device)))
    state.batch = 1
    state.commit()
    assert waited == [hvd.local_rank()]
    monkeypatch.setattr(libhvd, "hvd_failure", lambda: -10)
    state.batch = 2
    with pytest.raises(hvd.HorovodInternalError):
        state.commit()
    state.restore()
    assert state.batch == 1


def test_without_nccl_tensors_go_through_the_host(gpu, rank, size, monkeypatch):
    monkeypatch.setattr(stream, "has_nccl", lambda: False)
    tensor = gpu.put(values(rank))
    assert memory.place_of(tensor) is None
    hvd.allreduce_(tensor, op=hvd.Sum)
    assert same(tensor, total(size))
