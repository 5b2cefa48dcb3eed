# SPDX-License-Identifier: Apache-2.0
"""Start, end and places of this process in the job."""
import atexit
import contextlib
import ctypes
import os

from horovod.common import library
from horovod.common.library import hvd


_PLACES = "rank size local_rank local_size cross_rank cross_size is_homogeneous".split()


class HorovodBasics:
    """The functions that all frameworks have. Each framework module re-exports the methods."""

    Average, Sum, Adasum, Min, Max, Product = range(6)

    def __init__(self):
        self.MPI_LIB_CTYPES = hvd
        self._on_end = []  # called after each shutdown
        self._is_new = False  # libhvd has just connected to new ranks
        self._known = {}  # what a forked child cannot ask libhvd: the workers of a data loader look at ranks
        atexit.register(self.shutdown)

    # start and end

    def init(self, comm=None, process_sets=None):
        """Connects to the other ranks. `process_sets`: a list of ProcessSet, or "dynamic"."""
        from horovod.common import process_sets as sets

        self._check_comm(comm)
        if isinstance(process_sets, str):
            if process_sets.lower() != "dynamic":
                raise ValueError(f"process_sets is {process_sets!r}; use a list of ProcessSet, or 'dynamic'")
            os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
            process_sets = None
        was_up = self.is_initialized()
        status = hvd.hvd_init(None)
        if status < 0:
            raise ValueError(f"Horovod initialization failed: {library.failure(status)}")
        self.remember()
        sets.begin(process_sets or [], may_exist=was_up)

    def _check_comm(self, comm):
        """All ranks of the job in their order: None, a list of them, or a communicator such as mpi4py's COMM_WORLD."""
        rank, size = (int(os.environ.get(f"HOROVOD_{name}", default)) for name, default in (("RANK", 0), ("SIZE", 1)))
        if comm is None or (isinstance(comm, (list, tuple)) and (not comm or sorted(comm) == list(range(size)))):
            return
        if hasattr(comm, "Get_size") and (comm.Get_rank(), comm.Get_size()) == (rank, size):
            return
        raise NotImplementedError(
            "hvd.init() cannot take a part of the ranks; use hvd.init(process_sets=[...]) instead of comm"
        )

    def shutdown(self):
        """Ends the library. Operations that are pending, here and on other ranks, fail."""
        if library.is_foreign() or self._is_new:
            return
        hvd.hvd_shutdown()
        self.forget()

    @contextlib.contextmanager
    def new_ranks(self):
        """In this context a program may shut down and initialize. libhvd has done both, and the new ranks would not
        come to a second init()."""
        self._is_new = True
        try:
            yield
        finally:
            self._is_new = False

    def remember(self):
        """libhvd is initialized, and this process has a place in the job."""
        library.own()
        self._known = {f"hvd_{name}": getattr(hvd, f"hvd_{name}")() for name in _PLACES}

    def forget(self):
        """Nothing of before the shutdown is valid."""
        self._known = {}
        for function in self._on_end:
            function()

    def on_end(self, function):
        self._on_end.append(function)

    def is_initialized(self):
        return hvd.hvd_is_initialized() or (library.is_foreign() and bool(self._known))

    # places

    def _place(self, function):
        value = function()
        if value < 0 and library.is_foreign():
            value = self._known.get(function.__name__, value)
        if value < 0:
            raise ValueError(str(library.failure(library.ERR_NOT_INITIALIZED)))
        return value

    def rank(self):
        return self._place(hvd.hvd_rank)

    def size(self):
        return self._place(hvd.hvd_size)

    def local_rank(self):
        return self._place(hvd.hvd_local_rank)

    def local_size(self):
        return self._place(hvd.hvd_local_size)

    def cross_rank(self):
        return self._place(hvd.hvd_cross_rank)

    def cross_size(self):
        return self._place(hvd.hvd_cross_size)

    def is_homogeneous(self):
        """Whether all hosts have the same number of ranks."""
        self.size()
        return self._known["hvd_is_homogeneous"]

    # what there is

    def _uses(self, engine):
        return hvd.hvd_engine() == engine

    def mpi_enabled(self):
        return self._uses(b"mpi")

    def gloo_enabled(self):
        return self._uses(b"gloo")

    def mpi_threads_supported(self):
        """libhvd always asks MPI for threads."""
        self.size()
        if not self.mpi_enabled():
            raise ValueError("Horovod does not use MPI in this job; use hvdrun --controller mpi")
        return True

    def mpi_built(self):
        return hvd.hvd_engine_built(b"mpi")

    def gloo_built(self):
        return hvd.hvd_engine_built(b"gloo")

    def nccl_built(self):
        """The version of NCCL that libhvd finds, as a number such as 22809; 0: none that it can use."""
        return hvd.hvd_nccl_version()

    def cuda_built(self):
        return hvd.hvd_engine_built(b"nccl")

    def ddl_built(self):
        return False

    def ccl_built(self):
        return False

    def rocm_built(self):
        return False

    # timeline

    def start_timeline(self, file_path, mark_cycles=False):
        self.size()
        status = hvd.hvd_timeline_start(os.fsencode(file_path), mark_cycles)
        if status < 0:
            raise ValueError(str(library.failure(status)))

    def stop_timeline(self):
        self.size()
        library.check(hvd.hvd_timeline_stop())

    # process sets

    def _add_process_set(self, ranks, may_exist=False):
        """The number of the set. ValueError: it exists."""
        number = ctypes.c_int32()
        status = hvd.hvd_add_process_set((ctypes.c_int32 * len(ranks))(*ranks), len(ranks), ctypes.byref(number))
        if status == library.ERR_SET_EXISTS and may_exist:
            return number.value
        library.check(status)
        return number.value

    def _remove_process_set(self, number):
        library.check(hvd.hvd_remove_process_set(number))

    def _numbers(self, function, *arguments):
        room = 64
        while True:
            numbers = (ctypes.c_int32 * room)()
            count = library.check(function(*arguments, numbers, room))
            if count <= room:
                return list(numbers[:count])
            room = count

    def _process_set_ranks(self, number):
        return self._numbers(hvd.hvd_process_set_ranks, number)

    def _get_process_set_ids_and_ranks(self):
        """{number: global ranks, ascending} of all sets."""
        return {number: self._process_set_ranks(number) for number in self._numbers(hvd.hvd_process_set_ids)}


basics = HorovodBasics()
