# SPDX-License-Identifier: Apache-2.0
"""What arrives on a host: the agent itself, working directory, environment, and no secret in ps."""

import json
import os
import re

from ground import worker
from hosts import Hosts, main
from rig import parse_self, processes


class Agent(Hosts):
    """hvdrun-agent ships itself and is kept."""

    def kept(self, number):
        """{path: (inode, mode)} of agents that lie on a host."""
        found = {}
        for top in ("/tmp", "/run", f"{self.rig.top}/home"):
            for folder, _, files in os.walk(self.host(number).path(top)):
                for name in files:
                    if name.lstrip(".").startswith("hvdrun-agent-"):
                        status = os.stat(os.path.join(folder, name))
                        path = os.path.join(folder, name)[len(self.host(number).path("")):]
                        found[path] = (status.st_ino, status.st_mode & 0o7777)
        return found

    def hello(self, *args, number=1):
        result = self.ssh_job("-H", f"node{number}:1", *args, worker("hello"))
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:hello from rank 0 of 1"])
        return result

    def stages(self, *hosts):
        """What the launch trace says about the way to the hosts."""
        path = self.box.path("trace.json")
        self.hello("--launch-trace", path)
        with open(path, encoding="utf-8") as file:
            return json.dumps(json.load(file))

    def test_it_is_sent_once_and_found_again(self):
        self.host(1).forget_agent()
        self.hello()
        first = self.kept(1)
        self.assertEqual([mode for _, mode in first.values()], [0o700], first)
        self.hello()
        self.assertEqual(self.kept(1), first)

    def test_the_trace_shows_whether_it_was_sent(self):
        self.host(1).forget_agent()
        self.assertIn("send agent", self.stages())
        self.assertNotIn("send agent", self.stages())

    def test_a_damaged_one_is_replaced(self):
        self.hello()
        (path, before), = self.kept(1).items()
        for damage in (f"printf x | dd of={path} bs=1 seek=5000 conv=notrunc", f": > {path}", f"chmod 600 {path}"):
            with self.subTest(damage=damage):
                self.host(1).run("sh", "-c", damage)
                self.hello()
                self.assertEqual([mode for _, mode in self.kept(1).values()], [0o700])

    def test_one_that_others_may_write_is_not_trusted(self):
        self.host(1).forget_agent()
        self.host(1).run("sh", "-c", "mkdir -m 777 /tmp/hvdrun-0; chown 4242 /tmp/hvdrun-0")
        self.hello()
        self.assertEqual([path for path in self.kept(1) if path.startswith("/tmp/hvdrun-0/")], [])
        self.host(1).run("rm", "-rf", "/tmp/hvdrun-0")

    def test_temporary_folder_without_execution(self):
        self.host(1).forget_agent()
        self.host(1).mount_tmp("noexec,mode=1777")
        self.hello()
        self.assertTrue(all(path.startswith(f"{self.rig.top}/home/.cache/hvdrun/") for path in self.kept(1)), self.kept(1))

    def test_full_temporary_folder(self):
        self.host(1).forget_agent()
        self.host(1).fill_tmp()
        self.hello()
        self.assertTrue(all(path.startswith(f"{self.rig.top}/home/.cache/hvdrun/") for path in self.kept(1)), self.kept(1))

    def test_no_place_at_all_is_an_error_that_names_the_places(self):
        host = self.host(1)
        host.forget_agent()
        host.mount_tmp("noexec,mode=1777")
        host.run("mount", "-t", "tmpfs", "-o", "noexec,mode=700", "tmpfs", f"{self.rig.top}/home")
        result = self.ssh_job("-H", "node1:1", worker("hello"))
        host.run("umount", f"{self.rig.top}/home")
        self.expect(result, 125)
        self.expect_said(result, r"node1\b.*/tmp.*\.cache/hvdrun")

    def test_twelve_hosts_on_one_home_do_not_race(self):
        self.rig.alias(1, [f"h{i:02}" for i in range(12)])
        self.write_known_hosts(re.sub(r"(?m)^node1,\S+", "h*", self.read_known_hosts()))
        for round_ in range(2):
            with self.subTest(round=round_):
                self.host(1).forget_agent()
                result = self.ssh_job("-H", ",".join(f"h{i:02}:1" for i in range(12)), worker("hello"))
                self.expect(result, 0)
                self.assertEqual(len(self.kept(1)), 1, self.kept(1))

    def test_another_architecture_is_refused_before_anything_is_sent(self):
        self.host(1).forget_agent()
        # a uname of its own stands first in the PATH of the login shell
        folder = f"{self.rig.top}/home/bin"
        self.host(1).run("sh", "-c", f"mkdir {folder}; printf '#!/bin/sh\\ncase $1 in -m) echo sparc64;; *) exec /bin/uname"
                                     f" \"$@\";; esac\\n' > {folder}/uname; chmod 755 {folder}/uname;"
                                     f" echo 'PATH={folder}:$PATH' > {self.rig.top}/home/.bashrc")
        result = self.ssh_job("-H", "node1:1", worker("hello"))
        self.host(1).run("rm", "-rf", folder, f"{self.rig.top}/home/.bashrc")
        self.expect(result, 125)
        self.expect_said(result, r"node1\b.*sparc64")
        self.assertEqual(self.kept(1), {})


