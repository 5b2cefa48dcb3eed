# SPDX-License-Identifier: Apache-2.0
"""The elastic stand-in worker itself, against a rendezvous that the test plays. The worker must notice what
a launcher does wrong. It must send and accept the same bytes as the recorded workers of Horovod."""

import base64
import os
import pickle
import re
import signal
import unittest

from box import Box
from fake_rendezvous import Rendezvous, plain_pickle, short_update
from ground import wait_until, worker
from jobs import Job
import rig

# A HostsUpdatedRequest (timestamp 1795217027, added) as the real launcher pickles it.
LONG_UPDATE = bytes.fromhex(
    "80059592000000000000008c1d686f726f766f642e72756e6e65722e656c61737469632e776f726b6572948c13486f737473557064617465"
    "64526571756573749493942981947d94288c0974696d657374616d70944a83d6006b8c03726573948c086275696c74696e73948c07676574"
    "61747472949394" "68008c10486f7374557064617465526573756c749493948c056164646564948694529475622e")
ACK = plain_pickle("horovod.runner.common.util.network", "AckResponse")
PING = plain_pickle("horovod.runner.common.util.network", "PingRequest")


def places(*hosts):
    """{"a:0": (rank, size, local rank, local size, cross rank, cross size)} of ("a", 2), ("b", 1)."""
    size, found = sum(count for _, count in hosts), {}
    for index, (host, count) in enumerate(hosts):
        for local in range(count):
            peers = [i for i, (_, other) in enumerate(hosts) if other > local]
            found[f"{host}:{local}"] = (len(found), size, local, count, peers.index(index), len(peers))
    return found


