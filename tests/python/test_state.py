# SPDX-License-Identifier: Apache-2.0
"""Parameters, optimizers and objects that go from one rank to the others."""
import inspect

import horovod.torch as hvd
import pytest
import torch
from torch.overrides import TorchFunctionMode

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


def all_optimizers():
    """Every class of torch.optim that has a state which can be shared."""
    refused = [torch.optim.LBFGS, torch.optim.SparseAdam]
    if hasattr(torch.optim, "Muon"):  # only for matrices, and the model has a bias
        refused.append(torch.optim.Muon)
    found = {one for one in vars(torch.optim).values() if isinstance(one, type) and one is not torch.optim.Optimizer}
    return sorted((one for one in found if one not in refused), key=lambda one: one.__name__)


@pytest.mark.parametrize("kind", all_optimizers(), ids=lambda kind: kind.__name__)
def test_options_keep_their_types(kind, rank):
    """All ranks get the options of rank 0, as what they were, and can train with them."""
    options = [
        {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.2, "betas": (0.9, 0.999), "etas": (0.8, 2.4), "amsgrad": True},
        {"lr": 0.2, "momentum": 0.9, "weight_decay": 0.1, "betas": (0.8, 0.9), "etas": (0.25, 1.75), "amsgrad": False},
    ]
    accepted = inspect.signature(kind.__init__).parameters
    wanted, other = ({name: value for name, value in one.items() if name in accepted} for one in options)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = kind(model.parameters(), **(wanted if rank == 0 else other))
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    def step():
        optimizer.zero_grad()
        model(torch.ones(5, 3)).sum().backward()
        optimizer.step()

    step()
    types = [{k: type(v) for k, v in one.items()} for one in optimizer.state_dict()["state"].values()]
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for name, value in wanted.items():
        found = optimizer.param_groups[0][name]
        assert found == value and type(found) is type(value)
    after = [{k: type(v) for k, v in one.items()} for one in optimizer.state_dict()["state"].values()]
    assert after == hvd.broadcast_object(types)
    step()


def test_states_that_differ(rank, size):
    """In what they have, and in the shapes of tensors: all get what rank 0 has."""
    parameters = [torch.nn.Parameter(torch.full((2,), float(rank))) for _ in range(2)]
    optimizer = torch.optim.SGD(parameters, lr=0.5 / (rank + 1))
    optimizer.state[parameters[0]] = {"tensor": torch.full((3 + rank,), float(rank)), "value": [rank], "none": None}
    if rank > 0:
        optimizer.state[parameters[0]]["more"] = torch.ones(1)
        optimizer.state[parameters[1]]["whole"] = torch.ones(1)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    state = optimizer.state[parameters[0]]
    assert list(state) == ["tensor", "value", "none"] and state["value"] == [0] and state["none"] is None
    assert state["tensor"].tolist() == [0.0] * 3 and not optimizer.state.get(parameters[1])
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_options_of_an_optimizer_without_a_state(rank):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5 / (rank + 1))
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_parameters_without_gradients(rank):
    """An integer that is not trained, beside one that is."""
    model = torch.nn.Module()
    model.index = torch.nn.Parameter(torch.tensor([1, 3], dtype=torch.int32), requires_grad=False)
    model.values = torch.nn.Parameter(torch.full((4,), float(rank)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-6, nesterov=True)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert model.index.grad is None and same_everywhere(model.values.grad) and model.values.tolist() == [0.0] * 4


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
    for length in range(960, 1040):  # small ones are sent with their length
        assert hvd.broadcast_object(b"x" * length if rank == 0 else None) == b"x" * length
    # other types on other ranks
    assert hvd.broadcast_object([1] if rank == 0 else None, 0) == [1]
    assert hvd.broadcast_object(rank, root_rank=0, name="named") == 0
    everyone = hvd.allgather_object({"rank": rank, "more": [0] * rank})
    assert [one["rank"] for one in everyone] == list(range(size))
    assert [len(one["more"]) for one in everyone] == list(range(size))
    assert hvd.allgather_object(None) == [None] * size


class Elsewhere(TorchFunctionMode):
    """As torch.set_default_device() of PyTorch 2: new tensors are on another device."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in (torch.empty, torch.tensor, torch.zeros, torch.ones):
            kwargs.setdefault("device", "meta")
        return function(*args, **kwargs)


def test_another_default_device(rank, size):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    data = torch.arange(float(size))
    sparse = torch.eye(2).to_sparse()
    with Elsewhere():
        assert torch.empty(1).is_meta
        assert hvd.broadcast_object({"rank": rank}) == {"rank": 0}
        assert hvd.allgather_object(rank) == list(range(size))
        hvd.broadcast_optimizer_state(optimizer, 0)
        output, received = hvd.alltoall(data, splits=[1] * size)
        assert not output.is_meta and received.tolist() == [1] * size
        assert not hvd.alltoall(data).is_meta
        assert hvd.sparse_allreduce_async(sparse, "sparse", hvd.Average)().to_dense().tolist() == [[1, 0], [0, 1]]
        assert hvd.elastic.ObjectState(epoch=rank).sync() is None


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


def test_sync_batch_norm_without_running_statistics(rank, size):
    """Then the batches of all ranks count in evaluation, too."""
    torch.manual_seed(1)
    inputs = torch.randn(2 * size, 3) * 2 + 1
    alone, ours = (kind(3, track_running_stats=False) for kind in (torch.nn.BatchNorm1d, hvd.SyncBatchNorm))
    mine = slice(2 * rank, 2 * rank + 2)
    for training in (True, False):
        alone.train(training), ours.train(training)
        assert torch.allclose(ours(inputs[mine]), alone(inputs)[mine], atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 5), (1, 4, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("options", [{}, {"momentum": None}, {"affine": False}, {"eps": 0.5}], ids=str)
def test_sync_batch_norm_of_other_shapes(shape, options, rank, size):
    """Also the gradients of weight and bias, and ranks whose batches have other sizes."""
    torch.manual_seed(1)
    kind = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 5: torch.nn.BatchNorm3d}[len(shape)]
    batches = [torch.randn(shape[0] + r, *shape[1:]) * (r + 1) + r for r in range(size)]
    alone, ours = kind(4, **options), hvd.SyncBatchNorm(4, **options)
    for _ in range(2):
        alone.zero_grad(), ours.zero_grad()
        whole = torch.cat(batches).requires_grad_()
        (alone(whole) ** 2).sum().backward()
        mine = batches[rank].clone().requires_grad_()
        (ours(mine) ** 2).sum().backward()
        first = sum(len(one) for one in batches[:rank])
        assert torch.allclose(mine.grad, whole.grad[first : first + len(mine)], atol=1e-4)
        assert torch.allclose(ours.running_mean, alone.running_mean, atol=1e-5)
        assert torch.allclose(ours.running_var, alone.running_var, rtol=1e-4)
        if ours.affine:
            assert torch.allclose(hvd.allreduce(ours.weight.grad, op=hvd.Sum), alone.weight.grad, atol=1e-3)
            assert torch.allclose(hvd.allreduce(ours.bias.grad, op=hvd.Sum), alone.bias.grad, atol=1e-3)
