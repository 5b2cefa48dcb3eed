# SPDX-License-Identifier: Apache-2.0
"""--torch-store: an agent serves the store of torch.distributed (TCPStore). With a plain program, with
raw clients, and with real torch.distributed (gloo) and an example script."""
# ctest waits
# ctest warm nightly

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys

import test_elastic_torch
from rig import HVDRUN, Flow, main, plain, wait_until

VALIDATE = b"\x00" + struct.pack("<I", 0x3C85F7CE)


def text(value):
    return struct.pack("<Q", len(value)) + value


class Client:
    """A client of dialect C, as torch 2.2 and newer."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.sendall(VALIDATE)

    def ask(self, query, length):
        self.socket.sendall(query)
        return self.read(length)

    def read(self, length):
        got = b""
        while len(got) < length:
            piece = self.socket.recv(length - len(got))
            if not piece:
                raise ConnectionError("closed")
            got += piece
        return got

    def add(self, key, amount):
        return struct.unpack("<q", self.ask(b"\x04" + text(key) + struct.pack("<q", amount), 8))[0]

    def set(self, key, value):
        self.socket.sendall(b"\x01" + text(key) + text(value))

    def begin_wait(self, key):
        self.socket.sendall(b"\x06" + struct.pack("<Q", 1) + text(key))

    def get(self, key):
        length, = struct.unpack("<Q", self.ask(b"\x03" + text(key), 8))
        return self.read(length)

    def close(self):
        self.socket.close()


SHOW = 'echo "at $MASTER_ADDR $MASTER_PORT agent=$TORCHELASTIC_USE_AGENT_STORE jax $JAX_COORDINATOR_ADDRESS"; '


class Served(Flow):
    """What does not need torch."""

    def hold(self, *args, **options):
        """A job whose workers stay until let_go(), and the port of its store."""
        job = self.start("--torch-store", "agent", *args, "sh", "-c",
                         SHOW + "while [ ! -e may-end ]; do sleep 0.1; done", **options)
        job.wait_output(r"at \S+ \d+ agent=True")
        return job, int(re.search(r"at \S+ (\d+) agent", job.output())[1])

    def let_go(self, job):
        self.write("may-end", "")
        return self.expect(job.wait(), 0)

    def test_environment(self):
        for options, agent in ((), ""), (("--torch-store", "agent"), "True"), (("--torch-store", "auto"), ""):
            result = self.expect(self.run_job(*options, "-np", 2, "sh", "-c", SHOW), 0)
            for line in result.lines:
                self.assertRegex(line, rf"at 127\.0\.0\.1 \d+ agent={agent} jax 127\.0\.0\.1:\d+$")
        result = self.run_job("--torch-store", "agent", "-x", "MASTER_PORT=29500", "true")
        self.expect_said(self.expect(result, 2), "leave MASTER_ADDR and MASTER_PORT out of -x")
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = self.run_job("--torch-store", "agent", "--master-port", port, "true")
            self.assertNotEqual(result.status, 0)
            self.expect_said(result, f"cannot reserve port {port}")

    def test_clients(self):
        job, port = self.hold("--transport", "local", "-H", "a:1,b:1")
        first, second = Client(port), Client(port)
        first.begin_wait(b"/key")
        second.set(b"/key", b"value")
        self.assertEqual(first.read(1), b"\0")
        self.assertEqual(first.get(b"/key"), b"value")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as scanner:
            scanner.sendall(b"GET / HTTP/1.1\r\n\r\n")
            self.assertEqual(scanner.recv(100), b"")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as scanner:
            scanner.sendall(b"\x16\x03\x01")
            self.assertEqual(scanner.recv(100), b"")
        self.assertEqual(first.get(b"/key"), b"value")
        for client in first, second:
            client.close()
        result = self.let_go(job)
        self.expect_said(result, "the store of torch.distributed dropped a client at 127.0.0.1: it sent a query")
        self.assertEqual(result.stderr.count("dropped a client"), 1, result.describe())

    @plain
    def test_a_thousand_clients(self):
        job, port = self.hold("-np", 1)
        clients = [Client(port) for _ in range(1000)]
        for client in clients:
            client.socket.sendall(b"\x04" + text(b"init/") + struct.pack("<q", 1))
        counts = sorted(struct.unpack("<q", client.read(8))[0] for client in clients)
        self.assertEqual(counts, list(range(1, 1001)), "each of them has another number")
        for number, client in enumerate(clients[1:]):
            client.begin_wait(b"/last" if number % 2 else b"/first")
        clients[0].set(b"/first", b"x" * 1000000)
        clients[0].set(b"/last", b"x")
        for client in clients[1:]:
            self.assertEqual(client.read(1), b"\0")
        self.assertEqual(clients[500].get(b"/first"), b"x" * 1000000)
        for client in clients:
            client.close()
        self.let_go(job)


    @plain
    def test_who_waits(self):
        # rank 3 is not yet where it connects; the others wait for its key, and rank 1 through a child
        script = self.write("waits.py", """if True:
            import os, socket, struct, subprocess, sys, time
            text = lambda value: struct.pack("<Q", len(value)) + value
            if os.environ["RANK"] == "1" and len(sys.argv) == 1:
                sys.exit(subprocess.run([sys.executable, "-B", sys.argv[0], "child"]).returncode)
            while os.environ["RANK"] == "3" and not os.path.exists("may-end"):
                time.sleep(0.1)
            store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            store.sendall(b"\\x00" + struct.pack("<I", 0x3C85F7CE))
            if os.environ["RANK"] == "3":
                store.sendall(b"\\x01" + text(b"/rank3\\n") + text(b"here") + b"\\x0d1234")
                store.recv(4)
            else:
                store.sendall(b"\\x06" + struct.pack("<Q", 1) + text(b"/rank3\\n"))
                assert store.recv(1) == b"\\0"
            print("through", flush=True)
            while os.environ["RANK"] == "3" and not os.path.exists("may-fail"):
                time.sleep(0.1)
            sys.exit(int(os.environ["RANK"]) // 3 * 5)
        """)
        report = self.box.path("report.json")
        job = self.start("--torch-store", "agent", "--transport", "local", "-H", "a:2,b:2", "--report", report,
                         sys.executable, "-B", script)

        def waits():
            answer = subprocess.run([HVDRUN, "status", "--json"], env=self.box.environment(), capture_output=True,
                                    text=True, timeout=60, check=False)
            return json.loads(answer.stdout).get("torch_store") if answer.returncode == 0 else None
        found = wait_until(lambda: (lambda table: table if table and "rank 3 is in" in table["text"] else None)(waits()),
                           "the store says who waits, and where the missing rank is", 90)
        self.assertRegex(found["text"], r"^ranks 0-2 wait in PyTorch's store for '/rank3\?', for \d\d s; "
                                        r"rank 3 on b is not connected to it; rank 3 is in waits\.py:7 <module>$")
        self.assertEqual([(wait["rank"], wait["key"]) for wait in found["waits"]], [(n, "/rank3?") for n in range(3)])
        self.assertEqual((found["host"], found["not_connected"]), ("b", [3]))
        shown = subprocess.run([HVDRUN, "status"], env=self.box.environment(), capture_output=True, text=True,
                               timeout=60, check=False)
        self.assertIn("rank 3 on b is not connected to it; rank 3 is in waits.py:", shown.stdout)
        self.write("may-end", "")
        job.wait_output("through", count=4)
        self.write("may-fail", "")
        self.expect(job.wait(), 5)

    @plain
    def test_a_rank_that_the_agent_cannot_see(self):
        """Its connections are in the tables of another network namespace: nobody may say that it has none."""
        if os.geteuid() != 0:
            self.skipTest("no right to make a network namespace")
        script = self.write("away.py", """if True:
            import os, socket, struct
            if os.environ["RANK"] == "1":
                os.execvp("unshare", ["unshare", "-n", "sleep", "1000"])
            store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            store.sendall(b"\\x00" + struct.pack("<I", 0x3C85F7CE))
            store.sendall(b"\\x06" + struct.pack("<QQ", 1, 2) + b"/a")
            store.recv(1)
        """)
        job = self.start("--torch-store", "agent", "-np", 2, sys.executable, "-B", script)

        def waits():
            answer = subprocess.run([HVDRUN, "status", "--json"], env=self.box.environment(), capture_output=True,
                                    text=True, timeout=60, check=False)
            return json.loads(answer.stdout).get("torch_store") if answer.returncode == 0 else None
        found = wait_until(waits, "the store says who waits", 90)
        self.assertRegex(found["text"], r"^rank 0 waits in PyTorch's store for '/a', for \d\d s$")
        self.assertEqual(found["not_connected"], [])
        job.signal(signal.SIGTERM)
        job.wait()

    @plain
    def test_a_hang_is_explained(self):
        script = self.write("init.py", """if True:
            import os, socket, struct, time
            if os.environ["RANK"] == "1":
                time.sleep(1000)
            store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            store.sendall(b"\\x00" + struct.pack("<IBQQ", 0x3C85F7CE, 6, 1, 2) + b"/1")
            store.recv(1)
        """)
        report = self.box.path("report.json")
        result = self.run_job("--torch-store", "agent", "-np", 2, "--timeout", 17, "--report", report, "--evidence",
                              self.box.path("evidence"), sys.executable, "-B", script)
        text = r"rank 0 waits in PyTorch's store for '/1', for \d+ s; rank 1 on \S+ is not connected to it"
        self.expect_said(self.expect(result, 124), text)
        self.assertRegex(self.read_json(report)["torch_store"]["text"], text)
        folder, = os.listdir(self.box.path("evidence"))
        shown = self.expect(self.start("explain", self.box.path("evidence", folder)).wait(), 0)
        self.assertRegex(shown.stdout, text)


class Anew(test_elastic_torch.Restart):

    def test_each_start_has_a_store_of_its_own(self):
        job = self.run_plain("--torch-store", "agent", "-H", "a:1,b:1", "--max-restarts", 2)
        first = self.wait_start(job, 2, 0)
        client = Client(first[0].port)
        self.assertEqual(client.add(b"/n", 5), 5)
        os.kill(first[0].pid, signal.SIGKILL)
        second = self.wait_start(job, 2, 1)
        self.assertNotEqual(first[0].port, second[0].port)
        with self.assertRaises(ConnectionError):
            client.add(b"/n", 1)
        with self.assertRaises(ConnectionRefusedError):
            Client(first[0].port)
        client.close()
        client = Client(second[0].port)
        self.assertEqual(client.add(b"/n", 5), 5, "the map is empty")
        client.close()
        self.finish(job)


INIT = """if True:
    import datetime, os, sys, time, torch, torch.distributed as dist
    if os.environ["RANK"] in sys.argv[1:]:
        time.sleep(1000)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=600))
    x = torch.ones(4) * dist.get_rank()
    dist.all_reduce(x)
    dist.barrier()
    group = dist.new_group(list(range(dist.get_world_size())))
    dist.barrier(group=group)
    print("sum", x[0].item(), "agent", os.environ.get("TORCHELASTIC_USE_AGENT_STORE"))
