# SPDX-License-Identifier: Apache-2.0
"""A rendezvous that a test plays by hand, to try the elastic stand-in worker itself: keeps what is
put, holds every GET of /rank_and_size until the test answers it, and records the bytes of requests."""

import base64
import hashlib
import hmac
import pickle
import socket
import struct
import threading

from ground import patient, wait_until


def plain_pickle(module, name):
    """An object without attributes, as Python pickles it."""
    module, name = module.encode(), name.encode()
    body = b"\x8c%c%s\x94\x8c%c%s\x94\x93\x94)\x81\x94." % (len(module), module, len(name), name)
    return b"\x80\x05\x95" + struct.pack("<Q", len(body)) + body


def short_update(timestamp, result):
    """HostsUpdatedRequest in the short form that workers accept."""
    return (b"\x80\x04\x8c\x1dhorovod.runner.elastic.worker\x8c\x13HostsUpdatedRequest\x93)\x81}("
            b"\x8c\ttimestampJ" + struct.pack("<i", timestamp) + b"\x8c\x03resK" + bytes([result]) + b"ub.")


class Rendezvous:
    def __init__(self):
        self.store, self.held, self.requests, self.registered = {}, {}, [], {}
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()
        for connection in self.held.values():
            connection.close()

    def _accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, body = data.split(b"\r\n\r\n", 1)
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        with self.lock:
            self.requests.append((head, body))
            if path.startswith("/rank_and_size/"):
                self.held[path.split("/")[2]] = connection
                return
            status, answer = self._do(method, path, body)
        self._answer(connection, status, answer)

    def _do(self, method, path, body):
        if method == "PUT":
            self.store[path] = body
            if path.startswith("/worker_addresses/"):
                self.registered[path.split("/")[2]] = pickle.loads(base64.b64decode(body, validate=True))
        elif method == "GET":
            return (200, self.store[path]) if path in self.store else (404, b"")
        return 200, b""

    @staticmethod
    def _answer(connection, status, body):
        with connection:
            connection.sendall(b"HTTP/1.0 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))

    def wait_asked(self, *who):
        wait_until(lambda: set(who) <= set(self.held), f"{who} ask; so far {list(self.held)}")

    def answer(self, places):
        """Answers those that have asked. {"a:0": (rank, size, local rank, ...), "b:0": b"any body"}; the
        store is emptied, unless some of them are new and have begun to use it."""
        with self.lock:
            if set(places) <= set(self.held):
                self.store.clear()
            connections = [(self.held.pop(who, None), place) for who, place in places.items()]
        for connection, place in connections:
            if connection is not None:
                body = place if isinstance(place, bytes) else ",".join(map(str, place)).encode()
                self._answer(connection, 200, body)

    def environment(self, host, place):
        names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
        env = {f"HOROVOD_{name}": str(value) for name, value in zip(names, place)}
        env.update(HOROVOD_HOSTNAME=host, HOROVOD_ELASTIC="1", HOROVOD_CONTROLLER="gloo", HOROVOD_CPU_OPERATIONS="gloo",
                   HOROVOD_GLOO_RENDEZVOUS_ADDR="127.0.0.1", HOROVOD_GLOO_RENDEZVOUS_PORT=str(self.port),
                   HOROVOD_GLOO_IFACE="lo", HOROVOD_GLOO_TIMEOUT_SECONDS="10", no_proxy="127.0.0.1")
        return env

    def ask_worker(self, who, body, key=None):
        """Sends a frame to a worker's notification service; returns the body of its answer."""
        wait_until(lambda: who in self.registered, f"{who} registers")
        addresses, own = self.registered[who]
        with socket.create_connection(addresses["lo"][0], timeout=patient(10)) as connection:
            digest = hmac.new(key or own, body, hashlib.sha256).digest()
            for byte in digest + struct.pack("=i", len(body)) + body:
                connection.sendall(bytes([byte]))
            answer = b""
            while True:
                chunk = connection.recv(4096)
                if not chunk:
                    break
                answer += chunk
        if not answer:
            return b""
        assert hmac.new(own, answer[36:], hashlib.sha256).digest() == answer[:32], "a wrong digest"
        assert struct.unpack("=i", answer[32:36])[0] == len(answer) - 36, "a wrong length"
        return answer[36:]
