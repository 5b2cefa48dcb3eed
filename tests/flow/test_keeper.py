# SPDX-License-Identifier: Apache-2.0
"""hvdrun-agent on a host whose processes are not below the driver (D6, D12). SIGKILL hits the driver, the agent
or the keeper, the agent is stopped, or the stream ends; after each of these, nothing remains there.

The host is a shell behind a Unix socket, which the test itself starts. The command that leads to it is a small
relay, so only the relay is below hvdrun, as with ssh.
"""
# ctest waits

import os
import signal
import socket
import subprocess
import sys
import threading

from rig import Flow, descendants, is_alive, main, process, processes, wait_until, worker

RELAY = """
import os, select, socket, sys
far = socket.socket(socket.AF_UNIX)
far.connect(sys.argv[1])
to = {0: far.fileno(), far.fileno(): 1}
while far.fileno() in to:
    for fd in select.select(list(to), [], [])[0]:
        data = os.read(fd, 65536)
        if not data:
            if fd == 0:
                far.shutdown(socket.SHUT_WR)
            del to[fd]
        while data:
            data = data[os.write(to[fd], data):]
"""


class Host(threading.Thread):
    """Starts a shell for each connection, with the connection as its stdin and stdout."""

    def __init__(self, box, shell=("/bin/sh",), env=None):
        super().__init__(daemon=True)
        self.box, self.shell, self.shells, self.env = box, shell, [], env or {}
        self.tmp = box.path("host-tmp")
        os.mkdir(self.tmp, 0o700)
        self.path = os.path.join(box.root, "host")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            env = self.box.environment({"TMPDIR": self.tmp, "XDG_RUNTIME_DIR": None, **self.env})
            self.shells.append(subprocess.Popen(self.shell, stdin=connection, stdout=connection, env=env,
                                                start_new_session=True))
            connection.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.join()
        for shell in self.shells:
            shell.poll()

    def keepers(self):
        """What the shells have become; those that have ended are reaped."""
        return [shell.pid for shell in self.shells if shell.poll() is None]

    def agent(self, keeper):
        return next((one.pid for one in processes().values() if one.ppid == keeper), None)

    def processes(self):
        table = processes()
        return [one for keeper in self.keepers() for one in descendants(keeper, table) if one.state != "Z"]

    def litter(self):
        """All that is left in its temporary folder but the image for the next run."""
        return [os.path.join(folder, name) for folder, folders, files in os.walk(self.tmp)
                for name in folders + files
                if name != f"hvdrun-{os.geteuid()}" and not name.startswith(("hvdrun-agent-", "checked-"))]


class Keeper(Flow):

    left_timeout = 20

    def setUp(self):
        super().setUp()
        self.host = Host(self.box)
        self.addCleanup(self.host.close)
        self.relay = self.write("relay.py", RELAY)

    def begin(self, *args):
        job = self.start("--launch-agent", f"{sys.executable} {self.relay} {self.host.path} %h", "-H", "far:3", *args)
        job.wait_output("ready", count=3)
        self.keeper, = self.host.keepers()
        self.agent = self.host.agent(self.keeper)
        self.pids = [one.pid for one in self.host.processes()]
        self.assertGreaterEqual(len(self.pids), 4)
        return job

    def expect_gone(self, job, status=None):
        result = job.wait(60)
        if status is not None:
            self.expect(result, status)
            self.expect_said(result, r"\bfar\b")
        # (a dead one may be a zombie of whoever reaps slowly)
        wait_until(lambda: not any(map(is_alive, self.pids)), "the host's processes to end", 30)
        wait_until(lambda: not self.host.litter(), f"the host's folders to go: {self.host.litter()}", 10)
        self.box.check_nothing_left(self.left_timeout)
        return result

    def test_clean_run_and_the_next_finds_the_image(self):
        for _ in range(2):
            result = self.run_job("--launch-agent", f"{sys.executable} {self.relay} {self.host.path} %h", "-H",
                                  "far:2", worker("hello"))
            self.expect(result, 0)
            self.assertEqual(result.stdout.count("hello from rank"), 2)
        images = [name for _, _, files in os.walk(self.host.tmp) for name in files if not name.startswith("checked-")]
        self.assertEqual(len(images), 1, images)
        self.assertEqual(self.host.litter(), [])

    def test_agent_killed(self):
        job = self.begin("--grace", 1, worker("stubborn"))
        os.kill(self.agent, signal.SIGKILL)
        self.expect_gone(job, 121)

    def test_keeper_killed(self):
        job = self.begin("--grace", 1, worker("stubborn"))
        os.kill(self.keeper, signal.SIGKILL)
        self.expect_gone(job, 121)

    def test_driver_killed(self):
        job = self.begin("--grace", 1, worker("stubborn"))
        job.popen.kill()
        self.expect_gone(job)

    def test_stream_ends(self):
        job = self.begin("--grace", 1, worker("stubborn"))
        relay, = [one.pid for one in descendants(job.popen.pid) if b"relay.py" in one.read("cmdline")]
        os.kill(relay, signal.SIGKILL)
        self.expect_gone(job, 121)

    def test_agent_stopped(self):
        job = self.begin("--grace", 1, "--node-timeout", 2, worker("stubborn"))
        os.kill(self.agent, signal.SIGSTOP)
        self.expect_gone(job, 121)

    def test_keeper_stopped(self):
        gate, let_go = self.box.gate()
        job = self.begin(worker("hang"), "--until", gate)
        os.kill(self.keeper, signal.SIGSTOP)
        let_go()
        self.assertEqual(job.wait(60).status, 0)
        self.expect_gone(job)

    def test_orphans_of_a_killed_agent(self):
        gate, _ = self.box.gate()
        job = self.start("--launch-agent", f"{sys.executable} {self.relay} {self.host.path} %h", "-H", "far:2",
                         worker("orphan"), "--kind", "closed", "--gate", gate)
        job.wait_output(r"left \d+ behind", count=2)
        self.keeper, = self.host.keepers()
        self.pids = [one.pid for one in self.host.processes()]
        self.assertEqual(len(self.pids), 5)
        os.kill(self.host.agent(self.keeper), signal.SIGKILL)
        self.expect_gone(job, 121)


if __name__ == "__main__":
    main()
