# SPDX-License-Identifier: Apache-2.0
"""The parts of elastic training that need no change of hosts."""
import random

import horovod.torch as hvd
import pytest
import torch
from horovod.common.elastic import HostUpdateResult, notification_manager, run_fn
from horovod.common.exceptions import HostsUpdatedInterrupt
from horovod.common.library import hvd as libhvd
from horovod.torch.elastic.state import StateHandler, get_handler_registry, set_handler_registry


def make_state(**values):
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return hvd.elastic.TorchState(model=model, optimizer=optimizer, **values)


def test_save_restore_and_sync(rank, size):
    state = make_state(batch=rank, epoch=rank)
    weight = state.model.weight.detach().clone()
    state.batch = 7
    state.model.weight.data.fill_(3)
    state.restore()
    assert state.batch == rank and torch.equal(state.model.weight.data, weight)
    state.batch = 8
    state.commit()
    state.batch = 9
    state.restore()
    assert state.batch == 8
    state.sync()
    assert state.epoch == 0
    assert torch.equal(hvd.broadcast(state.model.weight.data, 0), state.model.weight.data)


def test_a_new_model_is_handled():
    state = make_state()
    state.model = torch.nn.Linear(2, 1)
    state.model.weight.data.fill_(5)
    state.restore()
    assert state.model.weight.data.sum() != 10
    assert [handler.__name__ for _, handler in get_handler_registry()] == [
        "ModelStateHandler",
        "OptimizerStateHandler",
        "LRSchedulerStateHandler",
        "SamplerStateHandler",
    ]


def test_a_handler_of_the_user(rank):
    class Counter:
        value = 0

    class CounterHandler(StateHandler):
        def __init__(self, counter):
            super().__init__(counter)
            self.saved = counter.value

        def save(self):
            self.saved = self.value.value

        def restore(self):
            self.value.value = self.saved

        def sync(self):
            self.value.value = hvd.broadcast_object(self.value.value)

    before = get_handler_registry()
    set_handler_registry([(Counter, CounterHandler), *before])
    try:
        counter = Counter()
        state = hvd.elastic.TorchState(counter=counter)
        counter.value = rank + 5
        state.sync()
        assert state.counter is counter and counter.value == 5
        state.restore()
        assert counter.value == 0
    finally:
        set_handler_registry(before)


def test_a_scheduler_stays_that_of_the_optimizer(rank):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, scheduler=scheduler)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for _ in range(rank + 1):
        scheduler.step()
    state.sync()
    assert state.scheduler is scheduler and scheduler.optimizer is optimizer
    assert (scheduler.last_epoch, optimizer.param_groups[0]["lr"]) == (1, 0.5)
    state.commit()
    scheduler.step()
    state.restore()
    assert (scheduler.last_epoch, optimizer.param_groups[0]["lr"]) == (1, 0.5)


def test_run_returns_and_passes_arguments(rank):
    state = make_state(batch=0)
    called = []

    @hvd.elastic.run
    def train(state, a, b=0):
        called.append((a, b))
        state.commit()
        return a + b

    assert train(state, 1, b=2) == 3 and called == [(1, 2)]
    assert train.__name__ == "train"


