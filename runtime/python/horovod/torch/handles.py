# SPDX-License-Identifier: Apache-2.0
"""Operations in flight: a handle keeps the tensors alive until libhvd no longer uses their memory."""
import ctypes
import itertools
import threading

from horovod.common import library
from horovod.common.basics import basics
from horovod.common.library import hvd

SLICE_MS = 200  # between two waits Python runs the handlers of signals


class Operation:
    """One submission. `finish(result)` makes what synchronize() returns."""

    __slots__ = ("number", "keep", "finish", "wants_result")

    def __init__(self, number, keep, finish, wants_result):
        self.number, self.keep, self.finish, self.wants_result = number, keep, finish, wants_result


class Group:
    """Several submissions with one handle. synchronize() returns a tuple."""

    __slots__ = ("handles",)

    def __init__(self, handles):
        self.handles = handles


class Handles:
    """The operations of this process, by small numbers; and the names of unnamed ones."""

    def __init__(self):
        self._lock = threading.Lock()
        self._operations = {}
        self._reset()
        basics.on_end(self._reset)

    def _reset(self):
        """After a shutdown all ranks count from 1 again, so that old and new ranks agree on names."""
        with self._lock:
            self._operations.clear()
            self._handles = itertools.count(1)
            self._unnamed = {}

    def name(self, name, number):
        """The name on the wire, which messages show. Each process set counts its unnamed operations."""
        if name is not None:
            return str(name)
        with self._lock:
            counter = self._unnamed.setdefault(number, itertools.count(1))
            return f"unnamed operation {next(counter)}"

    def submit(self, function, arguments, keep, finish, wants_result=False):
        """Calls a function of libhvd with the arguments and a place for its handle."""
        number = ctypes.c_int64()
        status = function(*arguments, ctypes.byref(number))
        if status < 0:
            raise self._failure(status)
        return self._add(Operation(number.value, keep, finish, wants_result))

    def _failure(self, status):
        """If the others have shut down because of tensors that differ, this rank has not heard it yet when it submits
        the next one."""
        error = library.failure(status)
        if status not in (library.ERR_SHUT_DOWN, library.ERR_PEER_LOST):
            return error
        with self._lock:
            pending = [operation.number for operation in self._operations.values() if isinstance(operation, Operation)]
        if any(hvd.hvd_poll(number) == library.ERR_MISMATCH for number in pending):
            return library.failure(library.ERR_MISMATCH)  # with the text of the last call
        return error

    def group(self, handles):
        return self._add(Group(handles))

    def _add(self, operation):
        with self._lock:
            handle = next(self._handles)
            self._operations[handle] = operation
        return handle

    def poll(self, handle):
        operation = self._operations.get(handle)
        if operation is None:
            raise ValueError(f"{handle!r} is not the handle of an operation that is in flight")
        if isinstance(operation, Group):
            return all(self.poll(one) for one in operation.handles)
        return hvd.hvd_poll(operation.number) != library.IN_PROGRESS

    def synchronize(self, handle):
        with self._lock:
            operation = self._operations.pop(handle, None)
        if operation is None:
            return None
        if isinstance(operation, Group):
            return self._synchronize_all(operation.handles)
        result = library.Result() if operation.wants_result else None
        try:
            status, text = self._wait(operation.number, result)
        except BaseException:  # an interrupt: libhvd still uses the memory
            with self._lock:
                self._operations[handle] = operation
            raise
        if status < 0:
            raise library.failure(status, text)
        return operation.finish(result)

    def _synchronize_all(self, handles):
        """Waits for all, and then raises the first error."""
        outputs, error = [], None
        for handle in handles:
            try:
                outputs.append(self.synchronize(handle))
            except (ValueError, RuntimeError) as raised:
                error = error or raised
        if error is not None:
            raise error
        return tuple(outputs)

    @staticmethod
    def _wait(number, result):
        """(status, text of an error). HVD_ERR_TIMEOUT of a handle that is still known is the end of a
        slice, otherwise the error of an operation that has stalled."""
        place = None if result is None else ctypes.byref(result)
        while True:
            status = hvd.hvd_wait(number, SLICE_MS, place)
            text = hvd.hvd_error_text() if status < 0 else None
            if status != library.ERR_TIMEOUT or hvd.hvd_poll(number) == library.ERR_UNKNOWN_HANDLE:
                return status, text


handles = Handles()
