# SPDX-License-Identifier: Apache-2.0
"""What the user sees while hosts come up: the progress line, the hosts that are missing, and what hvdrun did
differently than usual."""

import os
import re
import shutil
import socket

from ground import worker
from hosts import Hosts, main, network, ssh_files

ERASE = "\r\x1b[K"
SSH_LIBRARY = "libssh2.so.1"


def shown(terminal):
    """The lines of the terminal with everything that was erased gone."""
    return [line.rsplit(ERASE, 1)[-1] for line in terminal.output().split("\n")]


class Start(Hosts):

    def lines_about(self, result, host):
        return [line for line in result.said.splitlines() if re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])", line)]

    def silent_host(self, name):
        """A port that takes connections and says nothing, as a host of that name in the configuration."""
        server = socket.create_server((network.LAUNCHER, 0))
        self.addCleanup(server.close)
        return f"Host {name}\n  HostName {network.LAUNCHER}\n  Port {server.getsockname()[1]}\n"


class Progress(Start):

    def gated(self, gate):
        """node2 is reached when the gate is open."""
        self.write_ssh_config(f"Host node2\n  ProxyCommand sh -c 'while ! [ -e {gate} ]; do sleep 0.05; done;"
                              f" exec ssh -F {self.box.path('way')} -W %h:%p node1'\n")
        self.write("way", f"Host *\n  User root\n  UserKnownHostsFile {self.known_hosts}\n  LogLevel ERROR\n"
                          f"  IdentityFile {ssh_files.client_key()}\n", 0o600)

    def test_it_comes_and_goes(self):
        gate, let_go = self.box.gate()
        self.gated(gate)
        terminal = self.terminal(*self.ssh_words(), "-H", "node1:1,node2:1,node3:1", worker("hello"))
        terminal.wait_output(r"connecting 2/3 hosts, slowest: node2 \((connect|handshake)\)")
        let_go()
        self.assertEqual(terminal.wait(), 0, terminal.describe())
        terminal.wait_output("hello from rank", count=3)
        lines = shown(terminal)
        self.assertEqual([line for line in lines if "connecting" in line or "preparing" in line], [], terminal.describe())
        self.assertEqual(sum("hello from rank" in line for line in lines), 3, terminal.describe())

    def test_the_stage_is_told(self):
        self.write_ssh_config(self.silent_host("odd"))

        def run(seconds):
            terminal = self.terminal(*self.ssh_words(), "-H", "node1:1,odd:1", "--transport", "ssh", "--start-timeout", seconds,
                                     worker("hello"))
            self.assertEqual(terminal.wait(seconds + 60), 122, terminal.describe())
            return terminal
        told = "connecting 1/2 hosts, slowest: odd (handshake)"
        terminal = self.with_time(run, lambda terminal: told in terminal.output())
        self.assertIn(told, terminal.output(), terminal.describe())
        self.assertEqual([line for line in shown(terminal) if "connecting" in line], [], terminal.describe())

    def test_ctrl_c_takes_it_away(self):
        self.host(2).drop()
        terminal = self.terminal(*self.ssh_words(), "-H", "node1:1,node2:1", worker("hello"))
        terminal.wait_output(r"connecting 1/2 hosts, slowest: node2 \(connect\)")
        terminal.type("\x03")
        self.assertEqual(terminal.wait(), 130, terminal.describe())
        self.assertEqual([line for line in shown(terminal) if "connecting" in line], [], terminal.describe())

    def test_not_where_there_is_no_terminal(self):
        self.host(2).drop()
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", "--start-timeout", 3, worker("hello")), 122)
        self.assertNotIn("connecting", result.stdout + result.stderr)


