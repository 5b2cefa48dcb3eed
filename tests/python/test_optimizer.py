# SPDX-License-Identifier: Apache-2.0
import copy

import horovod.torch as hvd
import pytest
import torch
from torch.nn.functional import cross_entropy
from training import STEPS, make_data, make_model, train_alone, weights, wrap


@pytest.mark.parametrize(
    "options, tolerance",
    [
        ({}, 1e-6),
        ({"gradient_predivide_factor": 2.0}, 1e-6),
        ({"groups": 1}, 1e-6),
        ({"groups": 3, "gradient_predivide_factor": 4.0}, 1e-6),
        ({"groups": 100}, 1e-6),
        ({"compression": hvd.Compression.fp16}, 1e-3),
        ({"compression": hvd.Compression.bf16}, 1e-2),
        ({"compression": hvd.Compression.fp16, "groups": 2}, 1e-3),
        ({"op": hvd.Sum}, None),
    ],
    ids=str,
)
def test_as_one_process_with_the_whole_batch(options, tolerance, rank, size):
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer = wrap(model, **options)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs[rank::size]), labels[rank::size])
        (loss / size if options.get("op") == hvd.Sum else loss).backward()
        optimizer.step()
    assert torch.allclose(weights(model), train_alone(size), atol=tolerance or 1e-6)


def test_several_backward_passes(rank, size):
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer = wrap(model, backward_passes_per_step=3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for part in range(3):
            mine = slice(rank + part * size, None, 3 * size)
            (cross_entropy(model(inputs[mine]), labels[mine]) / 3).backward()
        optimizer.step()
    assert torch.allclose(weights(model), train_alone(size), atol=1e-6)
    model(inputs[:2]).sum().backward()
    if size > 1:  # one of three passes is done
        with pytest.raises(AssertionError, match="zero_grad"):
            optimizer.zero_grad()
    optimizer.step()
    optimizer.set_backward_passes_per_step(1)
    model(inputs[:2]).sum().backward()
    optimizer.step()


def test_a_step_before_all_passes(rank, size):
    model = make_model()
    optimizer = wrap(model, backward_passes_per_step=5)
    model(torch.ones(1, 8) * rank).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))


def test_too_many_passes(rank, size):
    if size < 2:
        pytest.skip("needs two ranks")
    model = make_model()
    optimizer = wrap(model)
    model(torch.ones(1, 8)).sum().backward()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        model(torch.ones(1, 8)).sum().backward()
    with pytest.raises(AssertionError, match="zero_grad"):
        optimizer.zero_grad()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    assert all(p.grad is None for p in model.parameters())


def test_groups_of_parameters(rank, size):
    model, (inputs, labels) = make_model(), make_data(size)
    first, second = list(model[0].parameters()), list(model[2].parameters())
    optimizer = wrap(model, groups=[[second[1], first[0]]])
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(model(inputs[rank::size]), labels[rank::size]).backward()
        optimizer.step()
    assert torch.allclose(weights(model), train_alone(size), atol=1e-6)
    with pytest.raises(ValueError, match="once"):
        wrap(model, groups=[[first[0]], [first[0]]])
    with pytest.raises(ValueError, match="parameters"):
        wrap(model, groups=[["weight"]])
    with pytest.raises(ValueError, match="number"):
        wrap(model, groups=-1)
    with pytest.warns(DeprecationWarning):
        wrap(model, num_groups=2)


def test_parameters_that_a_rank_does_not_use(rank, size):
    """All ranks reduce all parameters, also those that are switched off later."""
    model = make_model()
    optimizer = wrap(model)
    if rank == 0:
        model[0](torch.ones(1, 8)).sum().backward()
    else:
        model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))
    model[2].weight.requires_grad_(False)
    optimizer.zero_grad()
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))


def test_two_optimizers_whose_models_are_switched_off_in_turns(rank, size):
    """As of a generator and its discriminator."""
    first, second = torch.nn.Conv2d(1, 10, 1), torch.nn.Conv2d(10, 1, 1)
    for model in (first, second):
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizers = [
        hvd.DistributedOptimizer(
            torch.optim.SGD(m.parameters(), lr=0.1), [(f"{n}.{k}", p) for k, p in m.named_parameters()]
        )
        for n, m in enumerate((first, second))
    ]
    inputs = torch.rand([1, 1, 8, 8]) + rank
    for turn in range(6):
        for i, model in enumerate((first, second)):
            for parameter in model.parameters():
                parameter.requires_grad_(i == turn % 2)
        before = weights(first), weights(second)
        for optimizer in optimizers:
            optimizer.zero_grad()
        second(first(inputs)).sum().backward()
        optimizers[turn % 2].step()
        changed = [not torch.equal(*pair) for pair in zip(before, (weights(first), weights(second)))]
        assert changed == [turn % 2 == 0, turn % 2 == 1]
        assert torch.equal(hvd.broadcast(weights(first), 0), weights(first))


