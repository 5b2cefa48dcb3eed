# SPDX-License-Identifier: Apache-2.0
"""What a program can get wrong: an exception with one line, and the library stays usable."""
import itertools
import json
import os
import pickle
import signal
import tempfile
import threading
import time

import horovod.torch as hvd
import pytest
import torch
from horovod.common import exceptions, util
from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.runner.util.threads import in_thread


def raised(function, *arguments, **options):
    """The text of the exception, which has one line."""
    with pytest.raises((hvd.HorovodInternalError, ValueError, NotImplementedError)) as found:
        function(*arguments, **options)
    text = str(found.value)
    assert text and "\n" not in text
    return found.type, text


@pytest.fixture(autouse=True)
def usable(job):
    yield
    if hvd.is_initialized():
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, name="still usable").item() == hvd.size()


def test_mismatches_are_named_on_every_rank(rank, size):
    if size < 2:
        pytest.skip("needs two ranks")
    other = rank == size - 1
    kind, text = raised(hvd.allreduce, torch.ones(2, 4 if other else 3), name="shapes")
    assert kind is hvd.HorovodInternalError
    assert all(word in text for word in ("shapes", "[2, 3]", "[2, 4]")), text
    _, text = raised(hvd.allreduce, torch.ones(2, dtype=torch.float64 if other else torch.float32), name="types")
    assert all(word in text for word in ("types", "float32", "float64")), text
    _, text = raised(hvd.allreduce, torch.ones(2), name="ops", op=hvd.Max if other else hvd.Min)
    assert "ops" in text
    _, text = raised(hvd.allgather, torch.ones(2, 4 if other else 3), name="rows")
    assert "rows" in text
    _, text = raised(hvd.broadcast, torch.ones(2), 0 if other else 1, name="roots")
    assert "roots" in text


def test_a_mismatch_is_named_also_after_the_end_of_the_others(rank, size):
    """Rank 0 has seen it and has shut down when the others submit the next tensor."""
    if size < 2:
        pytest.skip("needs two ranks")
    handle = hvd.allreduce_async(torch.ones(2 if rank == 0 else 3), name="first")
    if rank == 0:
        with pytest.raises(hvd.HorovodInternalError, match="first"):
            hvd.synchronize(handle)
        hvd.shutdown()
        return

    def submit_until_it_fails():
        for number in itertools.count():
            hvd.allreduce_async(torch.ones(1), name=f"next {number}")
            time.sleep(0.01)

    wanted = raised(submit_until_it_fails)
    assert wanted[0] is hvd.HorovodInternalError and all(word in wanted[1] for word in ("first", "[2]", "[3]"))
    assert raised(hvd.synchronize, handle) == wanted
    assert "shut" in raised(submit_until_it_fails)[1]  # the mismatch is known now
    hvd.shutdown()


def test_a_name_in_flight(rank, size):
    if size < 2:
        pytest.skip("needs two ranks")
    tensor = torch.ones(8)
    if rank > 0:
        hvd.barrier()  # until rank 0 has tried it: the first one cannot complete before
    handle = hvd.allreduce_async(tensor, name="twice")
    if rank == 0:
        kind, text = raised(hvd.allreduce_async, tensor, name="twice")
        assert kind is ValueError and "twice" in text
        hvd.barrier()
    hvd.synchronize(handle)


def test_what_is_not_a_tensor():
    for function in (hvd.allreduce, hvd.allreduce_, hvd.allgather, hvd.alltoall, hvd.reducescatter):
        kind, text = raised(function, [1.0])
        assert kind is ValueError and "not a tensor" in text
    assert "not a tensor" in raised(hvd.broadcast, 1.0, 0)[1]
    assert "complex" in raised(hvd.allreduce, torch.ones(1, dtype=torch.complex64))[1]
    for function in (hvd.allreduce, hvd.allreduce_, hvd.allgather, hvd.alltoall, hvd.reducescatter):
        assert "tensors on meta" in raised(function, torch.ones(1, device="meta"))[1]
    raised(hvd.allreduce, torch.ones(1), op=77)
    assert raised(hvd.allreduce, torch.ones(1, dtype=torch.int32), op=hvd.Adasum)[0] in (
        ValueError,
        NotImplementedError,
    )
    raised(hvd.allreduce, torch.ones(1), name="x" * 2000)


