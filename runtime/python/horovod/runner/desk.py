# SPDX-License-Identifier: Apache-2.0
"""Where the workers of horovod.run() get their function, and leave what it returned. Both sides prove
that they have the key of the job, which reaches the workers in their environment."""
import contextlib
import fcntl
import os
import pickle
import secrets
import socket
import struct
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge

try:
    import cloudpickle
except ImportError:  # without it, functions of __main__ do not travel
    cloudpickle = pickle

ADDRESS, KEY = "HVDRUN_RUN_ADDRESS", "HVDRUN_RUN_KEY"
ANSWER_S = 10  # a worker tries the next address if nobody answers at one
SIOCGIFADDR = 0x8915


class Desk:
    """The side of the program that called horovod.run()."""

    def __init__(self, function, args, kwargs, local):
        self._task = cloudpickle.dumps((function, args, kwargs))
        self._results, self._key = {}, secrets.token_hex(32)
        self._listener = Listener(("127.0.0.1" if local else "", 0), backlog=128)
        self._local, self._open = local, True
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._open = False
        try:  # wakes accept()
            socket.create_connection(("127.0.0.1", self._listener.address[1]), timeout=5).close()
        except OSError:
            pass
        self._thread.join()
        self._listener.close()

    def environment(self):
        """What the workers need: addresses, the port, and the key."""
        names = ["127.0.0.1"] if self._local else [*_addresses(), socket.gethostname(), "127.0.0.1"]
        port = self._listener.address[1]
        return {ADDRESS: ",".join([*dict.fromkeys(names), str(port)]), KEY: self._key}

    def take(self, count):
        """The results of the first ranks."""
        missing = [rank for rank in range(count) if rank not in self._results]
        if missing:
            raise RuntimeError(f"horovod.run(): rank {missing[0]} has ended without a result")
        return [pickle.loads(self._results[rank]) for rank in range(count)]

    def _serve(self):
        while self._open:
            try:
                connection = self._listener.accept()
            except OSError:
                continue  # it has ended already
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        try:
            with connection:
                deliver_challenge(connection, self._key.encode())
                answer_challenge(connection, self._key.encode())
                connection.send_bytes(self._task)
                rank = int(connection.recv_bytes())
                self._results[rank] = connection.recv_bytes()
                connection.send_bytes(b"taken")
        except (AuthenticationError, EOFError, OSError, ValueError):
            pass  # a stranger; or the worker has ended, and the launcher says why


def _addresses():
    """The IPv4 addresses of this machine's interfaces, without the loopback."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has none
                answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", name.encode()))
                found.append(socket.inet_ntoa(answer[20:24]))
    return [one for one in found if not one.startswith("127.")]


def _connect(address, key):
    """A stranger at the address may take the connection and say nothing."""
    with socket.create_connection(address, timeout=ANSWER_S) as plain:
        plain.settimeout(None)
        connection = Connection(os.dup(plain.fileno()))
        try:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", ANSWER_S, 0))
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except BaseException:
            connection.close()
            raise
    return connection


def reach(environment):
    """The side of a worker: a connection to the desk. Its machine has several addresses, and not all of them need be
    reachable from here."""
    *names, port = environment[ADDRESS].split(",")
    problems = []
    for name in names:
        try:
            return _connect((name, int(port)), environment[KEY].encode())
        except (OSError, AuthenticationError, EOFError) as error:
            problems.append(f"{name}: {error or 'it closed the connection'}")
    raise ConnectionError(f"horovod.run(): cannot reach the program that called it, port {port}: {'; '.join(problems)}")
