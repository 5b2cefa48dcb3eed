# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer with op=Adasum, compared with a serial training of all ranks in one process."""
import copy

import horovod.torch as hvd
import pytest
import torch
from torch.nn.functional import cross_entropy
from training import make_data, make_model, weights

STEPS = 6
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}


def pair(a, b):
    """Adasum of two vectors."""
    ab, aa, bb = (a * b).sum(), (a * a).sum(), (b * b).sum()
    return (1 - ab / (2 * aa) if aa > 0 else 1) * a + (1 - ab / (2 * bb) if bb > 0 else 1) * b


def adasum(vectors):
    """Of a power of two of vectors: neighbours first."""
    vectors = [one.double() for one in vectors]
    while len(vectors) > 1:
        vectors = [pair(*vectors[i : i + 2]) for i in range(0, len(vectors), 2)]
    return vectors[0]


def train_serially(size, make_optimizer, passes=1):
    """Each rank has a model and an optimizer. After its step, it gets the combined change instead of its own."""
    inputs, labels = make_data(size)
    models = [make_model() for _ in range(size)]
    optimizers = [make_optimizer(model.parameters()) for model in models]
    for _ in range(STEPS):
        before = [p.detach().clone() for p in models[0].parameters()]
        for rank, (model, optimizer) in enumerate(zip(models, optimizers)):
            optimizer.zero_grad()
            for part in range(passes):
                mine = slice(rank + part * size, None, passes * size)
                cross_entropy(model(inputs[mine]), labels[mine]).backward()
            optimizer.step()
        with torch.no_grad():
            for start, *all_ranks in zip(before, *(model.parameters() for model in models)):
                change = adasum([p - start for p in all_ranks])
                for p in all_ranks:
                    p.copy_(start + change)
    return weights(models[0])


def wrap(model, make_optimizer=OPTIMIZERS["sgd"], **options):
    optimizer = make_optimizer(model.parameters())
    return hvd.DistributedOptimizer(optimizer, model.named_parameters(), op=hvd.Adasum, **options)


def train(rank, size, make_optimizer, passes=1, **options):
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer = wrap(model, make_optimizer, backward_passes_per_step=passes, **options)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for part in range(passes):
            mine = slice(rank + part * size, None, passes * size)
            cross_entropy(model(inputs[mine]), labels[mine]).backward()
        optimizer.step()
    return weights(model)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_as_all_ranks_in_one_process(name, rank, size):
    found = train(rank, size, OPTIMIZERS[name])
    assert torch.equal(hvd.broadcast(found, 0), found)  # all ranks have the same bits
    assert torch.allclose(found, train_serially(size, OPTIMIZERS[name]), atol=1e-5)


def test_several_backward_passes(rank, size):
    found = train(rank, size, OPTIMIZERS["momentum"], passes=3)
    assert torch.allclose(found, train_serially(size, OPTIMIZERS["momentum"], passes=3), atol=1e-5)


@pytest.mark.parametrize("name, tolerance", [("fp16", 1e-3), ("bf16", 1e-2)])
def test_compression(name, tolerance, rank, size):
    found = train(rank, size, OPTIMIZERS["momentum"], compression=getattr(hvd.Compression, name))
    assert torch.equal(hvd.broadcast(found, 0), found)
    assert torch.allclose(found, train_serially(size, OPTIMIZERS["momentum"]), atol=tolerance)


def test_without_names(rank, size):
    model = make_model()
    optimizer = hvd.DistributedOptimizer(OPTIMIZERS["sgd"](model.parameters()), op=hvd.Adasum)
    model(torch.ones(1, 8) * (rank + 1)).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))


