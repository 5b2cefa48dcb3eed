# SPDX-License-Identifier: Apache-2.0
"""Attacks on horovod.run(): somebody relays the connection of a worker, repeats or reflects what it sends, or
connects without the key."""
# ctest plain

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading
from multiprocessing import AuthenticationError
from unittest import mock

from jobs import Job
from python import PACKAGE, package_environment
from rig import BUILD, Flow, main

sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
from horovod.runner import addresses, run_task, session, task_server  # noqa: E402

KEY = b"the key of the job"
STRANGERS = 600

RELAY = """#!{python}
import os, socket, subprocess, sys, threading

def pump(source, sink, old, new):
    while True:
        got = source.recv(1 << 20)
        if not got:
            sink.shutdown(socket.SHUT_WR)
            return
        sink.sendall(got.replace(old, new))

def relay(listener, port):
    old, new = os.environ["OLD"].encode(), os.environ["NEW"].encode()
    while True:
        worker, _ = listener.accept()
        caller = socket.create_connection(("127.0.0.1", port))
        for ends in ((worker, caller), (caller, worker)):
            threading.Thread(target=pump, args=(*ends, old, new), daemon=True).start()

listener = socket.create_server(("127.0.0.1", 0))
port = int(os.environ["HVDRUN_RUN_ADDRESS"].split(",")[-1])
threading.Thread(target=relay, args=(listener, port), daemon=True).start()
os.environ["HVDRUN_RUN_ADDRESS"] = "127.0.0.1,%d" % listener.getsockname()[1]
sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)
"""

RELAYED = """
import sys
import horovod
try:
    print(horovod.run(str.upper, args=("word honest",), num_proc=1, executable=sys.argv[1]))
except RuntimeError as error:
    print("RuntimeError")
"""


class Relayed(Flow):
    """The worker comes through a relay, which replaces a word."""

    def relayed(self, old, new):
        relay = self.write("relay", RELAY.format(python=sys.executable), mode=0o755)
        program = self.write("program.py", RELAYED)
        env = package_environment(PATH=os.pathsep.join([BUILD, os.environ["PATH"]]), OLD=old, NEW=new)
        return Job(self.box, [sys.executable, program, relay], env=env).wait(120)

    def test_a_relay_that_changes_nothing(self):
        self.assertEqual(self.expect(self.relayed("x!", "y!"), 0).lines, ["['WORD HONEST']"])

    def test_another_function(self):
        result = self.expect(self.relayed("word honest", "word hacked"), 0)
        self.assertEqual(result.lines, ["RuntimeError"], result.describe())
        self.assertIn("does not have the key of the job", result.stderr)

    def test_another_result(self):
        result = self.expect(self.relayed("WORD HONEST", "WORD HACKED"), 0)
        self.assertEqual(result.lines, ["RuntimeError"], result.describe())


class Middle:
    """A caller and a worker that have met, with an attacker between them: `pieces` are what each has sent."""

    def __init__(self, worker_key=KEY):
        self.ends = [socket.socketpair() for _ in range(2)]
        (caller, self.to_caller), (worker, self.to_worker) = self.ends
        for end in (caller, worker, self.to_caller, self.to_worker):
            end.settimeout(20)
        made = []
        deadline = run_task.time.monotonic() + 20
        other = threading.Thread(target=lambda: made.append(session.introduce(worker, worker_key, deadline)))
        other.start()
        nonce = session.challenge()
        self.to_worker.sendall(nonce)
        self.hello = self.read(self.to_worker, session.HELLO)
        with no_keepalive():
            self.caller = session.admit(caller, KEY, nonce, self.hello)
            self.to_worker.sendall(self.read(self.to_caller, session.CODE))
            other.join()
        self.worker = made[0]

    @staticmethod
    def read(end, length):
        return bytes(session._receive(end, length))

    def close(self):
        for end in [end for pair in self.ends for end in pair]:
            end.close()

    def message(self, sender, end, content):
        """The two pieces of a message."""
        sender.send(content)
        head = session.LENGTH.size + session.CODE
        return self.read(end, head), self.read(end, len(content) + session.CODE)

    def refused(self, receiver, end, content):
        end.sendall(content)
        end.shutdown(socket.SHUT_WR)
        try:
            return receiver.receive() is None
        except (AuthenticationError, EOFError):
            return True


def no_keepalive():
    """These sockets are not of TCP."""
    return mock.patch.dict(session.KEEPALIVE, clear=True)


