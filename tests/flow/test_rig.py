# SPDX-License-Identifier: Apache-2.0
"""The rig itself: its hosts behave as hosts, each fault has its effect, and the checks notice what remains.

These tests run only plain programs, and not hvdrun. The other tests on hosts depend on what they show.
"""
# ctest harness
# ctest plain

import os
import shutil
import signal
import socket
import subprocess
import time

from ground import mpi_worker, patient, wait_until, worker
from hosts import Hosts, freeze, main, network, ssh_files, thaw


class Kit(Hosts):

    def answer(self, number):
        """How ssh fares with a host: its status and what it said."""
        status, out, err = self.plain_ssh(f"node{number}", "hostname")
        return status, (out + err).strip()

    def connect(self, number, timeout=1, port=22):
        """What a TCP connection to the host comes to."""
        try:
            with socket.create_connection((network.address(number), port), timeout):
                return "connected"
        except ConnectionRefusedError:
            return "refused"
        except OSError:
            return "silence"

    def hears(self, source, target):
        """Whether one host gets an answer from another."""
        text = self.host(source).run("timeout", "1", "bash", "-c", f"exec 3<>/dev/tcp/{network.address(target)}/22 && head -c 4 <&3",
                                     check=False, timeout=5)
        return text == "SSH-"

    def pipe(self, number, *command):
        """A command on a host through ssh, whose end can be watched."""
        return subprocess.Popen(["ssh", "-F", self.ssh_config, "-o", "BatchMode=yes", f"node{number}", *command],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Worlds(Kit):

    def test_every_host_answers_with_its_own_name(self):
        for number in range(self.count):
            self.assertEqual(self.answer(number), (0, f"node{number}"))
            self.assertEqual(self.host(number).run("cat", "/etc/hostname"), f"node{number}\n")

    def test_hosts_reach_each_other(self):
        self.assertTrue(self.hears(1, 2) and self.hears(2, 1) and self.hears(0, 4))

    def test_no_route_leads_out(self):
        for place in (("ip", "route"), self.host(1).enter(["ip", "route"])):
            routes = subprocess.run(place, capture_output=True, text=True, check=True).stdout
            self.assertNotIn("default", routes)
            self.assertEqual([line.split()[0] for line in routes.splitlines()], ["10.77.0.0/16"])

    def test_folders_are_private(self):
        for top in ("/tmp", "/run", "/dev/shm", f"{self.rig.top}/home"):
            self.host(1).run("touch", f"{top}/mine")
            self.assertEqual(self.host(2).run("ls", top).count("mine"), 0, top)
            self.assertFalse(os.path.exists(f"{top}/mine"), top)
            self.host(1).run("rm", f"{top}/mine")

    def test_processes_and_shared_memory_are_private(self):
        self.assertEqual(self.host(1).run("sh", "-c", "echo /proc/[0-9]*/exe; readlink /proc/1/exe").split()[-1],
                         "/usr/sbin/sshd")
        self.assertEqual(self.host(1).run("hostname"), "node1\n")
        spaces = {os.readlink(f"/proc/{self.host(n).init}/ns/{kind}") for n in range(self.count)
                  for kind in ("net", "mnt", "uts", "ipc", "pid")}
        self.assertEqual(len(spaces), 5 * self.count)

    def test_build_and_working_folder_are_at_the_same_path(self):
        self.write("seen", "by all")
        for number in range(self.count):
            self.assertEqual(self.host(number).run("cat", self.box.path("seen")), "by all")
            self.assertIn("hello from rank", self.host(number).run(worker("hello")))

    def test_no_key_or_configuration_of_the_machine_is_seen(self):
        self.assertEqual(os.path.expanduser("~root"), f"{self.rig.top}/home")
        self.assertEqual(os.listdir(f"{self.rig.top}/home"), [])

    def test_orphans_are_reaped(self):
        self.plain_ssh("node1", "sh -c 'sleep 0.2 & exit 0' </dev/null >/dev/null 2>&1")
        wait_until(lambda: self.host(1).left() == [], "node1 is empty again")


class Checks(Kit):
    """The nothing-left check of hosts is not blind."""

    def test_a_process_is_seen_and_removed(self):
        self.plain_ssh("node2", "setsid sleep 1000 </dev/null >/dev/null 2>&1 &")
        with self.assertRaisesRegex(AssertionError, r"node2: process left: .*sleep 1000"):
            self.check_hosts(timeout=0.5)
        self.rig.restore()
        self.check_hosts(timeout=2)

    def test_files_are_seen_and_removed(self):
        self.host(1).run("touch", "/tmp/left", "/dev/shm/left")
        with self.assertRaisesRegex(AssertionError, r"/tmp/left.*/dev/shm/left"):
            self.check_hosts(timeout=0.5)
        self.rig.restore()
        self.check_hosts(timeout=2)

    def test_a_kept_agent_is_no_litter(self):
        self.host(1).run("sh", "-c", "mkdir -m 700 /tmp/hvdrun-0; touch /tmp/hvdrun-0/hvdrun-agent-0.1.0-abc")
        self.assertEqual(self.host(1).left(), [])
        self.host(1).run("touch", "/tmp/hvdrun-0/.hvdrun-agent-0.1.0-abc.x")
        self.assertEqual(len(self.host(1).left()), 1)
        self.host(1).forget_agent()


class Faults(Kit):

    def test_crash_is_seen_at_once(self):
        pipe = self.pipe(1, "sleep 1000")
        wait_until(lambda: any("sleep" in one.comm for one in self.host(1).processes()), "the command runs")
        self.host(1).crash()
        self.assertEqual(pipe.wait(patient(5)), 255)
        self.assertEqual(self.connect(1), "refused")
        pipe.communicate()

    def test_power_cut_is_silence_and_power_on_is_a_new_boot(self):
        pipe = self.pipe(1, "sleep 1000")
        wait_until(lambda: any("sleep" in one.comm for one in self.host(1).processes()), "the command runs")
        before = self.host(1).init
        self.host(1).power_off()
        self.assertEqual(self.connect(1), "silence")
        self.assertIsNone(pipe.poll(), "ssh has noticed")
        pipe.kill()
        pipe.communicate()
        self.host(1).power_on()
        self.assertEqual(self.answer(1), (0, "node1"))
        self.assertNotEqual(self.host(1).init, before)

    def test_cut_and_heal(self):
        pipe = self.pipe(1, "cat")
        pipe.stdin.write(b"a\n")
        pipe.stdin.flush()
        self.assertEqual(pipe.stdout.readline(), b"a\n")
        self.host(1).cut()
        self.assertEqual(self.connect(1), "silence")
        self.assertTrue(any(one.comm == "cat" for one in self.host(1).processes()), "it does not live on")
        self.host(1).heal()
        pipe.stdin.write(b"b\n")
        pipe.stdin.flush()
        self.assertEqual(pipe.stdout.readline(), b"b\n")
        self.assertEqual(pipe.communicate()[0], b"")

    def test_one_way_partition(self):
        self.rig.one_way(1, 2)
        self.assertEqual([self.hears(1, 2), self.hears(1, 3), self.hears(3, 2)], [False, True, True])
        self.rig.one_way(None, 3)
        self.assertEqual([self.connect(3), self.connect(2)], ["silence", "connected"])

    def test_refused_and_dropped_port(self):
        self.host(1).refuse()
        self.host(2).drop()
        self.assertEqual([self.connect(n) for n in (1, 2, 3)], ["refused", "silence", "connected"])

    def test_loss(self):
        self.rig.loss(20, 1)
        ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ours.bind((network.LAUNCHER, 0))
        ours.settimeout(patient(2))
        lines = "\n".join(f"printf x > /dev/udp/{network.LAUNCHER}/{ours.getsockname()[1]}" for _ in range(400))
        self.host(1).run("bash", "-c", lines)
        came = 0
        try:
            while came < 400:
                ours.recv(16)
                came += 1
                ours.settimeout(0.3)
        except TimeoutError:
            pass
        ours.close()
        self.assertTrue(200 < came < 385, f"{came} of 400 came")

    def test_slow_link(self):
        def seconds():
            began = time.monotonic()
            self.assertEqual(len(self.plain_ssh("node1", "head -c 1000000 /dev/zero")[1]), 1000000)
            return time.monotonic() - began
        fast = seconds()
        self.host(1).slow("4mbit")  # 2 s for a megabyte
        self.assertGreater(seconds(), fast + 1)

    def test_a_frozen_process_is_silent_and_goes_on(self):
        pipe = self.pipe(1, "cat")
        cat = wait_until(lambda: [one for one in self.host(1).processes() if one.comm == "cat"], "cat runs")[0]
        freeze(cat)
        pipe.stdin.write(b"a\n")
        pipe.stdin.flush()
        os.set_blocking(pipe.stdout.fileno(), False)
        time.sleep(0.3)
        self.assertIsNone(pipe.stdout.read())
        thaw(cat)
        os.set_blocking(pipe.stdout.fileno(), True)
        self.assertEqual(pipe.communicate()[0], b"a\n")

    def test_temporary_folder_noexec_or_full(self):
        self.host(1).mount_tmp("noexec,mode=1777")
        self.host(1).run("cp", "/bin/true", "/tmp/true")
        self.assertNotEqual(self.plain_ssh("node1", "/tmp/true")[0], 0)
        self.host(1).run("rm", "/tmp/true")
        self.host(2).fill_tmp()
        self.assertIn("No space left", self.plain_ssh("node2", "echo x > /tmp/x")[2])
        self.host(2).run("rm", "-f", "/tmp/x")
        self.assertIn("hello from rank", self.host(2).run(worker("hello")))

    def test_all_is_healed_afterwards(self):
        self.host(0).crash()
        self.host(1).power_off()
        self.host(2).cut()
        self.host(3).refuse()
        self.rig.one_way(None, 4)
        self.rig.restore()
        self.assertEqual([self.answer(n) for n in range(5)], [(0, f"node{n}") for n in range(5)])


class Servers(Kit):

    def test_keys(self):
        for kind, passphrase in (("ed25519", ""), ("ecdsa", ""), ("rsa", ""), ("ed25519", "secret")):
            with self.subTest(kind=kind, passphrase=passphrase):
                key = ssh_files.client_key(kind, passphrase)
                self.write_ssh_config(f"IdentityFile {key}\nIdentitiesOnly yes", identity=False)
                self.assertEqual(self.answer(1)[0], 255 if passphrase else 0)
        self.write_ssh_config(f"IdentityFile {ssh_files.client_key(trusted=False)}\nIdentitiesOnly yes", identity=False)
        self.assertRegex(self.answer(1)[1], "Permission denied")

    def test_a_further_server_with_another_key(self):
        key = ssh_files.server_key("ed25519", "other")
        self.host(1).server(2222, f"HostKey {key}")
        self.write_ssh_config("Host node1\n  Port 2222\n")
        self.assertRegex(self.plain_ssh("node1", "true")[2], "Host key verification failed")
        self.write_known_hosts(f"[node1]:2222 {ssh_files.public(key)}\n")
        self.assertEqual(self.plain_ssh("node1", "true")[0], 0)

    def test_further_names(self):
        self.rig.alias(1, ["twin-a", "twin-b"])
        self.write_known_hosts(ssh_files.known_hosts_lines("twin-*"))
        self.assertEqual(self.plain_ssh("twin-b", "hostname")[:2], (0, "node1\n"))

    def test_another_user(self):
        self.assertEqual(self.plain_ssh("rigger@node1", "id -un")[:2], (0, "rigger\n"))


class Mpi(Kit):
    """That MPI programs run over these hosts without us: what the launcher's tests may ask for."""

    def test_open_mpi_with_its_own_launcher(self):
        program = mpi_worker("mpi_hello", "openmpi")
        done = subprocess.run(
            ["mpirun.openmpi", "--mca", "plm_rsh_agent", f"ssh -F {self.ssh_config}", "--mca", "mpi_yield_when_idle", "1",
             "--host", "node1:2,node2:2", program], env=self.box.environment(), capture_output=True, text=True,
            check=False, timeout=patient(60), cwd=self.box.work)
        self.assertEqual((done.returncode, done.stdout.count(" of 4 sum 6")), (0, 4), done)

    def test_mpich_with_its_own_launcher(self):
        program = mpi_worker("mpi_hello", "mpich")
        script = self.write("ssh", f'#!/bin/sh\nexec ssh -F {self.ssh_config} "$@"\n', 0o755)
        # Debian's MPICH may spin in MPI_Finalize between hosts, even here: what the ranks say is enough
        done = subprocess.run(
            ["timeout", "-k", "2", "15", "mpirun.mpich", "-launcher", "ssh", "-launcher-exec", script, "-hosts", "node1:2,node2:2", program],
            env=self.box.environment(), capture_output=True, text=True, check=False, timeout=patient(60),
            cwd=self.box.work)
        self.assertIn(done.returncode, (0, 124), done)
        self.assertEqual(done.stdout.count(" of 4 sum 6"), 4, done)


class Box(Kit):

    def test_kill_of_the_outer_process_ends_all(self):
        """A box in this box: its outer process gets SIGKILL, and every process in it is gone."""
        box = os.path.join(os.path.dirname(network.__file__), "box")
        mark = self.box.path("inner")
        outer = subprocess.Popen([box, "sh", "-c", f"setsid sleep 4321 & setsid unshare --fork --pid sleep 4321 & "
                                                   f"sleep 0.2; touch {mark}; wait"],
                                 env={**os.environ, "HVDRUN_RIG_KEEP": ""}, cwd="/")
        def sleepers():
            listing = subprocess.run(["pgrep", "-fx", "sleep 4321"], capture_output=True, text=True, check=False)
            return listing.stdout.split()
        wait_until(lambda: len(sleepers()) == 2, "two processes in the inner box")
        os.kill(outer.pid, signal.SIGKILL)
        outer.wait()
        wait_until(lambda: not sleepers(), "they are gone")

    def test_skips_with_a_line_where_it_may_not(self):
        """Without root the file ends with status 77 and says why; ctest shows it as skipped."""
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            self.skipTest("no setpriv on this machine")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HVDRUN_RIG")}
        done = subprocess.run([setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3",
                               "-B", os.path.abspath(__file__)], env=environment, capture_output=True, text=True,
                              check=False, timeout=patient(20), cwd="/")
        self.assertEqual((done.returncode, done.stdout), (77, "skipped: many hosts on one machine need root\n"), done)


if __name__ == "__main__":
    main()