@pytest.mark.parametrize("sparse_as_dense", [False, True])
def test_sparse_gradients(sparse_as_dense, rank, size):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(10, 3, sparse=True, mode="sum"), torch.nn.Linear(3, 1))
    before = model[0].weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), sparse_as_dense=sparse_as_dense)
    model(torch.tensor([[rank, 9]])).sum().backward()
    optimizer.step()
    change = (before - model[0].weight.detach()) * size
    row = model[1].weight.detach() + torch.zeros_like(change[9])  # the weights of the other layer after the step
    assert torch.equal(hvd.broadcast(change, 0), change) and row.shape == (1, 3)
    assert torch.allclose(change[9], change[:size].sum(0), atol=1e-5)
    assert change[size:9].abs().sum() == 0 and change[9].abs().sum() > 0


def test_what_scripts_look_at():
    model = make_model()
    original = torch.optim.Adam(model.parameters(), lr=0.5)
    optimizer = hvd.DistributedOptimizer(original, named_parameters=model.named_parameters())
    assert isinstance(optimizer, torch.optim.Adam) and type(optimizer).__name__ == "Adam"
    assert "horovod" in str(type(optimizer))
    assert optimizer.param_groups[0] is original.param_groups[0]
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    scheduler.step()
    assert original.param_groups[0]["lr"] == 0.25
    state = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(state)
    assert repr(optimizer.state_dict()) == repr(state)
    assert set(optimizer._parameter_names.values()) == {name for name, _ in model.named_parameters()}
    from horovod.torch.optimizer import _DistributedOptimizer

    assert isinstance(_DistributedOptimizer, type)
    assert (optimizer.op, optimizer.gradient_predivide_factor, optimizer.sparse_as_dense) == (hvd.Average, 1.0, False)
    assert optimizer.process_set is hvd.global_process_set and optimizer.backward_passes_per_step == 1


def test_an_optimizer_of_a_subclass(rank, size):
    class Mine(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            Mine.calls += 1
            return super().step(closure)

    model = make_model()
    optimizer = hvd.DistributedOptimizer(Mine(model.parameters(), lr=0.1), model.named_parameters())
    model(torch.ones(1, 8) * rank).sum().backward()
    optimizer.step()
    assert Mine.calls == 1 and torch.equal(hvd.broadcast(weights(model), 0), weights(model))


KINDS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "LBFGS": lambda parameters: torch.optim.LBFGS(parameters, lr=0.1, max_iter=4),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_closure(make, waits, rank, size):
    """What it computes is averaged, each time that the optimizer calls it. It may wait for that, as to clip."""
    model, (inputs, labels) = make_model(), make_data(size)
    alone = copy.deepcopy(model)
    reference = make(alone.parameters())
    optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
    losses = []

    def closure():
        optimizer.zero_grad()
        losses.append(cross_entropy(model(inputs[rank::size]), labels[rank::size]))
        losses[-1].backward()
        if waits:
            optimizer.synchronize()
        return losses[-1]

    def closure_alone():
        reference.zero_grad()
        loss = cross_entropy(alone(inputs), labels)
        loss.backward()
        return loss

    for _ in range(3):
        first = len(losses)
        assert torch.equal(optimizer.step(closure), losses[first])
        reference.step(closure_alone)
    assert torch.allclose(weights(model), weights(alone), atol=1e-5)
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))


def test_a_closure_around_what_was_synchronized(rank, size):
    """As Lightning does it: the script itself says when the gradients are combined."""
    model = make_model()
    optimizer = wrap(model)

    def closure():
        loss = model(torch.ones(1, 8) * rank).sum()
        loss.backward()
        optimizer.synchronize()
        return loss

    with optimizer.skip_synchronize():
        optimizer.step(closure)
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))
    model(torch.ones(1, 8) * rank).sum().backward()
    optimizer.step(lambda: 7.0)  # the gradients are there
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))