class Pieces(Flow):

    def middle(self):
        made = Middle()
        self.addCleanup(made.close)
        return made

    def test_what_is_passed_on_arrives(self):
        middle = self.middle()
        for content in (b"one", b"", b"x" * 100000):
            middle.to_worker.sendall(b"".join(middle.message(middle.caller, middle.to_caller, content)))
            self.assertEqual(middle.worker.receive(), content)
            middle.to_caller.sendall(b"".join(middle.message(middle.worker, middle.to_worker, content)))
            self.assertEqual(middle.caller.receive(), content)

    def test_any_changed_bit(self):
        for place in range(session.LENGTH.size + len(b"one") + 2 * session.CODE):
            middle = Middle()
            content = bytearray(b"".join(middle.message(middle.caller, middle.to_caller, b"one")))
            content[place] ^= 1 << place % 8
            self.assertTrue(middle.refused(middle.worker, middle.to_worker, content), place)
            middle.close()

    def test_a_repeated_message(self):
        middle = self.middle()
        message = b"".join(middle.message(middle.caller, middle.to_caller, b"one"))
        middle.to_worker.sendall(message)
        self.assertEqual(middle.worker.receive(), b"one")
        self.assertTrue(middle.refused(middle.worker, middle.to_worker, message))

    def test_a_message_is_left_out(self):
        middle = self.middle()
        middle.message(middle.caller, middle.to_caller, b"one")
        message = b"".join(middle.message(middle.caller, middle.to_caller, b"two"))
        self.assertTrue(middle.refused(middle.worker, middle.to_worker, message))

    def test_a_message_comes_back(self):
        """Reflected to the side that sent it."""
        middle = self.middle()
        message = b"".join(middle.message(middle.caller, middle.to_caller, b"one"))
        self.assertTrue(middle.refused(middle.caller, middle.to_caller, message))

    def test_pieces_of_another_session(self):
        one, other = self.middle(), self.middle()
        message = b"".join(one.message(one.caller, one.to_caller, b"one"))
        self.assertTrue(other.refused(other.worker, other.to_worker, message))

    def test_a_cut_message(self):
        middle = self.middle()
        message = b"".join(middle.message(middle.caller, middle.to_caller, b"one"))
        self.assertTrue(middle.refused(middle.worker, middle.to_worker, message[:-1]))

    def test_a_length_without_end(self):
        """It is not believed, so no memory is taken for it."""
        middle = self.middle()
        forged = session.LENGTH.pack(1 << 62) + bytes(session.CODE)
        self.assertTrue(middle.refused(middle.worker, middle.to_worker, forged))