"""


class Gloo(test_elastic_torch.Torch):
    """The tests of Torch once more, with the agent's store, and more."""

    def start_elastic(self, *args, **options):
        return super().start_elastic("--torch-store", "agent", *args, **options)

    @plain
    def test_killed_rank_0(self):
        job = self.run_torch("-H", "a:1,b:1", "--min-np", 2)
        first = self.wait_said(job, 2, 0)
        job.wait_output(r"step 20:", timeout=60)
        os.kill(first[0][5], signal.SIGKILL)
        second = self.wait_said(job, 2, 1)
        self.assertNotEqual(second[0][3], first[0][3], "another MASTER_PORT")
        self.expect_result(job)

    @plain
    def test_sizes(self):
        script = self.write("init.py", INIT)
        for size, who in (1, "agent"), (2, "auto"), (5, "agent"), (16, "auto"):
            with self.subTest(size=size):
                result = self.run_job("--torch-store", who, "-np", size, "--oversubscribe", self.python, "-B", script,
                                      env={"OMP_NUM_THREADS": "1"}, timeout=200)
                self.expect(result, 0)
                said = re.findall(r"sum (\S+) agent True", result.stdout)
                self.assertEqual(said, [str(float(sum(range(size))))] * size, result.describe())


if __name__ == "__main__":
    main()