def test_the_model_stays_as_it_is_until_the_step(rank, size):
    if size < 2:
        pytest.skip("needs two ranks")
    model = make_model()
    before = weights(model)
    optimizer = wrap(model)
    model(torch.ones(1, 8)).sum().backward()
    assert set(optimizer._handles) == set(model.parameters())  # all are on their way
    assert torch.equal(weights(model), before)
    optimizer.synchronize()  # does nothing
    with pytest.raises(AssertionError, match="skip_synchronize"):
        with optimizer.skip_synchronize():
            pass
    with pytest.raises(AssertionError, match="zero_grad"):
        optimizer.zero_grad()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    assert not torch.equal(weights(model), before)
    optimizer.zero_grad()


def test_a_step_before_all_passes_and_parameters_that_are_not_used(rank, size):
    model = make_model()
    optimizer = wrap(model, OPTIMIZERS["momentum"], backward_passes_per_step=5)
    layer = model if rank > 0 else model[0]
    layer(torch.ones(1, 8) * (rank + 1)).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))
    optimizer.set_backward_passes_per_step(1)
    optimizer.zero_grad()
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))


def test_groups_with_options_of_their_own(rank, size):
    """A rate of 0 stops the second layer alone, also after the state was loaded, which makes new groups."""
    model = make_model()
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.0}]
    optimizer = wrap(model, lambda _: torch.optim.SGD(groups, lr=0.1))
    first, second = model[0].weight.detach().clone(), model[2].weight.detach().clone()
    for _ in range(2):
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        model(torch.ones(1, 8) * (rank + 1)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert torch.equal(model[2].weight.detach(), second) and not torch.equal(model[0].weight.detach(), first)
    assert [len(group["params"]) for group in optimizer.param_groups] == [2, 2]


def test_an_optimizer_whose_groups_have_one_rate(rank, size):
    """Also when it steps with a parameter of another group."""

    class FirstRate(torch.optim.SGD):
        def step(self, closure=None):
            self.param_groups[1]["lr"] = self.param_groups[0]["lr"]
            return super().step(closure)

    model = make_model()
    groups = [{"params": layer.parameters(), "lr": lr} for layer, lr in ((model[0], 0.1), (model[2], 0.0))]
    optimizer = wrap(model, lambda _: FirstRate(groups, lr=0.1))
    before = model[2].weight.detach().clone()
    model(torch.ones(1, 8) * (rank + 1)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[2].weight.detach(), before)
    assert [len(group["params"]) for group in optimizer.param_groups] == [2, 2]


def test_closure_scheduler_and_state(rank, size):
    model = make_model()
    optimizer = wrap(model, OPTIMIZERS["momentum"])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    assert isinstance(optimizer, torch.optim.SGD) and type(optimizer).__module__ == "horovod.torch.optimizer"

    def closure():
        loss = model(torch.ones(1, 8) * (rank + 1)).sum()
        loss.backward()
        return loss

    if size > 1:
        with torch.no_grad():
            wanted = model(torch.ones(1, 8) * (rank + 1)).sum()
        assert torch.equal(optimizer.step(closure), wanted)
        assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    everyone = hvd.allgather_object(optimizer.state_dict())
    assert all(repr(one) == repr(everyone[0]) for one in everyone)


def test_sparse_gradients(rank, size):
    """The change of a parameter is dense."""
    model = torch.nn.EmbeddingBag(10, 3, sparse=True, mode="sum")
    hvd.broadcast_parameters(model.state_dict(), 0)
    before = model.weight.detach().clone()
    optimizer = wrap(model, lambda p: torch.optim.SGD(p, lr=1.0))
    model(torch.tensor([[rank]])).sum().backward()
    optimizer.step()
    change = before - model.weight.detach()  # orthogonal ones are added
    assert torch.allclose(change[:size], torch.ones(size, 3), atol=1e-6) and change[size:].abs().sum() == 0


def test_process_sets_are_refused(size):
    if size < 2:
        pytest.skip("needs two ranks")
    own = hvd.add_process_set([0])
    with pytest.raises(NotImplementedError, match="global process set"):
        wrap(make_model(), process_set=own)
    hvd.remove_process_set(own)