def test_names_with_unusual_characters(size):
    for name in ("ä", "a b/c", "%s%n", "x" * 1000):
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum, name=name).item() == size


def test_different_operations_may_have_one_name(rank, size):
    """All of them are in flight when rank 0 begins."""
    if size > 1 and rank == 0:
        hvd.barrier()
    tensor = torch.ones(size)
    handles = [
        hvd.allreduce_async(tensor, op=hvd.Sum, name="one"),
        hvd.allgather_async(tensor, name="one"),
        hvd.broadcast_async(tensor, 0, name="one"),
        hvd.alltoall_async(tensor, name="one"),
        hvd.reducescatter_async(tensor, op=hvd.Sum, name="one"),
    ]
    if size > 1 and rank > 0:
        hvd.barrier()
    assert [len(hvd.synchronize(handle)) for handle in handles] == [size, size * size, size, 2, 1]


def test_a_second_init(rank, size):
    handle = hvd.allreduce_async(torch.ones(3), op=hvd.Sum, name="before")
    hvd.init()
    assert hvd.rank() == rank and hvd.synchronize(handle).tolist() == [size] * 3


def test_after_shutdown(rank):
    tensor = torch.ones(2)
    hvd.shutdown()
    hvd.shutdown()
    assert not hvd.is_initialized()
    for function in (hvd.allreduce, hvd.allgather, hvd.reducescatter):
        assert "hvd.init()" in raised(function, tensor)[1]
    for function in (hvd.rank, hvd.size, hvd.local_rank, hvd.cross_size, hvd.is_homogeneous, hvd.mpi_threads_supported):
        kind, text = raised(function)
        assert kind is ValueError and "hvd.init()" in text
    assert hvd.synchronize(1) is None
    hvd.init()


def test_a_peer_has_shut_down(rank, size):
    if size < 2:
        pytest.skip("needs two ranks")
    if rank == 0:
        hvd.shutdown()
        return
    kind, text = raised(hvd.allreduce, torch.ones(2))
    assert kind is hvd.HorovodInternalError
    assert hvd.is_initialized() and hvd.rank() == rank and hvd.size() == size
    hvd.shutdown()


def test_names_restart_after_a_new_init(rank, size):
    """Ranks that have issued other numbers of unnamed operations agree again."""
    if rank == 0:
        raised(hvd.allreduce, "x")
        hvd.poll(hvd.alltoall_async(torch.ones(size), name="a"))
    else:
        hvd.poll(hvd.alltoall_async(torch.ones(size), name="a"))
    hvd.barrier()
    hvd.shutdown()
    hvd.init()
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_an_interrupt_reaches_a_program_that_waits(rank, size):
    """And the operation stays what it was."""
    if size < 2:
        pytest.skip("needs two ranks")
    if rank == 0:
        handle = hvd.allreduce_async(torch.ones(2), op=hvd.Sum, name="later")
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            hvd.synchronize(handle)
    hvd.barrier()
    if rank > 0:
        handle = hvd.allreduce_async(torch.ones(2), op=hvd.Sum, name="later")
    assert hvd.synchronize(handle).tolist() == [size, size]


def places():
    functions = (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size)
    own = hvd.global_process_set
    return [function() for function in functions] + [
        hvd.is_initialized(),
        hvd.is_homogeneous(),
        own.rank(),
        own.size(),
    ]