class StandIn(unittest.TestCase):

    def setUp(self):
        self.box, self.server, self.jobs = Box(), Rendezvous(), {}
        self.addCleanup(self.end)

    def end(self):
        self.server.close()
        for one in self.jobs.values():
            one.kill()
        self.box.kill_strays()
        self.box.close()

    def start(self, plan, *args, who=None, env=None):
        self.server.store.clear()
        for name in who or plan:
            environment = {**self.server.environment(name.split(":")[0], plan[name]), **(env or {})}
            limit = () if "--alarm" in args else ("--alarm", 30)
            self.jobs[name] = Job(self.box, [worker("elastic_horovod"), "--step-ms", 2, *limit, *args], env=environment)

    def steps(self, name, count):
        self.jobs[name].wait_output(rf"^epoch-round .* step {count} ")

    def finish(self, *names):
        results = {name: self.jobs[name].wait() for name in names}
        for result in results.values():
            self.assertEqual(result.status, 0, result.describe())
            self.assertNotIn("VIOLATION", result.stderr)
        return re.search(r"final steps=.*", "".join(r.stdout for r in results.values())).group(0)

    def undisturbed(self, steps):
        plan = places(("z", 1))
        self.start(plan, "--steps", steps)
        return self.finish("z:0")

    def expect_violation(self, name, words):
        result = self.jobs[name].wait()
        self.assertIn(result.status, (-signal.SIGABRT, 2), result.describe())
        self.assertRegex(result.stderr, rf"VIOLATION: .*{words}", result.describe())

    def test_result_does_not_depend_on_the_size(self):
        alone = self.undisturbed(20)
        plan = places(("a", 2), ("b", 1))
        self.start(plan, "--steps", 20)
        self.assertEqual(self.finish(*plan), alone)

    def test_requests_as_recorded(self):
        plan = places(("a", 1))
        self.start(plan, "--steps", 1)
        self.finish("a:0")
        heads = [head for head, _ in self.server.requests]
        self.assertEqual(heads[0], b"PUT /global/rank_0 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d"
                         % len(os.uname().nodename))
        self.assertEqual(heads[1:3], [b"PUT /global/0 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0",
                                      b"DELETE /global/0 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0"])
        self.assertEqual(len(heads), 18 + 1)
        head, body = self.server.requests[18]
        self.assertEqual(head, b"PUT /worker_addresses/a:0 HTTP/1.1\r\nAccept-Encoding: identity\r\n"
                         b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 104\r\n"
                         b"Host: 127.0.0.1:%d\r\nUser-Agent: Python-urllib/3.11\r\nConnection: close" % self.server.port)
        value = self.server.registered["a:0"]
        self.assertEqual(base64.b64decode(body), pickle.dumps(value, 5))
        self.assertEqual(list(value[0]), ["lo"])

    def test_failure_rolls_back_and_the_place_is_taken(self):
        plan = places(("a", 2), ("b", 1))
        self.start(plan, "--steps", 30, "--commit", 10, "--progress", "--once", self.box.work, "--crash", "1@17")
        self.assertEqual(self.jobs["a:1"].wait().status, -signal.SIGKILL)
        self.server.wait_asked("a:0", "b:0")
        new = places(("a", 1), ("b", 1))
        self.server.answer(new)
        result = self.finish("a:0", "b:0")
        self.assertRegex(self.jobs["b:0"].output(), r"epoch-round 2 rank 1/2 host b local 0 step 10 ")
        self.assertEqual(result, self.undisturbed(30))

    def test_growth_by_notification(self):
        small, large = places(("a", 1)), places(("a", 1), ("b", 1))
        done, let_go = self.box.gate()
        self.start(small, "--steps", 30, "--until", done, "--progress")
        self.steps("a:0", 10)
        self.assertEqual(self.server.ask_worker("a:0", short_update(1795217027, 2)), ACK)
        self.server.wait_asked("a:0")
        self.start(large, "--steps", 30, "--until", done, who=["b:0"])
        self.server.answer(large)
        self.jobs["b:0"].wait_output(r"^epoch-round 2 rank 1/2 host b local 0 step [1-9]")
        self.assertEqual(self.server.ask_worker("a:0", LONG_UPDATE), ACK)  # the same timestamp: of no effect
        self.jobs["a:0"].wait_output("^ignored timestamp 1795217027")
        let_go()
        self.assertEqual(self.finish("a:0", "b:0"), self.undisturbed(30))

    def test_ping_and_long_form(self):
        done, let_go = self.box.gate()
        self.start(places(("a", 1)), "--steps", 5, "--until", done)
        answer = self.server.ask_worker("a:0", PING)
        self.assertEqual(len(answer), 148)
        self.assertIn(b"\x8c\x1bworker notification service", answer)
        self.assertEqual(self.server.ask_worker("a:0", LONG_UPDATE), ACK)
        self.server.wait_asked("a:0")
        self.server.answer(places(("a", 1)))
        self.jobs["a:0"].wait_output("^notified timestamp 1795217027 result 2$")
        let_go()
        self.finish("a:0")

    def test_removed(self):
        plan = places(("a", 1), ("b", 1))
        done, let_go = self.box.gate()
        self.start(plan, "--steps", 20, "--until", done, "--progress")
        self.steps("a:0", 1)
        self.server.ask_worker("a:0", short_update(1795217027, 1))
        self.server.wait_asked("a:0", "b:0")
        self.server.answer({**places(("a", 1)), "b:0": (-1,) * 6})
        result = self.jobs["b:0"].wait()
        self.assertEqual(result.status, -signal.SIGABRT)
        self.assertIn("has been removed from elastic job", result.stderr)
        let_go()
        self.finish("a:0")
        self.assertIn("updated skip_sync", self.jobs["a:0"].output())

    def test_removed_only_but_somebody_is_new(self):
        plan = places(("a", 2))
        self.start(plan, "--steps", 2000, "--progress")
        self.steps("a:0", 1)
        self.server.ask_worker("a:0", short_update(1795217027, 1))
        self.server.wait_asked("a:0", "a:1")
        new = places(("a", 2), ("b", 1))
        self.start(new, who=["b:0"])
        self.server.answer(new)
        self.expect_violation("b:0", "skip_sync")

    def test_a_new_rank_0(self):
        self.start(places(("a", 1)), "--steps", 2000, "--progress")
        self.steps("a:0", 20)
        self.server.ask_worker("a:0", short_update(1795217027, 3))
        self.server.wait_asked("a:0")
        new = places(("b", 1), ("a", 1))
        self.start(new, who=["b:0"])
        self.server.answer(new)
        self.expect_violation("a:0", r"rank 0 is new, and the state of step \d+")

    def test_wrong_answers(self):
        for body in (b"0,1,0,1,0", b"", b"0,1,0,1,0,1\n", b"0,1,0,1,0,1,0", b"1,1,0,1,0,1", b"-1,1,0,1,0,1", b"0, 1,0,1,0,1"):
            with self.subTest(body=body):
                self.start(places(("a", 1)), "--steps", 2000, "--progress")
                self.steps("a:0", 1)
                self.server.ask_worker("a:0", short_update(1795217027, 3))
                self.server.wait_asked("a:0")
                self.server.answer({"a:0": body})
                self.expect_violation("a:0", "rank_and_size")
                self.server.registered.clear()

    def test_wrong_frames(self):
        good = short_update(1795217027, 2)
        for body, key, words in ((good, bytes(32), "wrong digest"), (good[:-1], None, "no good pickle"),
                                 (good + b".", None, "no good pickle"), (short_update(1795217027, 4), None, "result 4"),
                                 (ACK, None, "of class .*AckResponse"), (b"\x80\x05N.", None, "does not belong")):
            with self.subTest(words=words):
                self.start(places(("a", 1)), "--steps", 2000)
                self.assertEqual(self.server.ask_worker("a:0", body, key), b"")
                self.expect_violation("a:0", words)
                self.server.registered.clear()

    def test_environment(self):
        for changes, words in (({"HOROVOD_ELASTIC": None}, "HOROVOD_ELASTIC is not set"),
                               ({"http_proxy": "http://192.0.2.1:1", "no_proxy": "10.0.0.1"}, "no_proxy does not name")):
            with self.subTest(words=words):
                environment = {**self.server.environment("a", (0, 1, 0, 1, 0, 1)), **changes}
                self.jobs["a:0"] = Job(self.box, [worker("elastic_horovod")], env=environment)
                self.expect_violation("a:0", words)

    def test_hung_peer(self):
        plan = places(("a", 1), ("b", 1))
        self.start(plan, "--steps", 20, "--hang", "1@5", "--once", self.box.work, env={"HOROVOD_GLOO_TIMEOUT_SECONDS": "1"})
        self.server.wait_asked("a:0")
        self.assertIsNone(self.jobs["b:0"].popen.poll())
        self.server.answer(places(("a", 1)))
        self.finish("a:0")

    def test_never_asks(self):
        plan = places(("a", 1), ("b", 1), ("c", 1))
        self.start(plan, "--steps", 20, "--never-ask", "1@5", "--crash", "2@7", "--once", self.box.work)
        self.server.wait_asked("a:0")
        self.jobs["b:0"].wait_output("^lost")
        self.assertNotIn("b:0", self.server.held)
        self.server.answer(places(("a", 1)))
        self.finish("a:0")

    def test_dies_while_it_rejoins(self):
        plan = places(("a", 1), ("b", 1), ("c", 1))
        self.start(plan, "--steps", 20, "--crash", "2@7", "--crash-rejoin", "1@1", "--once", self.box.work,
                   env={"HOROVOD_GLOO_TIMEOUT_SECONDS": "1"})
        self.server.wait_asked("a:0", "b:0")
        self.server.answer(places(("a", 1), ("b", 1)))
        self.assertEqual(self.jobs["b:0"].wait().status, -signal.SIGKILL)
        result = self.jobs["a:0"].wait()
        self.assertEqual(result.status, -signal.SIGABRT)
        self.assertIn("ABORT: rank 0: timed out waiting for /global/1", result.stderr)

    def test_stamps_and_exits(self):
        plan = places(("a", 1), ("b", 1))
        path = self.box.path("stamps")
        self.start(plan, "--steps", 20, "--exit", "1@5:7", "--once", self.box.work, "--stamp", path)
        self.assertEqual(self.jobs["b:0"].wait().status, 7)
        self.server.wait_asked("a:0")
        self.server.answer(places(("a", 1)))
        self.finish("a:0")
        with open(path, encoding="ascii") as file:
            words = [line.split() for line in file]
        self.assertEqual(sorted(line[0] for line in words), ["answered", "asked"] + 3 * ["first-step"])

    def test_out_of_time(self):
        self.start(places(("a", 1)), "--steps", 100000, "--alarm", 1)
        result = self.jobs["a:0"].wait()
        self.assertEqual(result.status, -signal.SIGABRT)
        self.assertIn("out of time, while it was to", result.stderr)


if __name__ == "__main__":
    rig.main()
