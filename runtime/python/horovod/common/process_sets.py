# SPDX-License-Identifier: Apache-2.0
"""Process sets: ranks that have collective operations of their own."""
import weakref

from horovod.common.basics import basics as _basics


class ProcessSet:
    """A set of global ranks. It can be used after hvd.init(process_sets=[...]) or add_process_set()."""

    process_set_id = None  # None: it is not registered
    mpi_comm = None

    def __init__(self, ranks_or_comm):
        if hasattr(ranks_or_comm, "Get_rank"):
            raise NotImplementedError("a ProcessSet cannot be made of an MPI communicator; give the list of ranks")
        ranks = list(ranks_or_comm)
        if not all(isinstance(rank, int) for rank in ranks):
            raise ValueError(f"ProcessSet: {ranks!r} is not a list of ranks")
        self.ranks = sorted(ranks)

    def _register(self, number):
        self.process_set_id = number
        self.ranks = _basics._process_set_ranks(number)
        _registered.add(self)

    def _invalidate(self):
        self.process_set_id = None

    def size(self):
        """The number of members; None if the set is not registered."""
        if self.process_set_id is None:
            return None
        _basics.size()  # ValueError: it must be initialized, also for the global set
        return len(self.ranks)

    def rank(self):
        """This process's number in the set; None if the set is not registered."""
        if self.process_set_id is None:
            return None
        if not self.included():
            raise ValueError(f"rank {_basics.rank()} is not a member of {self}")
        return self.ranks.index(_basics.rank())

    def included(self):
        """Whether this process is a member."""
        return _basics.rank() in self.ranks

    def __str__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"


_registered = weakref.WeakSet()  # without the global one, whose number never changes
global_process_set = ProcessSet([])
global_process_set.process_set_id = 0


def begin(sets, may_exist):
    """After each start of the library. All ranks pass the same sets."""
    global_process_set.ranks = _basics._process_set_ranks(0)
    for process_set in sets:
        process_set._register(_basics._add_process_set(process_set.ranks, may_exist))


def end():
    """The library was shut down: the numbers are void."""
    for process_set in list(_registered):
        process_set._invalidate()
    _registered.clear()
    global_process_set.ranks = []


_basics.on_end(end)


def number_of(process_set):
    """The number under which libhvd knows the set."""
    number = process_set.process_set_id
    if number is None:
        raise ValueError(f"{process_set} is not registered; use hvd.add_process_set() or hvd.init(process_sets=...)")
    return number


def add_process_set(process_set):
    """Registers a ProcessSet or a list of ranks. All ranks of the job must call it."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    process_set._register(_basics._add_process_set(process_set.ranks))
    return process_set


def remove_process_set(process_set):
    """All ranks of the job must call it. False: the set is not registered, or is the global one."""
    number = process_set.process_set_id
    if not number:
        return False
    process_set._invalidate()
    _registered.discard(process_set)
    try:
        _basics._remove_process_set(number)
    except ValueError:
        return False
    return True


def is_process_set_included(process_set):
    return process_set.included()


def get_process_set_ids_and_ranks():
    """{number: global ranks} of all sets."""
    return _basics._get_process_set_ids_and_ranks()
