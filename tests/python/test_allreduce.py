# SPDX-License-Identifier: Apache-2.0
import horovod.torch as hvd
import pytest
import torch

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def values(rank, dtype, shape=(3, 4)):
    """Small numbers, which every type can sum up exactly, and which differ from rank to rank."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 5 + rank).reshape(shape).to(dtype)


def total(size, dtype, shape=(3, 4)):
    return sum(values(r, torch.float64, shape) for r in range(size)).to(dtype)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)
def test_sum(dtype, rank, size):
    tensor = values(rank, dtype)
    assert torch.equal(hvd.allreduce(tensor, op=hvd.Sum), total(size, dtype))
    assert torch.equal(tensor, values(rank, dtype))  # as it was


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_adasum(dtype, rank, size):
    """Equal vectors stay, orthogonal ones are added, and each tensor counts for itself."""
    equal, own = torch.arange(1, 9, dtype=dtype), torch.zeros(8, dtype=dtype)
    own[rank] = rank + 2
    outputs = hvd.grouped_allreduce([equal, own], op=hvd.Adasum)
    assert torch.allclose(outputs[0], equal)
    orthogonal = torch.zeros(8, dtype=dtype)
    orthogonal[:size] = torch.arange(2, size + 2, dtype=dtype)
    assert torch.allclose(outputs[1], orthogonal)


def test_adasum_of_vectors_of_very_different_lengths(rank, size):
    """Parallel ones give their average, from the smallest numbers to those whose squares are near the largest."""
    direction = torch.linspace(-1, 1, 1024, dtype=torch.float64)
    info = torch.finfo(torch.float32)
    low, high = info.tiny * 1e3, info.max**0.5
    lengths = [high ** ((r + 1) / size) * low ** ((size - r - 1) / size) for r in range(size)]
    output = hvd.allreduce((direction * lengths[rank]).float(), op=hvd.Adasum)
    assert torch.allclose(output.double(), direction * (sum(lengths) / size), rtol=1e-4, atol=0)
    tiny = hvd.allreduce((direction * low).float(), op=hvd.Adasum)
    assert torch.allclose(tiny.double(), direction * low, rtol=1e-3, atol=0)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (5, 1, 7), (2, 3, 4, 5)], ids=str)
def test_shapes(shape, rank, size):
    output = hvd.allreduce(values(rank, torch.float32, shape), op=hvd.Sum)
    assert output.shape == torch.Size(shape)
    assert torch.equal(output, total(size, torch.float32, shape))


def test_average_is_the_default(rank, size):
    tensor = values(rank, torch.float32)
    mean = total(size, torch.float64) / size
    assert torch.allclose(hvd.allreduce(tensor).double(), mean)
    assert torch.allclose(hvd.allreduce(tensor, op=hvd.Average).double(), mean)
    integers = hvd.allreduce(values(rank, torch.int32))
    assert torch.equal(integers, (total(size, torch.float64) / size + 1e-9).floor().int())


def test_the_older_average(rank, size):
    tensor = values(rank, torch.float32)
    with pytest.warns(DeprecationWarning):
        assert torch.equal(hvd.allreduce(tensor, average=False), total(size, torch.float32))
    with pytest.warns(DeprecationWarning):
        assert torch.allclose(hvd.allreduce(tensor, average=True), total(size, torch.float32) / size)
    with pytest.raises(ValueError):
        hvd.allreduce(tensor, average=True, op=hvd.Sum)


def test_min_max_product(rank, size):
    tensor = values(rank, torch.float32) + 1
    each = torch.stack([values(r, torch.float32) + 1 for r in range(size)])
    assert torch.equal(hvd.allreduce(tensor, op=hvd.Min), each.min(0).values)
    assert torch.equal(hvd.allreduce(tensor, op=hvd.Max), each.max(0).values)
    assert torch.equal(hvd.allreduce(tensor, op=hvd.Product), each.prod(0))


def test_bool_means_or_and_and(rank, size):
    mine = torch.tensor([rank == 0, True, False])
    assert hvd.allreduce(mine, op=hvd.Sum).tolist() == [True, True, False]
    assert hvd.allreduce(mine, op=hvd.Min).tolist() == [size == 1, True, False]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_scales(dtype, rank, size):
    tensor = values(rank, dtype)
    before = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
    assert torch.equal(before, total(size, torch.float64).mul(2).to(dtype))
    average = hvd.allreduce(tensor, postscale_factor=float(size))
    assert torch.allclose(average.double(), total(size, torch.float64), rtol=1e-2 if dtype == torch.float16 else 1e-6)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, *FLOATS], ids=str)
def test_scales_that_are_not_exact(dtype, rank, size):
    """Scales before the sum are in the element type, for 16 bits in float32, and for integers in float64."""
    factor = 0.191519450378892
    wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32}.get(dtype, dtype)
    wide = wide if wide.is_floating_point else torch.float64
    tensor = (torch.arange(600) - 300).to(dtype)
    scaled = (torch.tensor(factor, dtype=wide) * tensor.to(wide)).to(dtype)
    output = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=factor)
    if size <= 2:  # one addition is exact enough
        assert torch.equal(output, scaled * size)
    else:
        assert torch.allclose(output.double(), scaled.double() * size, rtol=1e-2)
    after = hvd.allreduce(tensor, op=hvd.Sum, postscale_factor=factor)
    assert torch.allclose(after.double(), (tensor.to(wide) * size * factor).to(dtype).double(), rtol=1e-2)


def test_integers_are_scaled_in_float64_and_truncated(rank, size):
    assert torch.equal(
        hvd.allreduce(torch.tensor([7, -7]), op=hvd.Sum, prescale_factor=0.5), torch.tensor([3, -3]) * size
    )


def test_in_place(rank, size):
    tensor = values(rank, torch.float32)
    assert hvd.allreduce_(tensor, op=hvd.Sum) is tensor
    assert torch.equal(tensor, total(size, torch.float32))


def test_not_contiguous(rank, size):
    tensor = values(rank, torch.float32).t()
    wanted = total(size, torch.float32).t()
    assert torch.equal(hvd.allreduce(tensor, op=hvd.Sum), wanted)
    hvd.allreduce_(tensor, op=hvd.Sum)
    assert torch.equal(tensor, wanted)
    table = torch.zeros(4, 4)
    hvd.allreduce_(table[:, 1].fill_(1), op=hvd.Sum)
    assert torch.equal(table[:, 1], torch.full((4,), float(size))) and table.sum() == 4 * size


def test_the_imaginary_part_of_a_conjugate(rank, size):
    """PyTorch keeps the sign of such a tensor outside of its memory."""
    tensor = torch.complex(torch.ones(3), torch.ones(3)).conj().imag
    assert tensor.is_neg()
    assert hvd.allreduce(tensor, op=hvd.Sum).tolist() == [-size] * 3


def test_no_copy(rank, size):
    tensor = values(rank, torch.float32)
    place = tensor.data_ptr()
    hvd.synchronize(hvd.allreduce_async_(tensor, op=hvd.Sum))
    assert tensor.data_ptr() == place and torch.equal(tensor, total(size, torch.float32))


def test_async_and_poll(rank, size):
    wanted = {}
    for i in range(30):
        wanted[hvd.allreduce_async(values(rank + i, torch.float32), op=hvd.Sum, name=f"t{i}")] = i
    while not all(hvd.poll(handle) for handle in wanted):
        pass
    for handle, i in wanted.items():
        assert torch.equal(hvd.synchronize(handle), total(size, torch.float32) + i * size)
        assert hvd.synchronize(handle) is None  # again
        with pytest.raises(ValueError):
            hvd.poll(handle)


def test_tensors_live_as_long_as_the_handle(rank, size):
    handles = [hvd.allreduce_async(torch.full((1 << 16,), float(i)), op=hvd.Sum, name=f"t{i}") for i in range(8)]
    trash = [torch.full((1 << 16,), -1.0) for _ in range(32)]
    for i, handle in enumerate(handles):
        assert torch.equal(hvd.synchronize(handle), torch.full((1 << 16,), float(i * size)))
    assert len(trash) == 32


@pytest.mark.parametrize("in_place", [False, True])
def test_groups(in_place, rank, size):
    tensors = [values(rank + i, dtype, (i, 2)) for i in range(4) for dtype in (torch.float32, torch.int64)]
    wanted = [hvd.allreduce(tensor, op=hvd.Sum) for tensor in tensors]
    function = hvd.grouped_allreduce_ if in_place else hvd.grouped_allreduce
    outputs = function(tensors, op=hvd.Sum, name="group")
    assert len(outputs) == len(tensors)
    for tensor, output, result in zip(tensors, outputs, wanted):
        assert torch.equal(output, result)
        assert (tensor is output) == in_place
    with pytest.raises(ValueError):
        hvd.grouped_allreduce_async([])


def test_grouped_async(rank, size):
    handle = hvd.grouped_allreduce_async([values(rank, torch.float32), values(rank, torch.float64)], op=hvd.Sum)
    one, two = hvd.synchronize(handle)
    assert torch.equal(one.double(), two) and torch.equal(one, total(size, torch.float32))
    tensors = [values(rank, torch.float32)]
    hvd.synchronize(hvd.grouped_allreduce_async_(tensors, op=hvd.Sum))
    assert torch.equal(tensors[0], one)


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average])
def test_gradient(op, rank, size):
    tensor = values(rank, torch.float32).requires_grad_()
    hvd.allreduce(tensor, op=op).backward(torch.full((3, 4), float(rank + 1)))
    wanted = sum(range(1, size + 1)) / (size if op == hvd.Average else 1)
    assert torch.allclose(tensor.grad, torch.full((3, 4), float(wanted)))
    group = [values(rank, torch.float32).requires_grad_() for _ in range(3)]
    torch.autograd.backward([one.sum() for one in hvd.grouped_allreduce(group, op=op)])
    for one in group:
        assert torch.allclose(one.grad, torch.full((3, 4), float(size if op == hvd.Sum else 1)))


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16, hvd.Compression.none])
def test_compression(compression, rank, size):
    output = hvd.allreduce(values(rank, torch.float64), op=hvd.Sum, compression=compression)
    assert output.dtype == torch.float64 and torch.equal(output, total(size, torch.float64))
    assert hvd.allreduce(values(rank, torch.int32), op=hvd.Sum, compression=compression).dtype == torch.int32
    outputs = hvd.grouped_allreduce([values(rank, torch.float32)], op=hvd.Sum, compression=compression)
    assert outputs[0].dtype == torch.float32 and torch.equal(outputs[0], total(size, torch.float32))


def test_a_compressor_of_the_user(rank, size):
    class Half(hvd.compression.Compressor):
        @staticmethod
        def compress(tensor):
            return tensor / 2, 2

        @staticmethod
        def decompress(tensor, ctx):
            return tensor * ctx

    assert torch.equal(hvd.allreduce(torch.ones(3), op=hvd.Sum, compression=Half), torch.full((3,), float(size)))


def test_sparse(rank, size):
    tensor = torch.sparse_coo_tensor([[rank, size], [0, 1]], [1.0, 2.0], (size + 1, 2))
    for op, divisor in ((hvd.Sum, 1), (hvd.Average, size)):
        output = hvd.sparse_allreduce_async(tensor, name="sparse", op=op)()
        wanted = torch.zeros(size + 1, 2)
        wanted[:size, 0], wanted[size, 1] = 1 / divisor, 2 * size / divisor
        assert output.is_sparse and torch.allclose(output.to_dense(), wanted)
    with pytest.raises(ValueError, match="sparse"):
        hvd.allreduce(tensor)
    with pytest.raises(ValueError, match="dense"):
        hvd.sparse_allreduce_async(torch.ones(2), name="dense", op=hvd.Sum)
