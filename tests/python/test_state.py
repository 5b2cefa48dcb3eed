# SPDX-License-Identifier: Apache-2.0
"""Parameters, optimizers and objects that go from one rank to the others."""
import horovod.torch as hvd
import pytest
import torch

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p),
    "asgd": lambda p: torch.optim.ASGD(p),
    "rprop": lambda p: torch.optim.Rprop(p),
}


def make_model():
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def same_everywhere(value):
    everyone = hvd.allgather_object(value)
    return all(repr(one) == repr(everyone[0]) for one in everyone)


def test_parameters(rank, size):
    torch.manual_seed(rank)
    model = make_model()
    model[1].num_batches_tracked.fill_(rank)
    first = {name: value.clone() for name, value in model.state_dict().items()}
    hvd.broadcast_parameters(model.state_dict(), root_rank=size - 1)
    assert same_everywhere(model.state_dict())
    if rank == size - 1:
        assert repr(first) == repr(dict(model.state_dict()))
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
    hvd.broadcast_parameters([torch.ones(2), torch.zeros(1, dtype=torch.bool)], root_rank=0)
    with pytest.raises(ValueError, match="list"):
        hvd.broadcast_parameters(model.parameters(), root_rank=0)
    with pytest.raises(ValueError, match="not a tensor"):
        hvd.broadcast_parameters({"a": 1}, root_rank=0)


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "wrapped"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_state(name, wrapped, rank, size):
    """Only rank 0 has trained, and the parameters of the others must not change."""
    torch.manual_seed(1)
    model = make_model()
    optimizer = OPTIMIZERS[name](model.parameters())
    if rank == 0:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 3)).sum().backward()
            optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.0625
    state = optimizer.state_dict()
    if wrapped:
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
        optimizer.load_state_dict(state)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert repr(before) == repr(dict(model.state_dict()))
    assert optimizer.param_groups[0]["lr"] == 0.0625
    assert same_everywhere(optimizer.state_dict()["state"])
    assert same_everywhere([{k: v for k, v in one.items() if k != "params"} for one in optimizer.param_groups])


def test_optimizer_state_of_sparse_embeddings(rank):
    model = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.1 * (rank + 1))
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.1
    hvd.broadcast_optimizer_state(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5), root_rank=0, model=model)


def test_optimizers_that_are_refused():
    with pytest.raises(ValueError, match="LBFGS"):
        hvd.broadcast_optimizer_state(torch.optim.LBFGS([torch.ones(1).requires_grad_()]), root_rank=0)


def test_objects(rank, size):
    values = {"text": "x" * 100000, "rank": rank, "function": lambda x: x + rank}
    got = hvd.broadcast_object(values, size - 1)
    assert got["rank"] == size - 1 and got["function"](1) == size
    assert (got is values) == (rank == size - 1)
    # other types on other ranks
    assert hvd.broadcast_object([1] if rank == 0 else None, 0) == [1]
    assert hvd.broadcast_object(rank, root_rank=0, name="named") == 0
    everyone = hvd.allgather_object({"rank": rank, "more": [0] * rank})
    assert [one["rank"] for one in everyone] == list(range(size))
    assert [len(one["more"]) for one in everyone] == list(range(size))
    assert hvd.allgather_object(None) == [None] * size


def test_sync_batch_norm(rank, size):
    torch.manual_seed(1)
    inputs, weights = torch.randn(4 * size, 3, 2, 2) * 3 + 5, torch.randn(4 * size, 3, 2, 2)
    alone, ours = torch.nn.BatchNorm2d(3), hvd.SyncBatchNorm(3)
    whole = inputs.clone().requires_grad_()
    (alone(whole) * weights).sum().backward()
    part = slice(4 * rank, 4 * rank + 4)
    mine = inputs[part].clone().requires_grad_()
    (ours(mine) * weights[part]).sum().backward()
    assert torch.allclose(mine.grad, whole.grad[part], atol=1e-5)
    assert torch.allclose(ours.running_mean, alone.running_mean) and torch.allclose(ours.running_var, alone.running_var)
    ours.eval(), alone.eval()
    assert torch.allclose(ours(inputs), alone(inputs), atol=1e-5)
    with pytest.raises(ValueError, match="dimensions"):
        ours(torch.ones(3))
