# SPDX-License-Identifier: Apache-2.0
"""Where the workers of horovod.run() get their function, and leave what it returned or raised.

Anyone who can reach the port can connect. Before such a guest has proved that it has the key of the job, it costs a
descriptor and no thread, for at most GUEST_S. If there are too many guests, one of them has to go, by lot: a worker
comes again. If it were the oldest one, a steady flood would end each worker that is slower than the flood."""
import contextlib
import errno
import json
import pickle
import secrets
import selectors
import socket
import threading
import time
from multiprocessing import AuthenticationError

from horovod.runner.addresses import find_addresses
from horovod.runner.session import HELLO, admit, challenge

try:
    import cloudpickle
except ImportError:  # without it, functions of __main__ do not travel
    cloudpickle = pickle

ADDRESS, KEY = "HVDRUN_RUN_ADDRESS", "HVDRUN_RUN_KEY"
GUESTS_MAX, GUEST_S = 512, 10
BACKLOG = 4096
PAUSE_S = 1  # when the program has no free descriptor, and no guest has one
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Guest:
    """A connection without a proof."""

    def __init__(self, plain):
        self.nonce, self.hello, self.until = challenge(), b"", time.monotonic() + GUEST_S
        plain.setblocking(False)
        plain.send(self.nonce)  # the first bytes of a connection: there is room


def _read_who(message):
    """EOFError: it is not what a worker says, so nothing that follows is of use."""
    try:
        who = json.loads(message)
        rank, pid, raised = who["rank"], who["pid"], who["raised"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EOFError("a worker did not say who it is") from error
    if type(rank) is not int or type(pid) is not int or not isinstance(raised, (str, type(None))):
        raise EOFError("a worker did not say who it is")
    return rank, pid, raised


def _listen(local):
    if local:
        return socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    return socket.create_server(("", 0), backlog=BACKLOG)


class TaskServer:
    """The side of the program that called horovod.run(). One thread has all guests, and each worker has its own.
    `local`: all workers are on this machine."""

    def __init__(self, function, args, kwargs, local):
        self._task = cloudpickle.dumps((function, args, kwargs))
        self._results, self._failures = {}, {}
        self._key, self._local, self._listener = secrets.token_hex(32), local, _listen(local)
        self._end, self._ended = socket.socketpair()
        self._guests, self._sessions, self._workers = {}, set(), []
        self._open, self._resume, self._ready = True, None, selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._listener.setblocking(False)
        self._ready.register(self._listener, selectors.EVENT_READ, self._accept)
        self._ready.register(self._ended, selectors.EVENT_READ, self._close)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.close()
        for thread in [self._thread, *self._workers]:
            thread.join()

    def environment(self):
        """What the workers need: addresses, the port, and the key."""
        names = ["127.0.0.1"] if self._local else find_addresses()
        return {ADDRESS: ",".join([*names, str(self._listener.getsockname()[1])]), KEY: self._key}

    def take(self, count):
        """The results of the first ranks."""
        missing = [rank for rank in range(count) if rank not in self._results]
        if missing:
            raise RuntimeError(f"horovod.run(): rank {missing[0]} has ended without a result")
        return [pickle.loads(self._results[rank]) for rank in range(count)]

    def failure(self, rank, pid):
        """The exception that ended this process of the rank, in one line and as a traceback; None: not known."""
        return self._failures.get((rank, pid))

    def _serve(self):
        while self._open:
            for key, _ in self._ready.select(1 if self._guests or self._resume else None):
                if self._open:
                    key.data(key.fileobj)
            now = time.monotonic()
            for plain in [plain for plain, guest in self._guests.items() if guest.until <= now]:
                self._drop(plain)
            if self._open and self._resume is not None and self._resume <= now:
                self._resume = None
                self._ready.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self, listener):
        try:
            plain, _ = listener.accept()
        except OSError as error:
            if error.errno in EXHAUSTED:
                self._make_room()
            return
        if len(self._guests) == GUESTS_MAX:
            self._drop(secrets.choice(list(self._guests)))
        try:
            self._guests[plain] = _Guest(plain)
            self._ready.register(plain, selectors.EVENT_READ, self._hear)
        except OSError:
            self._drop(plain)

    def _make_room(self):
        if self._guests:
            self._drop(secrets.choice(list(self._guests)))
        else:
            self._ready.unregister(self._listener)
            self._resume = time.monotonic() + PAUSE_S

    def _drop(self, plain):
        self._guests.pop(plain, None)
        with contextlib.suppress(KeyError):
            self._ready.unregister(plain)
        plain.close()

    def _hear(self, plain):
        guest = self._guests.get(plain)
        if guest is None:
            return  # it had to go for another one
        try:
            more = plain.recv(HELLO - len(guest.hello))
            guest.hello += more
            if len(guest.hello) == HELLO:
                self._admit(plain, guest)
            elif not more:
                self._drop(plain)
        except BlockingIOError:
            pass
        except (AuthenticationError, OSError, RuntimeError):  # the last one: no more threads
            self._drop(plain)

    def _admit(self, plain, guest):
        session = admit(plain, self._key.encode(), guest.nonce, guest.hello)
        del self._guests[plain]
        self._ready.unregister(plain)
        self._sessions.add(session)
        worker = threading.Thread(target=self._talk, args=(session,), daemon=True)
        worker.start()
        self._workers.append(worker)

    def _talk(self, session):
        with session, contextlib.suppress(AuthenticationError, EOFError, OSError):  # the launcher says why it ended
            session.send(self._task)
            rank, pid, raised = _read_who(session.receive())
            content = session.receive()
            if raised is not None:
                self._failures[rank, pid] = raised, content.decode(errors="replace")
            else:
                self._results[rank] = content
            session.send(b"taken")
        self._sessions.discard(session)

    def _close(self, ended):
        self._open = False
        for plain in list(self._guests):
            self._drop(plain)
        for session in list(self._sessions):
            session.hang_up()
        for one in (self._ready, self._listener, ended):
            one.close()
