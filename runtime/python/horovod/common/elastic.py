# SPDX-License-Identifier: Apache-2.0
"""Elastic training: the state that outlives ranks, and the run through many sets of ranks."""
import ctypes
import enum
import functools
import os
import queue
import sys
import threading
import time

from horovod.common import library, process_sets
from horovod.common.basics import basics
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.common.library import hvd

_STOP = 2  # what the function returns to libhvd after an exception of the program
_AGAIN = (HorovodInternalError, HostsUpdatedInterrupt)
_LOST = (library.ERR_PEER_LOST, library.ERR_SHUT_DOWN, library.ERR_TIMEOUT, library.ERR_ENGINE)


@functools.lru_cache(maxsize=None)
def _place():
    """libhvd's own state. It has no memory of the program, only what the launcher says about hosts."""
    state = ctypes.c_void_p()
    library.check(hvd.hvd_state_create(ctypes.byref(state)))
    return state


class HostUpdateResult(enum.IntFlag):
    """What has happened to hosts."""

    no_update, removed, added = 0, 1, 2
    mixed = 3


class _NotificationManager:
    """Says to its listeners, by on_hosts_updated(), that hosts have joined or left. libhvd hears of it from hvdrun, and
    is asked when somebody looks: so there is no thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._listeners = []

    def init(self, *args, **kwargs):
        """libhvd connects to the launcher itself."""

    def register_listener(self, listener):
        self._listeners.append(listener)

    def remove_listener(self, listener):
        self._listeners.remove(listener)

    def handle_hosts_updated(self, timestamp, update_res):
        for listener in list(self._listeners):
            listener.on_hosts_updated(timestamp, update_res)

    def look(self):
        with self._lock:
            news = bool(self._listeners) and hvd.hvd_hosts_changed(_place())
        if news:  # hvdrun does not say what has happened
            self.handle_hosts_updated(self._now(), HostUpdateResult.mixed)

    def _now(self):
        """Later than what any listener knows: their last time may come from a host with another clock."""
        known = [getattr(listener, "_last_updated_timestamp", 0) for listener in self._listeners]
        return max([time.time(), *(last + 1 for last in known)])


notification_manager = _NotificationManager()


class _HostMessages(queue.Queue):
    """What a State was told about hosts: (timestamp, HostUpdateResult)."""

    def empty(self):
        notification_manager.look()
        return super().empty()


class State:
    """What all ranks have alike between two steps. Subclasses save, restore and share it."""

    def __init__(self, bcast_object, get_rank):
        self._bcast_object, self._rank = bcast_object, get_rank
        self._host_messages, self._last_updated_timestamp = _HostMessages(), 0
        self._reset_callbacks = []

    def register_reset_callbacks(self, callbacks):
        """The functions are called after each change of the ranks, before the state is shared."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self):
        self._host_messages = _HostMessages()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp, update_res):
        """A message that counts at the next check, on rank 0, if `timestamp` is newer than all before."""
        self._host_messages.put((timestamp, update_res))

    def commit(self):
        """Every rank must call it at the same place. A failure goes back to here."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """Every rank must call it at the same place. HostsUpdatedInterrupt: the ranks will change."""
        last, updates = self._last_updated_timestamp, 0
        messages = []
        while not self._host_messages.empty():
            messages.append(self._host_messages.get())
        for timestamp, update in messages:
            if timestamp > last:
                last, updates = timestamp, updates | int(update)
        changed = last > self._last_updated_timestamp
        changed, last, updates = self._bcast_object((changed, last, updates))
        self._last_updated_timestamp = last
        if changed:
            raise HostsUpdatedInterrupt(skip_sync=updates == HostUpdateResult.removed)

    def save(self):
        raise NotImplementedError("a State needs a method save()")

    def restore(self):
        raise NotImplementedError("a State needs a method restore()")

    def sync(self):
        raise NotImplementedError("a State needs a method sync()")

    def reset(self):
        pass


class ObjectState(State):
    """Any values, as attributes. sync() shares what rank 0 has saved last."""

    def __init__(self, bcast_object, get_rank, **kwargs):
        super().__init__(bcast_object=bcast_object, get_rank=get_rank)
        self._saved_state = dict(kwargs)
        self._set_attributes()

    def save(self):
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}

    def restore(self):
        self._set_attributes()

    def sync(self):
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self._set_attributes()

    def _set_attributes(self):
        for name, value in self._saved_state.items():
            setattr(self, name, value)


class _Run:
    """One call of the decorated function. libhvd calls attempt() for each set of ranks."""

    def __init__(self, function, state, reset):
        self.function, self.state, self.reset = function, state, reset
        self.result = self.error = None
        self.attempts, self.skip_sync = 0, False

    def go(self):
        status = self._run()
        while self._resets_alone(status):
            self.reset()
            self.state.on_reset()
            self.attempts = 0
            status = self._run()
        if status == library.OK:
            return self.result
        if status == library.ERR_REMOVED:
            sys.exit(0)  # the job goes on without this rank
        if self.error is not None and (status == _STOP or not _rejoins()):
            raise self.error
        raise library.failure(status) from self.error

    def _run(self):
        self.error = None
        return hvd.hvd_elastic_run(_place(), library.ELASTIC_FUNCTION(self.attempt), None)

    def _resets_alone(self, status):
        """No launcher gives new ranks, but the program has a way to connect again."""
        return self.reset is not None and isinstance(self.error, _AGAIN) and status != _STOP and not _rejoins()

    def attempt(self, _state, _context):
        """An exception must not leave it, because its callers are C."""
        try:
            self.error = None
            return self._attempt()
        except BaseException as error:
            self.error = error
            return _STOP

    def _attempt(self):
        try:
            if self.attempts > 0:
                _begin_again(self.state, self.reset)
            self.attempts += 1
            if not self.skip_sync:
                self.state.sync()
            self.result = self.function()
            return library.OK
        except HorovodInternalError as error:
            self.error, self.skip_sync = error, False
            self.state.restore()
            return error.status if error.status in _LOST else library.ERR_ENGINE
        except HostsUpdatedInterrupt as error:
            self.error, self.skip_sync = error, error.skip_sync
            return library.ERR_HOSTS_CHANGED


def _rejoins():
    return os.environ.get("HOROVOD_ELASTIC") == "1" and bool(os.environ.get("HOROVOD_GLOO_RENDEZVOUS_PORT"))


def _begin_again(state, reset):
    """libhvd has connected to the new ranks. Nothing of the former ones is valid."""
    basics.forget()
    basics.remember()
    process_sets.begin([], may_exist=False)
    if reset is not None:
        with basics.new_ranks():
            reset()
    state.on_reset()


def run_fn(func, reset=None):
    """Makes a function of a state that is called again after each change of the ranks, after reset()."""

    @functools.wraps(func)
    def wrapper(state, *args, **kwargs):
        notification_manager.init()
        notification_manager.register_listener(state)
        try:
            return _Run(lambda: func(state, *args, **kwargs), state, reset).go()
        finally:
            notification_manager.remove_listener(state)

    return wrapper
