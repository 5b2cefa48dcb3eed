# SPDX-License-Identifier: Apache-2.0
import horovod.torch as hvd
import pytest
import torch


@pytest.fixture
def sets(size):
    """The even ranks and the odd ranks; this rank's own set comes first."""
    if size < 2:
        pytest.skip("needs two ranks")
    both = [hvd.add_process_set(range(first, size, 2)) for first in (0, 1)]
    yield both if both[0].included() else both[::-1]
    for process_set in both:
        assert hvd.remove_process_set(process_set)
        assert not hvd.remove_process_set(process_set)


def test_places(sets, rank, size):
    own, other = sets
    assert own.included() and not other.included()
    assert own.ranks == list(range(rank % 2, size, 2)) and own.size() == len(own.ranks)
    assert own.rank() == rank // 2
    with pytest.raises(ValueError, match="not a member"):
        other.rank()
    assert str(own) == f"ProcessSet(process_set_id={own.process_set_id}, ranks={own.ranks}, mpi_comm=None)"
    assert hvd.mpi_ops._basics._get_process_set_ids_and_ranks()[own.process_set_id] == own.ranks


def test_operations(sets, rank):
    own, other = sets
    n = own.size()
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, process_set=own).tolist() == [n, n]
    assert hvd.allgather(torch.tensor([rank]), process_set=own).tolist() == own.ranks
    assert hvd.broadcast(torch.tensor(rank), own.ranks[-1], process_set=own).item() == own.ranks[-1]
    assert hvd.alltoall(torch.full((n,), rank), process_set=own).tolist() == own.ranks
    assert hvd.reducescatter(torch.ones(n), op=hvd.Sum, process_set=own).tolist() == [n]
    assert hvd.broadcast_object(rank, own.ranks[0], process_set=own) == own.ranks[0]
    assert hvd.allgather_object(rank, process_set=own) == own.ranks
    hvd.barrier(process_set=own)
    with pytest.raises(ValueError, match="not a member"):
        hvd.allreduce(torch.ones(1), process_set=other)
    with pytest.raises(ValueError, match="root"):
        hvd.broadcast(torch.ones(1), other.ranks[0], process_set=own)


def test_unnamed_operations_of_a_set_do_not_count_for_others(sets, rank, size):
    own, _ = sets
    for _ in range(rank % 2 + 1):
        hvd.allreduce(torch.ones(1), process_set=own)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_gradients(sets, rank):
    own, _ = sets
    n = own.size()
    tensor = torch.ones(2 * n).requires_grad_()
    hvd.allreduce(tensor, op=hvd.Sum, process_set=own).sum().backward()
    assert tensor.grad.tolist() == [n] * 2 * n
    tensor.grad = None
    hvd.allgather(tensor, process_set=own).sum().backward()
    assert tensor.grad.tolist() == [1] * 2 * n
    tensor.grad = None
    hvd.reducescatter(tensor, op=hvd.Sum, process_set=own).sum().backward()
    assert tensor.grad.tolist() == [n] * 2 * n


def test_optimizer(sets, rank):
    own, _ = sets
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), process_set=own)
    model(torch.full((1, 2), float(rank))).sum().backward()
    optimizer.step()
    assert torch.allclose(model.weight.data, torch.full((1, 2), 1 - sum(own.ranks) / own.size()))


def test_an_optimizer_of_other_ranks_works_alone(sets):
    _, other = sets
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), process_set=other)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert model.weight.data.tolist() == [[0.0, 0.0]]


def test_static_sets(size):
    if size < 2:
        pytest.skip("needs two ranks")
    hvd.shutdown()
    one, two = hvd.ProcessSet([0]), hvd.ProcessSet(range(size))
    assert one.size() is None and one.rank() is None
    with pytest.raises(ValueError):
        hvd.init(process_sets=[one, two])  # the second is the global set
    assert one.process_set_id == 1 and two.process_set_id is None
    hvd.init(process_sets=[one])
    assert one.process_set_id == 1
    hvd.shutdown()
    assert one.process_set_id is None
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(torch.ones(1), process_set=one)


def test_the_global_set(rank, size):
    everyone = hvd.global_process_set
    assert (everyone.process_set_id, everyone.ranks) == (0, list(range(size)))
    assert (everyone.size(), everyone.rank(), everyone.included()) == (size, rank, True)
    hvd.shutdown()
    assert everyone.process_set_id == 0
    for ask in (everyone.size, everyone.rank, everyone.included):
        with pytest.raises(ValueError, match=r"hvd.init\(\)"):
            ask()


def test_bad_sets(rank, size):
    with pytest.raises(ValueError):
        hvd.ProcessSet(["a"])
    with pytest.raises(ValueError):
        hvd.add_process_set([0, size])
    with pytest.raises(ValueError):
        hvd.add_process_set([0, 0])
    with pytest.raises(ValueError):
        hvd.add_process_set(range(size))
    assert hvd.remove_process_set(hvd.global_process_set) is False
    assert hvd.remove_process_set(hvd.ProcessSet([0])) is False
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size