class Missing(Start):

    def late(self, healthy, *args):
        """A job that does not come up in time, though this host of it does."""
        def run(seconds):
            return self.expect(self.ssh_job(*args, "--start-timeout", seconds, worker("hello"), timeout=seconds + 60), 122)
        return self.with_time(run, lambda result: not self.lines_about(result, healthy))

    def test_hosts_stages_and_ranks(self):
        self.host(2).drop()
        self.write_ssh_config(self.silent_host("odd"))
        result = self.late("node1", "-H", "node1:2,node2:3,odd:1", "--transport", "ssh")
        self.expect_said(result, r"within \d+ s \(--start-timeout[^\n]*node2 \(connect; ranks 2-4\), odd \(handshake; rank 5\)")
        self.assertEqual(self.lines_about(result, "node1"), [], result.describe())

    def test_many_are_all_named(self):
        names = [f"gone{i:02}" for i in range(40)]
        self.rig.alias(2, names)
        self.host(2).drop()
        hosts = ",".join(f"{name}:2" for name in names)
        result = self.late("node1", "-H", f"{hosts},node1:1")
        for number, name in enumerate(names):
            line, = self.lines_about(result, name)
            self.assertRegex(line, rf"{name}: (waiting|connect): .*\(ranks {2 * number}-{2 * number + 1}\)$")
        self.expect_said(result, "40 of 41 hosts")
        self.assertEqual(self.lines_about(result, "node1"), [], result.describe())

    def test_a_known_cause_is_not_forgotten(self):
        self.host(1).refuse()
        self.host(2).drop()
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1,node3:1", "--start-timeout", 4, worker("hello")), 122)  # others have 5 s
        line, = self.lines_about(result, "node1")
        self.assertRegex(line, r"node1: connect: .*refused.*\(rank 0\)$")
        line, = self.lines_about(result, "node2")
        self.assertRegex(line, r"node2: connect: .*\(rank 1\)$")
        late = self.lines_about(result, "node3")  # perhaps on a busy machine, which has no more time than this
        self.expect_said(result, f"{2 + len(late)} of 3 hosts")

    def test_all_that_fail_are_listed(self):
        names = [f"bad{i:02}" for i in range(20)]
        self.rig.alias(2, names)
        self.host(2).refuse()
        hosts = ",".join(f"{name}:1" for name in names)
        result = self.expect(self.ssh_job("-H", f"node1:1,{hosts},no-such-host:1", worker("hello")), 125)
        for name in names:
            line, = self.lines_about(result, name)
            self.assertRegex(line, rf"{name}: connect: .*refused")
        self.assertRegex(self.lines_about(result, "no-such-host")[0], "no-such-host: resolve: ")
        self.expect_said(result, "21 of 22 hosts cannot be reached")
        self.assertEqual(self.lines_about(result, "node1"), [], result.describe())

    def test_all_that_cannot_start_are_listed(self):
        folder = "/tmp/only-here"
        os.mkdir(folder)
        self.addCleanup(os.rmdir, folder)
        result = self.ssh_job("-H", "node1:1,node2:1,node3:1", worker("hello"), cwd=folder)
        self.assertNotEqual(result.status, 0)
        for name in ("node1", "node2", "node3"):
            line, = self.lines_about(result, name)
            self.assertIn(folder, line)