class Directory(Hosts):

    def test_the_same_path(self):
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("self")), 0)
        for rank in (0, 1):
            self.assertEqual(parse_self(result.stdout, rank)["cwd"], self.box.work)

    def test_missing_on_the_host(self):
        folder = "/tmp/only-here"
        os.mkdir(folder)
        self.addCleanup(os.rmdir, folder)
        self.host(1).run("mkdir", folder)
        result = self.ssh_job("-H", "node1:1,node2:1", worker("hello"), cwd=folder)
        self.host(1).run("rmdir", folder)
        self.assertNotEqual(result.status, 0)
        self.expect_said(result, rf"node2\b[^\n]*{folder}|{folder}[^\n]*node2\b")
        self.expect_said(result, "--wdir")
        self.expect_not_said(result, r"node1\b[^\n]*only-here")

    def test_wdir(self):
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", "--wdir", "/var", worker("self")), 0)
        self.assertEqual({parse_self(result.stdout, rank)["cwd"] for rank in (0, 1)}, {"/var"})

    def test_arguments_arrive_byte_for_byte(self):
        odd = ["", " ", "a b", "'", '"', "$HOME", "`id`", "\\", "a\nb", "*", "\u00e9\U0001f600", "--", "%h", "\t"]
        result = self.expect(self.ssh_job("-H", "node1:1", worker("self"), *odd), 0)
        found = parse_self(result.stdout, 0)
        self.assertEqual([found[f"argv.{i + 1}"] for i in range(len(odd))], [word.encode().hex() for word in odd])


class Environment(Hosts):

    def test_it_reaches_the_workers_byte_for_byte(self):
        env = {"MINE": "a b'c\"$d`e\\f", "EMPTY": "", "LONG": "x" * 100_000, "PYTHONPATH": "/some/where"}
        result = self.ssh_job("-H", "node1:1", "--horovod", "none", worker("hello"), *env, env=env)
        self.expect(result, 0)
        for name, value in env.items():
            self.assertIn(f"[0]<stdout>:{name}={value}\n", result.stdout)

    def test_what_belongs_to_the_drivers_host_stays_there(self):
        local = {"TMPDIR": None, "XDG_RUNTIME_DIR": None, "DISPLAY": ":7", "SSH_CONNECTION": "1 2 3 4",
                 "SSH_TTY": "/dev/pts/99", "HOSTNAME": "elsewhere", "OLDPWD": "/old", "CUDA_VISIBLE_DEVICES": "3"}
        values = {"TMPDIR": self.box.tmp, "XDG_RUNTIME_DIR": self.box.run,
                  **{name: value for name, value in local.items() if value is not None}}
        result = self.ssh_job("-H", "node1:1", worker("hello"), *local, env=values)
        self.expect(result, 0)
        for name, value in values.items():
            self.assertNotIn(f"{name}={value}\n", result.stdout)

    def test_x_sends_it_all_the_same(self):
        result = self.expect(self.ssh_job("-H", "node1:1", "-x", "DISPLAY=:9", worker("hello"), "DISPLAY"), 0)
        self.assertIn("[0]<stdout>:DISPLAY=:9", result.lines)

    def test_no_secret_in_ps_on_either_end(self):
        for transport in ("ssh", "ssh-cli"):
            with self.subTest(transport=transport):
                self.look_for_secrets(transport)

    def look_for_secrets(self, transport):
        secrets = {"in the environment": "hunter2-env", "by -x": "hunter2-x", "as argument": "hunter2-arg"}
        gate, let_go = self.box.gate(f"gate-{transport}")
        script = 'echo ready; while ! [ -e "$GATE" ]; do sleep 0.05; done'
        self.host(1).forget_agent()  # the whole way in, sending included
        job = self.ssh_start("--transport", transport, "-H", "node1:1,node2:1", "-x", "TOKEN_X", "sh", "-c", script, "sh",
                             secrets["as argument"],
                             env={"TOKEN": secrets["in the environment"], "TOKEN_X": secrets["by -x"], "GATE": gate})
        seen = {}
        while job.output().count("ready") < 2:
            self.assertIsNone(job.popen.poll(), job.describe())
            self.collect(seen)
        for _ in range(5):
            self.collect(seen)
        let_go()
        self.expect(job.wait(), 0)
        shells = [line for line in seen.values() if script.encode() in line]
        self.assertTrue(any(secrets["as argument"].encode() in line for line in shells), "the workers were not looked at")
        for what, secret in secrets.items():
            shown = [line for line in seen.values() if secret.encode() in line]
            if what == "as argument":  # the program's own arguments are its own affair, the driver's the user's
                shown = [line for line in shown if script.encode() not in line]
            self.assertEqual(shown, [], f"the secret {what} shows")

    @staticmethod
    def collect(seen):
        for one in processes().values():  # those of all hosts too
            line = one.read("cmdline")
            if line:
                seen[one.pid, line] = line

    def test_secrets_are_in_no_log(self):
        result = self.ssh_job("-v", "-v", "-H", "node1:1", worker("hello"), env={"TOKEN": "hunter2-env"})
        self.assertNotIn("hunter2", self.expect(result, 0).stderr)


if __name__ == "__main__":
    main()
