# SPDX-License-Identifier: Apache-2.0
"""Hosts that cannot be reached: one line each with host, stage, cause and remedy; all of them are named."""
# ctest waits
# ctest long
# ctest plain

import os
import re
import socket
import tempfile

from ground import worker
from hosts import Hosts, main, network, ssh_files


class Lines(Hosts):

    def expect_line(self, result, host, stage, cause):
        """Exactly one line is about this host: its stage, the cause, some remedy after it."""
        lines = [line for line in result.said.splitlines() if re.search(rf"(?<![\w.]){re.escape(host)}(?![\w.])", line)]
        self.assertEqual(len(lines), 1, result.describe())
        self.assertRegex(lines[0], rf"{re.escape(host)}\b.*\b{stage}\b.*{cause}", result.describe())

    def fails(self, hosts, *args, status=125):
        result = self.expect(self.ssh_job("-H", hosts, *args, worker("hello")), status)
        self.assertEqual(result.stdout, "", result.describe())
        return result


class Unreached(Lines):

    def test_wrong_key(self):
        self.write_ssh_config(f"IdentityFile {ssh_files.client_key(trusted=False)}\nIdentitiesOnly yes\n", identity=False)
        result = self.fails("node1:1")
        self.expect_line(result, "node1", "auth", r"(denied|accepted).*(authorized_keys|--ssh-identity-file)")

    def test_refused_port(self):
        self.host(1).refuse()
        self.expect_line(self.fails("node1:1"), "node1", "connect", r"[Rr]efused.*sshd")

    def test_dropped_port_ends_with_the_limit(self):
        self.host(1).drop()
        result = self.fails("node1:1,node2:1", "--start-timeout", 3, status=122)
        self.expect_line(result, "node1", "connect", "")

    def test_unresolvable_name(self):
        result = self.fails("no-such-host:1")
        self.expect_line(result, "no-such-host", "resolve", "")

    def test_powered_off_host(self):
        self.host(1).power_off()
        result = self.fails("node1:1", "--start-timeout", 3, status=122)
        self.expect_line(result, "node1", "connect", "")

    def test_a_port_that_is_no_ssh_server(self):
        with socket.create_server((network.LAUNCHER, 0)) as server:
            self.write_ssh_config(f"Host odd\n  HostName {network.LAUNCHER}\n  Port {server.getsockname()[1]}\n")
            job = self.ssh_start("-H", "odd:1", "--transport", "ssh", worker("hello"))
            connection, _ = server.accept()
            connection.sendall(b"220 mail.example.org ESMTP\r\n")
            connection.close()
            result = job.wait()
        self.expect(result, 125)
        self.expect_line(result, "odd", "handshake", "SSH")

    def test_a_port_that_says_nothing(self):
        with socket.create_server((network.LAUNCHER, 0)) as server:
            self.write_ssh_config(f"Host odd\n  HostName {network.LAUNCHER}\n  Port {server.getsockname()[1]}\n")
            result = self.with_time(lambda seconds: self.ssh_job("-H", "odd:1", "--transport", "ssh", "--start-timeout", seconds,
                                                                 worker("hello"), timeout=seconds + 60),
                                    lambda result: "handshake" in result.said)
        self.expect(result, 122)
        self.expect_line(result, "odd", "handshake", "")

    def test_two_bad_hosts_of_four_are_both_listed(self):
        self.host(2).refuse()
        result = self.fails("node1:1,node2:1,nowhere:1,node3:1")
        self.expect_line(result, "node2", "connect", r"[Rr]efused")
        self.expect_line(result, "nowhere", "resolve", "")
        self.expect_not_said(result, r"node[13]\b.*(fail|refus|connect)")
        self.wait_no_workers(1, 3)

    def test_every_host_wrong_in_its_own_way(self):
        self.host(1).refuse()
        self.write_known_hosts(f"node2 {ssh_files.public(ssh_files.server_key('ed25519', 'other'))}\n" +
                               ssh_files.known_hosts_lines("node3"))
        self.write_ssh_config(f"Host node3\n  IdentityFile {ssh_files.client_key(trusted=False)}\n  IdentitiesOnly yes\n"
                              f"Host node1 node2 nowhere\n  IdentityFile {ssh_files.client_key()}\n", identity=False)
        result = self.fails("node1:1,node2:1,node3:1,nowhere:1")
        for host, stage in (("node1", "connect"), ("node2", "host key"), ("node3", "auth"), ("nowhere", "resolve")):
            self.expect_line(result, host, stage, "")

    def test_the_start_limit_names_hosts_and_stages(self):
        self.host(1).drop()
        self.host(2).drop()
        result = self.with_time(lambda seconds: self.ssh_job("-H", "node1:1,node2:1,node3:1", "--start-timeout", seconds,
                                                             worker("hello"), timeout=seconds + 60),
                                lambda result: "node3" not in result.said)
        self.expect(result, 122)
        for host in ("node1", "node2"):
            self.expect_said(result, rf"{host}\b[^\n]*connect")
        self.expect_not_said(result, r"node3\b[^\n]*connect")

    def test_progress_on_a_terminal(self):
        self.host(3).drop()

        def run(seconds):
            terminal = self.terminal(*self.ssh_words(), "-H", "node1:1,node2:1,node3:1", "--start-timeout", seconds, worker("hello"))
            self.assertEqual(terminal.wait(seconds + 60), 122)
            return terminal
        told = "connecting 2/3 hosts, slowest: node3 (connect)"
        terminal = self.with_time(run, lambda terminal: told in terminal.output())
        self.assertIn(told, terminal.output(), terminal.describe())

    def test_no_program_of_that_name_on_the_host(self):
        result = self.ssh_job("-H", "node1:1,node2:1", "/no/such/program")
        self.expect(result, 127)
        self.expect_said(result, r"node[12].*/no/such/program|/no/such/program.*node[12]")
        with tempfile.NamedTemporaryFile(dir="/tmp", prefix="only-here-") as only_here:  # each host has its own /tmp
            os.fchmod(only_here.fileno(), 0o755)
            result = self.expect(self.ssh_job("-H", "node1:1", only_here.name), 127)
            self.expect_said(result, rf"this machine has {only_here.name}, but it must be at the same path on every host")

    def test_a_program_that_one_host_may_not_execute(self):
        self.addCleanup(lambda: [self.host(number).run("rm", "-f", "/run/program") for number in (1, 2)])
        for number, mode in ((1, 755), (2, 644)):
            self.host(number).run("sh", "-c", f"echo '#!/bin/sh' > /run/program; chmod {mode} /run/program")
        for _ in range(8):  # the verdict compares times of two clocks
            result = self.ssh_job("-H", "node1:1,node2:1", "/run/program")
            self.expect_said(self.expect(result, 126), r"rank 1\b.*/run/program: Permission denied.*node2")

    def test_an_agent_that_never_greets_does_not_hold_up_the_end(self):
        path = self.write("mute", "#!/bin/bash\nread -r line\nline=${line#*h_n=}\necho \"${line//\\'/} agent\"\n"
                                  "exec sleep 1000\n", 0o755)
        told = r"node1 \(agent.*node2 \(agent"
        result = self.with_time(lambda seconds: self.run_job("--launch-agent", path, "--start-timeout", seconds, "-H", "node1:1,node2:1",
                                                             worker("hello"), timeout=seconds + 60),
                                lambda result: re.search(told, result.said))
        self.expect(result, 122)
        self.expect_said(result, told)


class Odd(Lines):
    """What a user may name that is not what it should be. All of it fails, and nothing hangs."""

    def test_a_proxy_that_never_stops_talking(self):
        self.write_ssh_config("Host node1\n  ProxyCommand yes\n")
        self.expect_line(self.fails("node1:1,node2:1"), "node1", "handshake", "without end")

    def test_a_proxy_that_never_stops_talking_ssh(self):
        self.write_ssh_config("Host node1\n  ProxyCommand sh -c 'echo SSH-2.0-odd; yes'\n")
        self.expect_line(self.fails("node1:1,node2:1"), "node1", "", "")

    def test_a_proxy_that_ends_at_once_is_told_once(self):
        self.write_ssh_config("Host node1\n  ProxyCommand true\n")
        result = self.fails("node1:1")
        self.expect_line(result, "node1", "handshake", r"tried \d times")
        self.assertEqual(result.said.count("MaxStartups"), 1, result.describe())

    def test_a_key_file_that_is_not_there(self):
        path = self.box.path("no-such-key")
        self.expect_line(self.fails("node1:1", "--ssh-identity-file", path), "node1", "ssh config",
                         rf"{re.escape(path)}.*No such file")


if __name__ == "__main__":
    main()