class OtherWays(Start):
    """Hosts that the ssh program has to do, which -v tells with the reason."""

    def expect_by_program(self, result, host, why):
        self.expect(result, 0)
        self.expect_said(result, rf"{host}: hvdrun uses the ssh program for this host: [^\n]*{why}")

    def hello(self, *args, hosts="node1:1"):
        return self.ssh_job("-v", "-H", hosts, *args, worker("hello"))

    def test_only_where_it_has_to(self):
        self.write_ssh_config("Host node2\n  BindAddress 10.77.0.1\n")
        result = self.hello(hosts="node1:1,node2:1")
        self.expect_by_program(result, "node2", "bindaddress")
        self.expect_not_said(result, "node1: hvdrun uses the ssh program")
        self.expect_said(result, r"node1: [^\n]*ed25519")

    def test_nothing_is_told_without_v(self):
        self.write_ssh_config("Host node1\n  BindAddress 10.77.0.1\n")
        self.assertEqual(self.expect(self.ssh_job("-H", "node1:1", worker("hello")), 0).stderr, "")

    def test_a_server_with_an_rsa_host_key_only(self):
        key = ssh_files.server_key("rsa")
        self.host(1).server(2222, f"HostKey {key}")
        self.write_known_hosts(f"[node1]:2222 {ssh_files.public(key)}\n")
        self.expect_by_program(self.hello("--ssh-port", 2222), "node1", "")

    def test_without_libssh2(self):
        path = next(os.path.join(folder, SSH_LIBRARY) for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                                                    "/usr/lib64", "/usr/lib")
                    if os.path.exists(os.path.join(folder, SSH_LIBRARY)))
        network.call("mount", "--bind", "/dev/null", os.path.realpath(path))
        try:
            result = self.hello(hosts="node1:1,node2:1")
        finally:
            network.call("umount", os.path.realpath(path))
        for host in ("node1", "node2"):
            self.expect_by_program(result, host, "libssh2")

    def test_the_key_that_opened_it_is_told(self):
        self.expect_said(self.expect(self.hello(), 0), r"node1: [^\n]*host key[^\n]*SHA256|node1: [^\n]*SHA256[^\n]*host key")


class Asked(Start):
    """How often the programs of OpenSSH are asked."""

    def noting(self, name):
        """A program that notes its arguments and goes on as the real one."""
        real = f"/usr/bin/{name}"
        self.write(f"bin/{name}", f'#!/bin/sh\necho "$*" >> {self.box.path(name + ".log")}\nexec {real} "$@"\n', 0o755)
        return {"PATH": f"{self.box.path('bin')}:{os.environ['PATH']}"}

    def noted(self, name):
        try:
            with open(self.box.path(name + ".log"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def asked(self, text):
        """The hosts about which ssh is asked, with this configuration, in a job on three."""
        self.write_ssh_config(text)
        env = self.noting("ssh")
        self.write("ssh.log", "")
        self.expect(self.ssh_job("-H", "node1:4,node2:4,node3:4,node1:2", worker("hello"), env=env), 0)
        self.assertTrue(all("-G" in line.split() for line in self.noted("ssh")), self.noted("ssh"))
        return sorted(line.split()[-1] for line in self.noted("ssh"))

    def test_the_configuration_once_for_all_hosts(self):
        self.assertEqual(len(self.asked("")), 1)

    def test_the_configuration_once_for_each_host(self):
        self.assertEqual(self.asked("Match host node2\n  ConnectTimeout 20\n"), ["node1", "node2", "node3"])
        self.assertEqual(self.asked("Host node3\n  HostName node3\n"), ["node1", "node2", "node3"])

    def test_nothing_without_a_configuration(self):
        env = self.noting("ssh")
        home = f"{self.rig.top}/home/.ssh"  # the home folder that is in /etc/passwd
        os.makedirs(home, 0o700)
        self.addCleanup(shutil.rmtree, home)
        result = self.run_job("--ssh-identity-file", ssh_files.client_key(), "-H", "node1:1", worker("hello"), env=env)
        self.expect(result, 0)
        self.assertEqual(self.noted("ssh"), [])

    def test_user_port_and_address_of_a_hostfile(self):
        self.host(1).server(2222)
        self.host(1).refuse(22)
        self.write_known_hosts(ssh_files.known_hosts_lines("*") + ssh_files.known_hosts_lines("[*]:2222"))
        path = self.write("hostfile", f"trainer slots=1 user=rigger port=2222 address={self.host(1).address}\n"
                                      "node2 slots=1\n")
        result = self.ssh_job("--hostfile", path, "--wdir", "/tmp", "sh", "-c", 'echo "$(id -un) on $(hostname)"')
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:rigger on node1", "[1]<stdout>:root on node2"])


if __name__ == "__main__":
    main()
