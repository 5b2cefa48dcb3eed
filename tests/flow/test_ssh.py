# SPDX-License-Identifier: Apache-2.0
"""Jobs over SSH: the way in (keys, users, ports, jumps, configuration), many hosts at once, shells."""

import os
import re
import shutil
import subprocess

from ground import wait_until, worker
from hosts import Hosts, main, ssh_files

WHO = 'echo "rank $HOROVOD_RANK of $HOROVOD_SIZE on $(hostname) local $HOROVOD_LOCAL_RANK"'


class Ssh(Hosts):

    def who(self, *args, **options):
        """Runs a job whose ranks say where they are; {rank: host name as the host itself says it}."""
        self.result = self.expect(self.ssh_job(*args, "sh", "-c", WHO, **options), 0)
        found = re.findall(r"\[(\d+)\]<stdout>:rank (\d+) of \d+ on (\S+) local \d+\n", self.result.stdout)
        self.assertTrue(all(label == rank for label, rank, _ in found), self.result.describe())
        return {int(rank): host for _, rank, host in found}

    def expect_runs(self, *args, hosts=("node1", "node2"), **options):
        where = ",".join(host if ":" in host else f"{host}:1" for host in hosts)
        self.assertEqual(self.who("-H", where, *args, **options),
                         {rank: re.sub(r"^.*@|:\d+$", "", host) for rank, host in enumerate(hosts)})

    def start_key_agent(self, *keys):
        """An ssh-agent that holds keys; returns its socket."""
        path = self.box.path("agent")
        agent = self.helper("ssh-agent", "-D", "-a", path, stdout=subprocess.DEVNULL)
        own = {"env": {**os.environ, "SSH_AUTH_SOCK": path}, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # its socket is there before it listens
        wait_until(lambda: subprocess.run(["ssh-add", "-l"], check=False, **own).returncode < 2, "the key agent")
        self.addCleanup(agent.popen.wait)
        self.addCleanup(agent.popen.kill)
        for key in keys:
            subprocess.run(["ssh-add", "-q", key], check=True, **own)
        self.agent = agent
        return path

    def end_key_agent(self):
        self.agent.popen.kill()
        self.agent.popen.wait()


class Run(Ssh):

    def test_eight_ranks_on_two_hosts(self):
        found = self.who("-np", 8, "-H", "node1:4,node2:4")
        self.assertEqual(found, {rank: "node1" if rank < 4 else "node2" for rank in range(8)})
        self.assertEqual(self.result.stderr, "")

    def test_worker_program(self):
        result = self.expect(self.ssh_job("-np", 8, "-H", "node1:4,node2:4", worker("hello")), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:hello from rank {rank} of 8" for rank in range(8)])

    def test_local_and_cross_ranks(self):
        names = ["HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"]
        result = self.expect(self.ssh_job("-H", "node1:2,node2:1", worker("hello"), *names), 0)
        for rank, values in enumerate(((0, 2, 0, 2), (1, 2, 0, 1), (0, 1, 1, 2))):
            for name, value in zip(names, values):
                self.assertIn(f"[{rank}]<stdout>:{name}={value}", result.lines, result.describe())

    def test_hostfile(self):
        path = self.write("hostfile", "node1 slots=2\n# none\nroot@node3:1\n")
        self.assertEqual(self.who("--hostfile", path), {0: "node1", 1: "node1", 2: "node3"})

    def test_a_host_of_ours_is_local(self):
        # its address is the launcher's own; no SSH server listens there
        self.assertEqual(self.who("-H", "launcher:1,10.77.0.1:1,node1:1"), {0: "launcher", 1: "launcher", 2: "node1"})

    def test_numeric_address(self):
        self.assertEqual(self.who("-H", f"{self.host(1).address}:1,node2:1"), {0: "node1", 1: "node2"})

    def test_one_connection_per_host(self):
        gate, let_go = self.box.gate()
        job = self.ssh_start("-H", "node1:4,node2:4", worker("hang"), "--until", gate)
        job.wait_output("ready", count=8)
        for number in (1, 2):
            # sshd has a process or two for each connection, the first of them as a child of pid 1
            connections = [one for one in self.host(number).sessions() if one.ppid == self.host(number).init]
            self.assertEqual(len(connections), 1, [str(one) for one in connections])
        let_go()
        self.expect(job.wait(), 0)

    def test_the_ssh_program_does_it_too(self):
        self.expect_runs("--transport", "ssh-cli", "-v")
        self.assertEqual(self.result.said.count("hvdrun uses the ssh program for this host"), 2, self.result.describe())

    def test_driver_on_a_host(self):
        job = self.start_on(0, "-H", "node0:1,node1:1", "sh", "-c", WHO)
        result = self.expect(job.wait(), 0)
        self.assertEqual(sorted(re.findall(r"rank (\d) of 2 on (\S+)", result.stdout)), [("0", "node0"), ("1", "node1")])


class Keys(Ssh):

    def with_key(self, key):
        self.write_ssh_config(f"IdentityFile {key}\nIdentitiesOnly yes\n", identity=False)

    def test_ed25519(self):
        self.with_key(ssh_files.client_key("ed25519"))
        self.expect_runs()

    def test_ecdsa(self):
        self.with_key(ssh_files.client_key("ecdsa"))
        self.expect_runs()

    def test_ecdsa_in_pem_form(self):
        self.with_key(ssh_files.client_key("ecdsa", pem=True))
        self.expect_runs()

    def test_rsa(self):
        self.with_key(ssh_files.client_key("rsa"))
        self.expect_runs()

    def test_rsa_in_pem_form(self):
        self.with_key(ssh_files.client_key("rsa", pem=True))
        self.expect_runs()

    def test_encrypted_key(self):
        key = ssh_files.client_key("ed25519", "open sesame")
        self.with_key(key)
        result = self.expect(self.ssh_job("-H", "node1:1", worker("hello")), 125)
        self.expect_said(result, rf"node1.*auth.*{re.escape(os.path.basename(key))}: it is encrypted: load it .* ssh-add")

    def test_key_agent(self):
        self.write_ssh_config(identity=False)
        socket = self.start_key_agent(ssh_files.client_key("ed25519"))
        self.expect_runs_with_agent(socket)

    def test_key_agent_with_rsa(self):
        self.write_ssh_config(identity=False)
        socket = self.start_key_agent(ssh_files.client_key("rsa"))
        self.expect_runs_with_agent(socket)

    def test_key_agent_of_the_configuration(self):
        socket = self.start_key_agent(ssh_files.client_key("ecdsa"))
        self.write_ssh_config(f"Host node1\n  IdentityAgent {socket}\n", identity=False)
        result = self.ssh_start("-H", "node1:1", "sh", "-c", WHO).wait()
        self.end_key_agent()
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:rank 0 of 1 on node1 local 0"])

    def expect_runs_with_agent(self, socket):
        result = self.ssh_start("-H", "node1:1,node2:1", "sh", "-c", WHO, env={"SSH_AUTH_SOCK": socket}).wait()
        self.end_key_agent()
        self.expect(result, 0)
        self.assertEqual(sorted(re.findall(r"on (\S+) local", result.stdout)), ["node1", "node2"])

    def test_identity_file_option(self):
        self.write_ssh_config(identity=False)
        self.expect_runs("--ssh-identity-file", ssh_files.client_key("ecdsa"))

    def test_a_key_for_each_host(self):
        self.write_ssh_config(identity=False)
        good, bad = ssh_files.client_key("ecdsa"), ssh_files.client_key(trusted=False)
        path = self.write("hosts.ini", f"[defaults]\nidentity = {good}\n[host node1]\n[host node2]\n")
        self.assertEqual(self.who("--hostfile", path, "-i", bad), {0: "node1", 1: "node2"})
        self.assertEqual(self.who("--hostfile", path, "-i", bad, "--transport", "ssh-cli"), {0: "node1", 1: "node2"})
        path = self.write("hosts.ini", f"[host node1]\nidentity = {good}\n[host node2]\nidentity = {bad}\n")
        result = self.expect(self.ssh_job("--hostfile", path, "-i", good, "true"), 125)
        self.expect_said(result, "node2: auth: ")
        self.expect_not_said(result, "node1: ")

    def test_the_right_key_among_others(self):
        self.write_ssh_config(f"IdentityFile {ssh_files.client_key(trusted=False)}\n"
                              f"IdentityFile {ssh_files.client_key('ecdsa')}\nIdentitiesOnly yes\n", identity=False)
        self.expect_runs()


class Way(Ssh):

    def test_user_at_host(self):
        result = self.expect(self.ssh_job("-H", "rigger@node1:1,node2:1", "--wdir", "/tmp", "id", "-un"), 0)
        self.expect_lines(result, ["[0]<stdout>:rigger", "[1]<stdout>:root"])

    def test_ssh_user(self):
        result = self.expect(self.ssh_job("-H", "node1:1,root@node2:1", "--ssh-user", "rigger", "--wdir", "/tmp",
                                          "id", "-un"), 0)
        self.expect_lines(result, ["[0]<stdout>:rigger", "[1]<stdout>:root"])

    def test_ssh_port(self):
        for number in (1, 2):
            self.host(number).server(2222)
            self.host(number).refuse(22)
        self.write_known_hosts(ssh_files.known_hosts_lines("[node1]:2222") +
                               ssh_files.known_hosts_lines("[node2]:2222"))
        self.expect_runs("--ssh-port", 2222)

    def test_port_in_the_configuration(self):
        self.host(1).server(2200)
        self.host(1).refuse(22)
        self.write_known_hosts(ssh_files.known_hosts_lines("[node1]:2200"))
        self.write_ssh_config("Host node1\n  Port 2200\n")
        self.expect_runs(hosts=("node1",))

    def test_host_name_in_the_configuration(self):
        self.write_ssh_config("Host trainer\n  HostName node3\n")
        self.assertEqual(self.who("-H", "trainer:1"), {0: "node3"})

    def test_configuration_in_the_home_folder(self):
        home = f"{self.rig.top}/home/.ssh"
        os.makedirs(home, 0o700)
        self.addCleanup(shutil.rmtree, home)
        shutil.copy(self.ssh_config, f"{home}/config")
        os.chmod(f"{home}/config", 0o600)
        result = self.run_job("-H", "node1:1", worker("hello"), env={"HOME": f"{self.rig.top}/home"})
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:hello from rank 0 of 1"])

    def test_proxy_jump(self):
        # node2 is reached through node1 only
        self.rig.one_way(None, 2)
        self.write_ssh_config("Host node2\n  ProxyJump node1\n")
        self.expect_runs(hosts=("node2",))
        self.expect_runs(hosts=("node1", "node2"))

    def test_proxy_command(self):
        self.rig.one_way(None, 2)
        self.write_ssh_config(f"Host node2\n  ProxyCommand ssh -F {self.ssh_config} -W %h:%p node1\n")
        self.expect_runs(hosts=("node2",))

    def test_a_broken_proxy_command_says_why(self):
        self.write_ssh_config("Host node2\n  ProxyCommand sh -c 'echo the tunnel is shut >&2; exit 3'\n")
        result = self.expect(self.ssh_job("-H", "node2:1", worker("hello")), 125)
        self.expect_said(result, r"node2.*(connect|handshake).*(tunnel is shut|status 3|proxy)")


class Many(Ssh):

    def test_forty_names_on_a_server_that_drops_connections(self):
        # OpenSSH's own default begins to drop at ten that have not logged in yet
        names = [f"n{i:02}" for i in range(40)]
        self.rig.alias(1, names)
        self.host(1).server(2222, "MaxStartups 10:30:100")
        self.write_known_hosts(ssh_files.known_hosts_lines("[n*]:2222"))
        hosts = ",".join(f"{name}:1" for name in names)
        result = self.expect(self.ssh_job("-H", hosts, "--ssh-port", 2222, worker("hello"), timeout=100), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:hello from rank {rank} of 40" for rank in range(40)])

    def test_window(self):
        self.rig.alias(1, ["a1", "a2", "a3", "a4"])
        self.write_known_hosts(ssh_files.known_hosts_lines("*"))
        self.assertEqual(len(self.who("-H", "a1:1,a2:1,a3:1,a4:1", "--ssh-window", 1)), 4)


class Shells(Ssh):
    """What a login shell prints before our first frame is not ours and does no harm."""

    def login_files(self, number, **files):
        for name, text in files.items():
            path = self.host(number).path(f"{self.rig.top}/home/.{name}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.addCleanup(lambda path=path: os.path.exists(path) and os.unlink(path))

    def test_bash_with_a_banner(self):
        self.login_files(1, bashrc="echo '*** Welcome to node1 ***'; echo 'quota: 98 %' >&2; printf 'no newline'\n")
        self.expect_runs()

    def test_a_lot_of_noise(self):
        self.login_files(1, bashrc="yes 'all work and no play' | head -n 300\n")
        self.expect_runs()

    def test_noise_without_end(self):
        self.login_files(1, bashrc="exec yes 'all work and no play'\n")
        result = self.expect(self.ssh_job("-H", "node1:1", worker("hello")), 125)
        self.expect_said(result, r"node1.*start.*all work and no play")

    def test_a_login_that_ends_at_once(self):
        self.login_files(1, bashrc="echo 'This account is closed.'; exit 1\n")
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("hello")), 125)
        self.expect_said(result, r"node1.*start.*This account is closed")

    def shell_job(self, shell):
        """A job of user rigger, whose login shell it is on node1."""
        path = shutil.which(shell)
        if path is None:
            self.skipTest(f"no {shell} on this machine")
        with open("/etc/passwd", encoding="utf-8") as file:
            text = file.read()
        self.addCleanup(self.write_passwd, text)
        self.write_passwd(re.sub(r"(?m)^(rigger:.*:)[^:]*$", rf"\g<1>{path}", text))
        result = self.ssh_job("-H", "rigger@node1:1", "--wdir", "/tmp", worker("hello"))
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:hello from rank 0 of 1"])

    def write_passwd(self, text):
        with open(f"{self.rig.top}/etc/passwd", "w", encoding="utf-8") as file:
            file.write(text)

    def test_csh(self):
        self.shell_job("csh")

    def test_fish(self):
        self.shell_job("fish")

    def test_dash(self):
        self.shell_job("dash")


if __name__ == "__main__":
    main()