def test_without_names_and_with_bad_names(rank):
    model = make_model()
    make = lambda names: hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), names)  # noqa: E731
    optimizer = make(None)
    model(torch.ones(1, 8) * rank).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))
    named = list(model.named_parameters())
    for names, word in (
        (model.parameters(), "pairs"),
        (named[1:], "lacks 1"),
        ([("same", p) for _, p in named], "unique"),
    ):
        with pytest.raises(ValueError, match=word):
            make(names)
    make(named + [("other", torch.nn.Parameter(torch.ones(1)))])


def test_before_init():
    """A script that forgets it must not train alone."""
    hvd.shutdown()
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
    with pytest.raises(ValueError, match=r"hvd.init\(\)"):
        hvd.DistributedOptimizer(optimizer)


def test_bad_options():
    model = make_model()
    for options in ({"backward_passes_per_step": 0}, {"gradient_predivide_factor": 2.0, "op": hvd.Sum}):
        with pytest.raises(ValueError):
            wrap(model, **options)


def test_hooks_of_later_versions(monkeypatch, rank, size):
    """PyTorch 2.1 has a hook for a gradient that is complete. Before, this one does the same for the test."""
    called = []

    def register(parameter, function):
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        called.append(node)
        return node.register_hook(lambda *_: function(parameter))

    if not hasattr(torch.nn.Parameter, "register_post_accumulate_grad_hook"):
        monkeypatch.setattr(torch.nn.Parameter, "register_post_accumulate_grad_hook", register, raising=False)
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer = wrap(model)
    assert len(called) in (0, len(list(model.parameters())))
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(model(inputs[rank::size]), labels[rank::size]).backward()
        assert size == 1 or len(optimizer._handles) == len(list(model.parameters()))
        optimizer.step()
    assert torch.allclose(weights(model), train_alone(size), atol=1e-6)


def test_a_large_gradient_does_not_wait_for_small_ones(size):
    if size < 2:
        pytest.skip("needs two ranks")
    model = torch.nn.Sequential(torch.nn.Linear(2, 600), torch.nn.Linear(600, 600))
    optimizer = wrap(model)
    between = model[0](torch.ones(1, 2))
    between.register_hook(lambda _: submitted.append(set(optimizer._handles)))
    submitted = []
    model[1](between).sum().backward()
    assert submitted == [set(model[1].parameters())]  # not those of the first layer, which come later
    optimizer.step()


def test_gradients_of_a_part_of_the_model(rank, size):
    """They wait for the step, and a second pass fails as it does for all of the model."""
    if size < 2:
        pytest.skip("needs two ranks")
    model = make_model()
    optimizer = wrap(model)
    model[0](torch.ones(1, 8)).sum().backward()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        model[0](torch.ones(1, 8)).sum().backward()
    with pytest.raises(AssertionError, match="zero_grad"):
        optimizer.zero_grad()
    optimizer.step()
    optimizer.zero_grad()
    model(torch.ones(1, 8) * rank).sum().backward()
    optimizer.step()
    assert torch.equal(hvd.broadcast(weights(model), 0), weights(model))


def test_a_parameter_that_becomes_another_tensor(rank, size):
    """In size, type, and place in memory: what is sent is what the gradient is now."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=1.0), [("grows", parameter)])
    for length, dtype in ((2, torch.float32), (5, torch.float32), (5, torch.float64), (3, torch.bfloat16)):
        parameter.grad = None
        parameter.data = torch.zeros(length, dtype=dtype)
        parameter.grad = torch.full((length,), float(rank), dtype=dtype)
        optimizer.step()
        assert parameter.tolist() == [(1 - size) / 2 if size > 1 else 0.0] * length
        parameter.grad = torch.ones(length * 2, dtype=dtype)[::2]  # not contiguous
        optimizer.step()
        assert parameter.tolist() == [(1 - size) / 2 - 1 if size > 1 else -1.0] * length


def test_backward_overlaps_with_communication(size):
    """The hooks have submitted all gradients when backward() returns."""
    if size < 2:
        pytest.skip("needs two ranks")
    model = make_model()
    optimizer = wrap(model)
    model(torch.ones(1, 8)).sum().backward()
    assert set(optimizer._handles) == set(model.parameters()) == optimizer._requires_update
    optimizer.synchronize()
    assert not optimizer._handles
