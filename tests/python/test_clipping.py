# SPDX-License-Identifier: Apache-2.0
"""Gradients that a script changes between synchronize() and step(): clipping and mixed precision, as in Horovod's
documentation."""
import contextlib
import warnings

import horovod.torch as hvd
import pytest
import torch
from torch.nn.functional import cross_entropy
from training import STEPS, make_data, make_model, train_alone, weights, wrap


def test_clipping_and_skip_synchronize(rank, size):
    model, (inputs, labels) = make_model(), make_data(size)
    alone = make_model()
    alone_optimizer = torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    optimizer = wrap(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(STEPS):
            optimizer.zero_grad()
            cross_entropy(model(inputs[rank::size]), labels[rank::size]).backward()
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
            alone_optimizer.zero_grad()
            cross_entropy(alone(inputs), labels).backward()
            torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
            alone_optimizer.step()
    assert torch.allclose(weights(model), weights(alone), atol=1e-6)


def test_a_step_after_synchronize_warns():
    model = make_model()
    optimizer = wrap(model)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match=r"optimizer.step\(\) called without optimizer.skip_synchronize\(\)") as found:
        optimizer.step()
    assert len(found) == 1


def test_skip_synchronize_ends_with_an_exception():
    model = make_model()
    optimizer = wrap(model)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.synchronize()
    with pytest.raises(KeyError):
        with optimizer.skip_synchronize():
            raise KeyError
    with pytest.warns(UserWarning, match="skip_synchronize"):
        optimizer.step()


def test_skip_synchronize_around_a_whole_training(rank, size):
    """As Lightning does."""
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer = wrap(model)
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("error")
        stack.enter_context(optimizer.skip_synchronize())
        for _ in range(STEPS):
            optimizer.zero_grad()
            cross_entropy(model(inputs[rank::size]), labels[rank::size]).backward()
            optimizer.synchronize()
            optimizer.step()
    assert torch.allclose(weights(model), train_alone(size), atol=1e-6)


def test_amp_pattern(rank, size):
    """As with GradScaler on a CPU: the gradients are unscaled between synchronize() and step()."""
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer = wrap(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (cross_entropy(model(inputs[rank::size]), labels[rank::size]) * 1024).backward()
        optimizer.synchronize()
        for p in model.parameters():
            p.grad.div_(1024)
        with optimizer.skip_synchronize():
            optimizer.step()
    assert torch.allclose(weights(model), train_alone(size), atol=1e-6)


def test_a_grad_scaler(rank, size):
    """On a CPU, torch's own scales by 1."""
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer, scaler = wrap(model), torch.cuda.amp.GradScaler(enabled=False)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(cross_entropy(model(inputs[rank::size]), labels[rank::size])).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
    assert torch.allclose(weights(model), train_alone(size), atol=1e-6)


def test_an_overflow_of_one_rank_is_seen_by_all(rank, size):
    """So all ranks skip the step, and go on."""
    model = make_model()
    optimizer = wrap(model)
    before = weights(model)
    for step in range(2):
        optimizer.zero_grad()
        scale = float("inf") if rank == size - 1 and step == 0 else 1.0
        (model(torch.ones(1, 8)).sum() * scale).backward()
        optimizer.synchronize()
        assert all(p.grad.isfinite().all() for p in model.parameters()) == (step == 1)
        if step == 1:
            with optimizer.skip_synchronize():
                optimizer.step()
    assert not torch.equal(weights(model), before)


@pytest.mark.parametrize("options", [{}, {"compression": hvd.Compression.fp16}, {"groups": 1}], ids=str)
def test_the_gradient_stays_the_same_tensor(options, size):
    """A script may keep a reference, or views of one flat buffer."""
    model = torch.nn.Linear(4, 1)
    flat = torch.zeros(5)
    model.weight.grad, model.bias.grad = flat[:4].view(1, 4), flat[4:]
    optimizer = wrap(model, **options)
    model(torch.full((1, 4), float(hvd.rank()))).sum().backward()
    optimizer.synchronize()
    mean = (size - 1) / 2
    assert flat.tolist() == [mean] * 4 + [1.0]
    with optimizer.skip_synchronize():
        optimizer.step()


def test_a_sparse_gradient_stays_the_same_tensor(rank, size):
    model = torch.nn.EmbeddingBag(4, 2, sparse=True, mode="sum")
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    model(torch.tensor([[rank]])).sum().backward()
    gradient = model.weight.grad
    optimizer.synchronize()
    assert model.weight.grad is gradient
    assert gradient.to_dense()[:size].allclose(torch.full((size, 2), 1 / size))