def test_exceptions_of_the_program_come_through(size):
    @hvd.elastic.run
    def train(state):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        train(make_state())

    @hvd.elastic.run
    def interrupted(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(make_state())
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_without_an_elastic_launcher_a_failure_ends_the_run():
    state = make_state(batch=1)

    @hvd.elastic.run
    def train(state):
        state.batch = 2
        raise hvd.HorovodInternalError("lost")

    with pytest.raises(hvd.HorovodInternalError, match="lost"):
        train(state)
    assert state.batch == 1


@pytest.mark.parametrize("error", [HostsUpdatedInterrupt(), hvd.HorovodInternalError("lost")])
def test_a_reset_of_the_program(error, size):
    """It connects to the ranks again, also without an elastic launcher."""
    state, told = make_state(batch=1), []
    state.register_reset_callbacks([lambda: told.append("callback")])

    def train(state, word):
        told.append((word, state.batch))
        if len(told) == 1:
            state.batch = 2
            raise error
        return hvd.allreduce(torch.ones(1), op=hvd.Sum).item()

    def reset():
        told.append("reset")
        hvd.shutdown()
        assert not hvd.is_initialized()
        hvd.init()

    assert run_fn(train, reset)(state, "train") == size
    assert told == [("train", 1), "reset", "callback", ("train", 1)]


def test_a_reset_that_fails():
    def train(state):
        raise HostsUpdatedInterrupt()

    def reset():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_fn(train, reset)(make_state())


def interrupted(function):
    """Whether it raised an interrupt, and what that says about skip_sync."""
    try:
        function()
    except HostsUpdatedInterrupt as interrupt:
        return True, interrupt.skip_sync
    return False, None


def test_messages_about_hosts(rank, size):
    """Those of rank 0 count, and each time only once."""
    state = make_state(batch=0)
    assert interrupted(state.check_host_updates) == (False, None)

    def hear(*messages):
        for timestamp, update in messages:
            state.on_hosts_updated(timestamp, update)
        assert state._host_messages.empty() == (not messages)

    hear(*[(5, HostUpdateResult.removed)] if rank == 0 else [])
    state.batch = 1
    assert interrupted(state.commit) == (True, True)
    state.batch = 2
    state.restore()
    assert state.batch == 1 and state._last_updated_timestamp == 5
    hear((5, HostUpdateResult.added))  # not newer
    assert interrupted(state.check_host_updates) == (False, None)
    hear((6, HostUpdateResult.removed), (7, HostUpdateResult.added))
    assert interrupted(state.check_host_updates) == (True, False)
    hear(*[(9, HostUpdateResult.added)] if rank > 0 else [])
    assert interrupted(state.check_host_updates) == (False, None)
    hear((11, HostUpdateResult.added))
    state.on_reset()
    assert state._host_messages.empty() and interrupted(state.check_host_updates) == (False, None)


def test_a_state_with_a_broadcast_of_its_own(rank):
    sent = []

    def echo(value):
        sent.append(value)
        return value

    state = hvd.elastic.State(bcast_object=echo, get_rank=lambda: rank)
    state.on_hosts_updated(1, HostUpdateResult.mixed)
    assert interrupted(state.check_host_updates) == (True, False) and len(sent) == 1


def test_listeners_hear_of_hosts(monkeypatch):
    """libhvd is asked when somebody looks. Its news are newer than all before, whatever the clock says."""
    heard = []

    class Listener:
        def on_hosts_updated(self, timestamp, update):
            heard.append(update)

    state, other = make_state(batch=0), Listener()
    state._last_updated_timestamp = future = 1 << 40
    for one in (state, other):
        notification_manager.register_listener(one)
    monkeypatch.setattr(libhvd, "hvd_hosts_changed", lambda _: True)
    assert not state._host_messages.empty() and heard == [HostUpdateResult.mixed]
    monkeypatch.undo()
    notification_manager.remove_listener(other)
    assert interrupted(state.check_host_updates) == (True, False) and state._last_updated_timestamp > future
    notification_manager.handle_hosts_updated(future + 99, HostUpdateResult.removed)
    notification_manager.remove_listener(state)
    assert interrupted(state.check_host_updates) == (True, True) and len(heard) == 1


def test_object_state(rank):
    state = hvd.elastic.ObjectState(a=rank, b=[rank])
    state.a = 5
    state.sync()
    assert (state.a, state.b) == (0, [0])
    calls = []
    state.register_reset_callbacks([lambda: calls.append(1)])
    state.on_reset()
    assert calls == [1]


@pytest.mark.parametrize("shuffle", [False, True])
def test_sampler(shuffle, rank, size):
    data = list(range(4 * size + 1))
    sampler = hvd.elastic.ElasticSampler(data, shuffle=shuffle, seed=3)
    order = list(data)
    if shuffle:
        random.Random(3).shuffle(order)
    assert len(sampler) == (5 if size > 1 else 5)
    padded = order + order[: len(sampler) * size - len(order)]
    assert list(sampler) == padded[rank::size]
    sampler.record_batch(0, 2)
    state = hvd.elastic.TorchState(sampler=sampler)
    state.reset()
    assert sampler.processed_num == 2 * size and sampler.remaining_indices == order[2 * size :]
    assert sampler.state_dict() == {"epoch": 0, "processed_num": 2 * size}
    sampler.set_epoch(1)
    assert len(sampler.remaining_indices) == len(data)
    state.restore()
    assert sampler.epoch == 0 and sampler.processed_num == 2 * size


def test_a_sampler_of_fewer_samples_than_ranks(rank, size):
    assert list(hvd.elastic.ElasticSampler([0], shuffle=False)) == [0]
    assert list(hvd.elastic.ElasticSampler([], shuffle=False)) == []
