# SPDX-License-Identifier: Apache-2.0
"""Horovod's Gloo controller: the stand-in worker, which is as strict as the real one."""
# ctest busy

import os
import re
import signal
import socket

from rig import Flow, main, nightly, plain, sanitized, tcp_listeners, wait_until, worker

LOOPBACK = ("0100007F", "00000000000000000000000001000000")


class Horovod(Flow):

    def train(self, size, *args, hosts=None, env=None, timeout=120):
        where = ["-np", size] if hosts is None else ["-H", hosts, "--transport", "local"]
        result = self.expect(self.run_job(*where, worker("horovod_worker"), *args, env=env, timeout=timeout), 0)
        total = size * (size - 1) // 2
        sums = re.findall(r"rank (\d+) of (\d+): sum (\d+)", result.stdout)
        self.assertEqual(sorted((int(r), int(n), int(s)) for r, n, s in set(sums)),
                         [(r, size, total) for r in range(size)], result.describe())
        return sums

    def test_sizes(self):
        for size in (1, 2, 3, 8):
            with self.subTest(size=size):
                self.train(size)

    @plain
    def test_32_ranks(self):
        if sanitized():
            self.skipTest("32 ranks are too many under sanitizers")
        self.train(32)

    def test_uneven_hosts(self):
        for hosts, size in (("a:2,b:1", 3), ("a:1,b:3,c:2", 6), ("a:4,b:1,c:1,d:2", 8)):
            with self.subTest(hosts=hosts):
                self.train(size, hosts=hosts)

    def test_init_again(self):
        for size, hosts in ((1, None), (4, None), (3, "a:2,b:1")):
            with self.subTest(size=size, hosts=hosts):
                sums = self.train(size, "--reinit", 3, hosts=hosts)
                self.assertEqual(len(sums), 4 * size)

    def test_by_name_and_with_a_proxy_set(self):
        self.train(2, env={"http_proxy": "http://192.0.2.1:3128", "HTTP_PROXY": "http://192.0.2.1:3128"})

    def test_a_rank_that_comes_late(self):
        # later than the other one would wait for it, once it has begun to connect
        late = "0:1700"  # ms of imports, from the first rank to the last
        self.train(2, "--import-ms", late, env={"HOROVOD_GLOO_TIMEOUT_SECONDS": "1"})

    @plain
    @nightly("takes 100 s; test_a_rank_that_comes_late shows the same")
    def test_64_ranks_that_come_within_90_s(self):
        if sanitized():
            self.skipTest("64 ranks are too many under sanitizers")
        # three times as long as the first would wait for the last; in one rendezvous
        self.train(64, "--import-ms", "1000:90000", timeout=200)

    def test_death_after_init(self):
        result = self.run_job("-np", 4, worker("horovod_worker"), "--exit-rank", 2, "--exit-code", 9)
        self.expect(result, 9)
        self.expect_blame(result, 2, code=9)

    def test_death_before_the_first_address(self):
        result = self.run_job("-np", 3, worker("horovod_worker"), "--die-before-put", 1,
                              env={"HOROVOD_GLOO_TIMEOUT_SECONDS": "60"})
        self.assertGreater(result.status, 0, result.describe())
        self.expect_blame(result, 1)

    def test_early_end_before_the_rendezvous(self):
        # with 0 it is no failure, but the others must not wait for it
        result = self.run_job("--gloo-timeout-seconds", 1, "-np", 1, "true", ":", "-np", 2, worker("horovod_worker"))
        self.assertGreater(result.status, 0, result.describe())
        self.assertIn("timed out waiting for /global/0", result.stderr)

    def test_death_by_kill_while_others_wait(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("hang"), "--until", gate, ":", "-np", 2, worker("horovod_worker"))
        job.wait_output("ready")
        os.kill(job.wait_workers(3)[2].pid, signal.SIGKILL)
        result = self.expect(job.wait(), 137)
        self.expect_blame(result, 2, signal_number=signal.SIGKILL)

    def test_without_a_rendezvous_it_would_be_a_world_of_one(self):
        # never silently: with the Gloo controller the address is always there
        result = self.expect(self.run_job("-np", 2, worker("horovod_worker")), 0)
        self.assertNotIn("size 1", result.stdout)

    def test_the_launcher_listens_on_loopback_only(self):
        gate, let_go = self.box.gate()
        job = self.start("-H", "a:1,b:1", "--transport", "local", worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        found = [pair for one in job.launchers() for pair in one.listeners()]
        self.assertTrue(found, "no rendezvous")
        self.assertEqual([pair for pair in found if pair[0] not in LOOPBACK], [], "reachable from other hosts")
        let_go()
        self.expect(job.wait(), 0)

    def test_what_is_no_http_does_no_harm(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, worker("hello"), "HOROVOD_GLOO_RENDEZVOUS_PORT", ":", "-np", 1, worker("hang"), "--until", gate)
        port = int(job.wait_output(r"HOROVOD_GLOO_RENDEZVOUS_PORT=(\d+)").group(1))
        attacks = [b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\x00" * 1000, b"A" * 200_000,
                   b"PUT /global/0 HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n",
                   b"PUT /global/0 HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                   b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
                   b"DELETE /../../etc/passwd HTTP/1.1\r\nContent-Length: 0\r\n\r\n"]
        for attack in attacks:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
                try:
                    one.sendall(attack)
                    one.shutdown(socket.SHUT_WR)
                    one.settimeout(5)
                    while one.recv(65536):
                        pass
                except OSError:
                    pass  # a reset is an answer too
        self.assertIsNone(job.popen.poll(), job.describe())
        let_go()
        self.expect(job.wait(), 0)
        self.train(2)

    def test_no_listener_is_left(self):
        result = self.expect(self.run_job("-np", 1, worker("hello"), "HOROVOD_GLOO_RENDEZVOUS_PORT"), 0)
        port = int(re.search(r"PORT=(\d+)", result.stdout).group(1))
        # another program may take the same port, but not for long
        wait_until(lambda: port not in [p for _, p, _ in tcp_listeners()], f"nobody listens on {port}")


if __name__ == "__main__":
    main()