class Strangers(Flow):
    """Without the key: neither the function nor a place for results, and the program stays usable."""

    @contextlib.contextmanager
    def server(self):
        with task_server.TaskServer(len, ("four",), {}, True) as server:
            self.place = server.environment()
            self.port = int(self.place[task_server.ADDRESS].split(",")[1])
            yield server

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.addCleanup(plain.close)
        return plain

    def work(self):
        """A worker gets the function and leaves a result."""
        with mock.patch.dict(os.environ, {**self.place, "HOROVOD_RANK": "0"}):
            run_task.main()

    def is_closed(self, plain):
        """By the other side, which has sent its nonce at most."""
        plain.settimeout(60)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while more := plain.recv(4096):
                got += more
        return len(got) <= session.NONCE

    def test_a_wrong_key(self):
        with self.server() as server, mock.patch.object(run_task, "REACH_S", 0):
            with self.assertRaises(ConnectionError):
                run_task.reach({**self.place, task_server.KEY: "wrong"})
            with self.assertRaisesRegex(RuntimeError, "rank 0 has ended without a result"):
                server.take(1)

    def test_addresses_where_nobody_answers(self):
        """A worker tries all of them: one is refused, at one a stranger is silent, at one another closes."""
        with self.server(), mock.patch.object(addresses, "_is_here", lambda _: False), mock.patch.object(run_task, "ANSWER_S", 1), mock.patch.object(run_task, "REACH_S", 0):
            silent = socket.create_server(("127.0.0.2", self.port))
            closed = socket.create_server(("127.0.0.3", self.port))
            self.addCleanup(silent.close)
            thread = threading.Thread(target=lambda: closed.accept()[0].close() or closed.close())
            thread.start()
            with self.assertRaises(ConnectionError) as raised:
                run_task.reach({**self.place, task_server.ADDRESS: f"127.0.0.4,127.0.0.2,127.0.0.3,{self.port}"})
            thread.join()
            self.assertEqual((str(raised.exception).count("127.0.0."), str(raised.exception).count("\n")), (3, 0))
            with run_task.reach({**self.place, task_server.ADDRESS: f"127.0.0.4,127.0.0.2,127.0.0.1,{self.port}"}) as good:
                self.assertGreater(len(good.receive()), 0)

    def test_a_name_that_leads_to_the_own_machine(self):
        """That of the caller's machine, as some /etc/hosts have it. A stranger listens there, and hears nothing."""
        with socket.create_server(("127.0.0.1", 0)) as listener, mock.patch.object(run_task, "REACH_S", 0):
            port = listener.getsockname()[1]
            listener.settimeout(0)
            for name in ("localhost", "127.0.0.2", "0.0.0.0", "::1", "::ffff:127.0.0.1"):
                with self.assertRaisesRegex(ConnectionError, f"{name}: it leads to this machine itself"):
                    run_task.reach({task_server.ADDRESS: f"{name},{port}", task_server.KEY: "key"})
            with self.assertRaises(BlockingIOError):
                listener.accept()

    def test_who_is_not_said(self):
        """A worker that says something else leaves nothing, and no traceback."""
        with self.server() as server:
            with mock.patch.object(threading, "excepthook") as hook:
                for said in (b"", b"\xff", b"7", b"{}", b"[" * 100000, b'{"rank": [], "pid": 1, "raised": null}',
                             b'{"rank": 0, "pid": 1, "raised": 7}'):
                    with run_task.reach(self.place) as worker:
                        worker.receive()
                        worker.send(said)
                        with self.assertRaises((EOFError, OSError)):
                            worker.send(b"content")
                            worker.receive()
                self.work()
                self.assertEqual((server.take(1), hook.call_count), ([4], 0))

    def test_the_key_is_gone(self):
        """The function and what it starts do not find it in their environment."""
        with task_server.TaskServer(os.getenv, (task_server.KEY, "none"), {}, True) as server:
            self.place = server.environment()
            self.work()
            self.assertEqual(server.take(1), ["none"])

    def test_a_hello_of_another_connection(self):
        """An attacker who has heard a worker says the same."""
        middle = Middle()
        self.addCleanup(middle.close)
        with self.server():
            plain = self.connect()
            plain.sendall(middle.hello)
            self.assertTrue(self.is_closed(plain))

    def test_what_the_caller_says_comes_back(self):
        with self.server():
            plain = self.connect()
            nonce = Middle.read(plain, session.NONCE)
            plain.sendall(nonce + nonce)
            self.assertTrue(self.is_closed(plain))

    def test_what_the_worker_says_comes_back(self):
        """A listener at an address of the worker's own machine, which does not have the key."""
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def reflect():
                plain, _ = listener.accept()
                with plain:
                    plain.sendall(bytes(session.NONCE))
                    hello = Middle.read(plain, session.HELLO)
                    plain.sendall(hello[session.NONCE:])

            thread = threading.Thread(target=reflect)
            thread.start()
            place = {task_server.ADDRESS: f"127.0.0.1,{listener.getsockname()[1]}", task_server.KEY: "key"}
            with mock.patch.object(run_task, "REACH_S", 0), self.assertRaisesRegex(ConnectionError, "the key of the job"):
                run_task.reach(place)
            thread.join()

    def wait_for_closed(self, strangers, count):
        """Until the other side has closed so many of them."""
        with selectors.DefaultSelector() as ready:
            for plain in strangers:
                ready.register(plain, selectors.EVENT_READ)
            while count > 0:
                found = ready.select(60)
                self.assertTrue(found)
                for key, _ in found:
                    with contextlib.suppress(ConnectionResetError):
                        if key.fileobj.recv(4096):
                            continue
                    ready.unregister(key.fileobj)
                    count -= 1

    def test_a_flood_of_silent_ones(self):
        """They cost no thread. Some have to go, and a worker gets its turn among them."""
        with mock.patch.object(task_server, "GUESTS_MAX", 128), self.server() as server:
            before = threading.active_count()
            strangers = [self.connect() for _ in range(STRANGERS)]
            self.wait_for_closed(strangers, STRANGERS - task_server.GUESTS_MAX)
            self.assertEqual(threading.active_count(), before)
            self.work()
            self.assertEqual(server.take(1), [4])

    def test_a_worker_slower_than_a_flood(self):
        """Before it has proved anything, as many come as there are places. It is one of those that stay in the end."""
        places = 32
        with mock.patch.object(task_server, "GUESTS_MAX", places), self.server():
            self.wait_for_closed([self.connect() for _ in range(2 * places)], places)
            for _ in range(100):
                plain = self.connect()
                nonce = Middle.read(plain, session.NONCE)
                flood = [self.connect() for _ in range(places)]
                if self.is_admitted(plain, nonce):
                    return
                for stranger in flood:
                    stranger.close()
            self.fail("each time, the worker had to go")

    def is_admitted(self, plain, nonce):
        """Also after all who have come meanwhile, as the one after them shows."""
        Middle.read(self.connect(), session.NONCE)
        own = session.challenge()
        with contextlib.suppress(OSError, EOFError):
            plain.sendall(own + session._code(self.place[task_server.KEY].encode(), session.WORKER, nonce, own))
            return len(Middle.read(plain, session.CODE)) == session.CODE
        return False

    def test_a_silent_one_has_to_go(self):
        with mock.patch.object(task_server, "GUEST_S", 1), self.server():
            self.assertTrue(self.is_closed(self.connect()))

    def test_no_free_descriptor(self):
        """The guests give theirs back, and if there are none, the server waits: it does not spin."""
        accepts = []

        class Poor(socket.socket):
            def accept(self):
                accepts.append(1)
                if len(accepts) < 4:
                    raise OSError(task_server.errno.EMFILE, "no descriptor")
                return super().accept()

        with mock.patch.object(socket, "create_server", lambda name, **_: self.listener(Poor, name)):
            with self.server() as server:
                self.work()
                self.assertEqual(server.take(1), [4])
        self.assertEqual(len(accepts), 4)

    @staticmethod
    def listener(kind, name):
        made = kind()
        made.bind(name)
        made.listen()
        return made

    def test_the_end_waits_for_nobody(self):
        with self.server():
            guest = self.connect()
            worker = run_task.reach(self.place)
        self.assertTrue(self.is_closed(guest))
        with worker, self.assertRaises((OSError, EOFError)):
            worker.receive()
            worker.receive()


