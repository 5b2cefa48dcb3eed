# SPDX-License-Identifier: Apache-2.0
"""The connection between the program that called horovod.run() and one of its workers.

Each side sends a fresh nonce, and proves with a code (HMAC-SHA-256) of both nonces that it has the key of the job.
The key of the session comes from the same three. Everything after that travels in pieces, each with a code under this
key, which covers the direction, the number and the length of the piece. So whoever relays a connection can read it and
cut it, but cannot change, repeat, reorder or reflect a piece. Nothing is read before its code is right."""
import hashlib
import hmac
import secrets
import socket
import struct
import time
from multiprocessing import AuthenticationError

NONCE = CODE = 32
HELLO = NONCE + CODE  # what a worker sends first
LENGTH = struct.Struct("!Q")
CALLER, WORKER = b"caller", b"worker"
KEEPALIVE = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 6}


def _code(key, *parts):
    """No two lists of parts have the same code."""
    code = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        code.update(LENGTH.pack(len(part)))
        code.update(part)
    return code.digest()


def _check(key, code, *parts):
    if not hmac.compare_digest(bytes(code), _code(key, *parts)):
        raise AuthenticationError("the other side does not have the key of the job")


def _receive(plain, length, deadline=None):
    content = bytearray(length)
    view = memoryview(content)
    while view:
        if deadline is not None:
            plain.settimeout(max(deadline - time.monotonic(), 0.001))
        got = plain.recv_into(view)
        if got == 0:
            raise EOFError("the other side closed the connection")
        view = view[got:]
    return content


class Session:
    """A connection whose other end has proved that it has the key."""

    def __init__(self, plain, key, nonces, own, other):
        self._plain, self._key = plain, _code(key, b"session", *nonces)
        self._own, self._other = own, other
        self._sent = self._received = 0
        plain.settimeout(None)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            plain.setsockopt(socket.IPPROTO_TCP, option, value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._plain.close()

    def send(self, message):
        self._send_piece(LENGTH.pack(len(message)))
        self._send_piece(message)

    def receive(self):
        """AuthenticationError: it is not what the other side sent. EOFError, OSError: the connection has ended."""
        (length,) = LENGTH.unpack(self._receive_piece(LENGTH.size))
        return self._receive_piece(length)

    def hang_up(self):
        """From any thread: whoever waits in send() or receive() waits no longer."""
        try:
            self._plain.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already

    def _send_piece(self, content):
        self._plain.sendall(content)
        self._plain.sendall(_code(self._key, self._own, LENGTH.pack(self._sent), content))
        self._sent += 1

    def _receive_piece(self, length):
        content = _receive(self._plain, length)
        code = _receive(self._plain, CODE)
        _check(self._key, code, self._other, LENGTH.pack(self._received), content)
        self._received += 1
        return content


def challenge():
    """What the caller sends to everyone who connects."""
    return secrets.token_bytes(NONCE)


def admit(plain, key, nonce, hello):
    """The side of the caller: the session with a worker that answered the challenge `nonce` with `hello`."""
    nonces = nonce, bytes(hello[:NONCE])
    _check(key, hello[NONCE:], WORKER, *nonces)
    plain.settimeout(None)
    plain.sendall(_code(key, CALLER, *nonces))
    return Session(plain, key, nonces, CALLER, WORKER)


def introduce(plain, key, deadline):
    """The side of a worker. `deadline`: of time.monotonic(), for the proofs of both sides."""
    nonces = bytes(_receive(plain, NONCE, deadline)), secrets.token_bytes(NONCE)
    plain.sendall(nonces[1] + _code(key, WORKER, *nonces))
    _check(key, _receive(plain, CODE, deadline), CALLER, *nonces)
    return Session(plain, key, nonces, WORKER, CALLER)