def in_a_child(function):
    """What the function returns in a forked process, such as a data loader has."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, pickle.dumps(function()))
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        content = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return pickle.loads(content)


def test_a_forked_child():
    """It knows its place, but cannot use the library, and its end does not disturb the parent."""
    found = in_a_child(lambda: (places(), raised(hvd.allreduce, torch.ones(1))[1], hvd.shutdown()))
    assert found[0] == places() and "forked" in found[1]
    hvd.shutdown()
    assert "hvd.init()" in in_a_child(lambda: raised(hvd.rank)[1]) and not in_a_child(hvd.is_initialized)


def test_the_end_while_a_forked_child_lives(size):
    """As with persistent workers of a data loader: they have copies of all connections."""
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        hvd.shutdown()
        hvd.init()
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_data_loader_whose_workers_ask_for_the_rank(rank):
    class Ranks(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return hvd.rank()

    for batch in torch.utils.data.DataLoader(Ranks(), batch_size=2, num_workers=1):
        assert batch.tolist() == [rank, rank]


def test_a_data_loader_with_workers(size):
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=4, num_workers=2)
    for batch in loader:
        assert torch.equal(hvd.allreduce(batch, op=hvd.Average), batch)


def test_what_there_is(rank, size):
    assert hvd.gloo_built() in (True, False) and isinstance(hvd.nccl_built(), int)
    assert not hvd.ddl_built() and not hvd.ccl_built() and not hvd.rocm_built()
    assert hvd.gloo_enabled() != hvd.mpi_enabled() or size == 1
    assert 0 <= hvd.local_rank() < hvd.local_size() <= size and hvd.cross_rank() < hvd.cross_size()
    assert hvd.is_homogeneous()
    assert util.gloo_built() == hvd.gloo_built() and util.extension_available("torch")
    assert not util.extension_available("tensorflow") and util.gpu_available("torch") == hvd._check_has_gpu()
    with util.env(HVD_TEST="1"):
        assert os.environ["HVD_TEST"] == "1"
    assert "HVD_TEST" not in os.environ
    assert util.split_list(list(range(5)), 2) == [[0, 1, 2], [3, 4]]
    assert exceptions.HostsUpdatedInterrupt(True).skip_sync
    with pytest.raises(AttributeError, match="docs/horovod.md"):
        hvd.not_there
    with pytest.raises(NotImplementedError):
        hvd.init(comm=[0, size])


class Communicator:
    """What mpi4py's communicators say of themselves."""

    def __init__(self, rank, size):
        self.Get_rank, self.Get_size = lambda: rank, lambda: size


def test_communicators(rank, size):
    hvd.init(comm=Communicator(rank, size))  # initialized before, so this only checks
    assert hvd.size() == size
    for other in (Communicator(rank, size + 1), Communicator(rank + 1, size), object()):
        with pytest.raises(NotImplementedError, match="process_sets"):
            hvd.init(comm=other)


def test_an_unnamed_operation_is_called_so():
    with pytest.raises(ValueError, match=r"'unnamed operation \d+' is a scalar"):
        hvd.allgather(torch.tensor(1))


def test_helpers_of_the_runner(rank, size, monkeypatch):
    assert get_env_rank_and_size() == (rank, size)
    for name in ("HOROVOD", "OMPI_COMM_WORLD", "PMI"):
        monkeypatch.delenv(f"{name}_RANK", raising=False)
        monkeypatch.delenv(f"{name}_SIZE", raising=False)
    assert get_env_rank_and_size() == (0, 1)
    monkeypatch.setenv("PMI_RANK", "3")
    with pytest.raises(RuntimeError, match="PMI_SIZE"):
        get_env_rank_and_size()
    monkeypatch.setenv("PMI_SIZE", "4")
    assert get_env_rank_and_size() == (3, 4)
    seen = []
    in_thread(seen.append, (7,)).join()
    in_thread(seen.index, (8,), silent=True).join()
    assert seen == [7]
    with pytest.raises(ValueError, match="tuple"):
        in_thread(seen.append, args=[7])


def test_timeline(rank):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "timeline.json")
        hvd.start_timeline(path, mark_cycles=True)
        hvd.barrier()
        hvd.allreduce(torch.ones(3), name="seen")
        hvd.stop_timeline()
        assert os.path.exists(path) == (rank == 0)
        if rank == 0:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            words = [
                "allreduce.seen",
                "NEGOTIATE_ALLREDUCE",
                "ALLREDUCE",
                "CYCLE_START",
                "start_time_since_epoch_in_micros",
            ]
            assert [word for word in words if word not in text] == []
            assert len(json.loads(text)) > 0
        hvd.shutdown()
        with pytest.raises(ValueError):
            hvd.start_timeline(path)