SHOW = "from horovod.runner.addresses import find_addresses; import socket; print(*[one for one in find_addresses() if one != socket.gethostname()])"
PLAIN = "ip link add eth9 type veth peer name far9; ip link set far9 up; ip link set eth9 up; "
BRIDGE = "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up; "


class Addresses(Flow):
    """What is offered to the workers, in a network of its own."""

    def offered(self, network):
        script = "set -e; mount -t sysfs sysfs /sys; " + network + 'exec "$0" -B -c "$1"'
        argv = ["unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-c", script, sys.executable, SHOW]
        env = {**os.environ, "PYTHONPATH": PACKAGE}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        if "unshare" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_no_loopback_and_no_bridge(self):
        plain = PLAIN + "ip link set lo up; ip addr add 10.9.0.1/24 dev eth9; "
        self.assertEqual(self.offered(plain), ["10.9.0.1"])
        self.assertEqual(self.offered(plain + BRIDGE), ["10.9.0.1"])

    def test_a_bridge_where_there_is_nothing_else(self):
        """The workers may be its guests."""
        self.assertEqual(self.offered(BRIDGE), ["172.17.0.1"])

    def test_the_bridge_with_the_network_card(self):
        routed = BRIDGE + "ip link add br0 type bridge; ip addr add 10.9.0.1/24 dev br0; ip link set br0 up; ip route add default via 10.9.0.2; "
        self.assertEqual(self.offered(routed), ["10.9.0.1"])

    def test_ipv6_alone(self):
        network = PLAIN + "ip addr add fd00:9::1/64 dev eth9 nodad; "
        self.assertEqual(self.offered(network), ["fd00:9::1"])

    def test_nothing_but_loopback(self):
        self.assertEqual(self.offered("ip link set lo up; "), ["127.0.0.1"])

    def test_the_bridge_of_ipv6_alone(self):
        """It has the default route, and the other one has not."""
        bridges = "".join(f"ip link add {name} type bridge; ip addr add {address} dev {name} nodad; ip link set {name} up; "
                          for name, address in (("docker0", "fd00:8::1/64"), ("br0", "fd00:9::1/64")))
        self.assertEqual(self.offered(bridges + "ip -6 route add default dev br0; "), ["fd00:9::1"])

    def test_the_server_hears_ipv6(self):
        if not socket.has_dualstack_ipv6():
            self.skipTest("no IPv6 on this machine")
        with task_server.TaskServer(len, ("four",), {}, False) as server:
            place = server.environment()
            port = place[task_server.ADDRESS].split(",")[-1]
            for address in ("127.0.0.1", "::1"):
                with mock.patch.object(addresses, "_is_here", lambda _: False), run_task.reach({**place, task_server.ADDRESS: f"{address},{port}"}) as worker:
                    self.assertGreater(len(worker.receive()), 0)


if __name__ == "__main__":
    main()
