# SPDX-License-Identifier: Apache-2.0
"""Every job can be listed, looked at, waited for, signalled and stopped by other commands (docs/jobs.md)."""
# ctest waits

import glob
import json
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import unittest

from hostile import Hostile
from job_commands import JobCommands
from rig import HVDRUN, main, patient, wait_until, worker

TRAP = 'trap "echo got USR1" USR1; trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done'


class Show(JobCommands):

    def test_status(self):
        job, name, let_go = self.hang("-np", 3, "-H", "a:2,b:1", "--transport", "local", count=3)
        shown = self.ask("status").stdout
        self.assertRegex(shown, rf"\A{name}: running, 3 ranks on 2 hosts, up \d+ s\n")
        self.assertRegex(shown, r"(?m)^command: \S*/hang --until ")
        self.assertRegex(shown, r"(?m)^last output: \d+ s ago$")
        self.assertRegex(shown, r"(?m)^a +up +2 +0-1$")
        self.assertRegex(shown, r"(?m)^b +up +1 +2$")
        status = json.loads(self.ask("status", name, "--json").stdout)
        self.assertEqual((status["job"], status["state"], status["size"], status["pid"], status["protocol"]),
                         (name, "running", 3, job.pid, 1))
        self.assertEqual([(one["rank"], one["host"], one["state"]) for one in status["ranks"]],
                         [(0, "a", "running"), (1, "a", "running"), (2, "b", "running")])
        let_go()
        self.expect(job.wait(), 0)

    def test_what_it_waits_for(self):
        """A host that does not answer: the job has a status before it runs."""
        stuck = self.write("stuck", "#!/bin/sh\nsleep 600\n", 0o755)
        job = self.start("-np", 1, "-H", "far:1", "--launch-agent", stuck + " %h", "true")
        wait_until(self.sockets, "the control socket")
        self.assertRegex(self.ask("status").stdout, r"\A\S+: connecting, .*\n(?:.*\n)*waits for: hosts: .*far")
        self.ask_only("stop", "--grace", 1)
        self.expect(job.wait(), 130)

    def test_ps(self):
        first, one, let_first_go = self.hang("-np", 2, count=2)
        second, two = self.begin("-np", 1, "sh", "-c", "echo ready; exec sleep 100")
        table = self.ask("ps").stdout.splitlines()
        self.assertRegex(table[0], r"^job +state +ranks +hosts +age +last output +command$")
        self.assertRegex(table[1], rf"^{one} +running +2 +1 +\d+ s +\d+ s +\S*hang --until ")
        self.assertRegex(table[2], rf"^{two} +running +1 +1 +\d+ s +\d+ s +sh -c echo ready; exec sleep 100$")
        self.assertEqual([entry["job"] for entry in json.loads(self.ask("ps", "--json").stdout)], [one, two])
        first_of, second_of = rf"{one} \([^)]*\)", rf"{two} \(sh -c echo ready; exec sleep 100\)"
        self.refused(f"2 jobs run here; name one of them: ({first_of}, {second_of}|{second_of}, {first_of})", "status")
        self.assertEqual(sorted(self.ask("ps", "-q").lines), sorted([one, two]))
        self.ask("stop", two.rpartition("-")[2])  # the number at its end
        self.expect(second.wait(), 130)
        let_first_go()
        self.expect(first.wait(), 0)
        self.assertEqual(len(self.ask("ps").stdout.splitlines()), 1)
        ended = self.ask("ps", "-a").stdout
        self.assertRegex(ended, rf"(?m)^{one} +ended, status 0 +2 +1 ")
        self.assertRegex(ended, rf"(?m)^{two} +stopped, status 130 +1 +1 ")

    def test_names(self):
        first, one = self.begin("--job-name", "curie", "-np", 1, "sh", "-c", "echo ready; exec sleep 100")
        second, two = self.begin("-J", "noether", "-np", 1, "sh", "-c", "echo ready; exec sleep 100")
        table = self.ask("ps").stdout.splitlines()
        self.assertRegex(table[0], r"^job +name +state +ranks ")
        self.assertRegex(table[1], rf"^{one} +curie +running +1 ")
        self.assertRegex(self.ask("status", "noether").stdout, rf"\A{two} \(noether\): running, ")
        self.assertEqual(sorted(self.ask("ps", "-q", "--names").lines), sorted([one, two, "curie", "noether"]))
        third, three = self.begin("--name", "curie", "-np", 1, "sh", "-c", "echo ready; exec sleep 100")
        self.refused(f"'curie' matches 2 jobs: .*{one}", "status", "curie")
        self.ask("stop", one)
        self.assertRegex(self.ask("status", "curie").stdout, rf"\A{three} \(curie\): running")
        self.ask("stop", "curie")
        self.ask("stop", "noether")
        for job in (first, second, third):
            self.expect(job.wait(), 130)
        self.assertRegex(self.ask("status", "curie").stdout, rf"\A{three} \(curie\): stopped by .* with status 130")
        self.refused(f"job {three} does not run any more", "stop", "curie")
        self.refused("'a b' is not a name for a job: expected at most 64 letters", "--job-name", "a b", "-np", 1, "true", status=2)

    def test_a_long_command_on_a_terminal(self):
        """A job has one line, as wide as the terminal. A pipe gets the whole command."""
        command = ["sh", "-c", "echo ready; exec sleep 100; : " + "x" * 200]
        job, name = self.begin("-np", 1, *command)
        self.assertIn(" ".join(command), self.ask("ps").stdout)
        shown = self.terminal("ps", columns=100)
        self.assertEqual(shown.wait(), 0)
        row, = [line for line in shown.output().splitlines() if line.startswith(name)]
        self.assertRegex(row, r"  sh -c echo .*\.\.\.$")
        self.assertEqual(len(row), 100)
        self.ask_only("stop")
        self.expect(job.wait(), 130)

    def test_the_log_of_the_last_job(self):
        """If no job runs, logs without a job means the one that ended last, as explain does."""
        self.refused("found no running job", "logs")
        for text in ("one", "two"):
            self.expect(self.start("-np", 1, "sh", "-c", f"echo {text}; sleep 0.2; exit 3").wait(), 3)
        shown = self.ask("logs")
        self.assertEqual(shown.stdout, "[0]<stdout>:two\n")
        self.assertRegex(shown.stderr, r"hvdrun: no job runs; this is the output of hvdrun-\S+, which ended last\n")

    def test_how_a_job_ended(self):
        job, name = self.begin("-np", 2, "sh", "-c", "echo ready; sleep 0.3; test $RANK = 0 || "
                               "{ echo cannot read data.csv >&2; exit 3; }; sleep 60", count=2)
        said = self.expect(job.wait(), 3).said
        shown = self.ask("status", name).stdout
        self.assertRegex(shown, rf"\A{name}: ended with status 3, \d+ s ago, after \d+ s\n")
        self.assertIn(re.search(r"hvdrun: rank 1 exited with code 3\n", said)[0], shown)
        self.assertRegex(shown, r"(?s)last lines:\n.*\[1\]<stderr>:cannot read data.csv\n")
        record = json.loads(self.ask("status", name, "--json").stdout)
        self.assertEqual((record["state"], record["status"]), ("ended", 3))
        self.assertEqual([rank["exit_code"] for rank in record["report"]["ranks"] if rank["rank"] == 1], [3])
        self.assertEqual(self.ask("wait", name, status=3).stdout, f"{name} ended with status 3\n")

    def test_a_short_job(self):
        """It ends before it has a socket. How it ended is known all the same."""
        self.expect(self.start("-np", 1, "sh", "-c", "exit 5").wait(), 5)
        entry, = json.loads(self.ask("ps", "-a", "--json").stdout)
        self.assertEqual((entry["state"], entry["status"], entry["command"]), ("ended, status 5", 5, "sh -c exit 5"))
        self.assertIn("ended with status 5", self.ask("status", entry["job"]).stdout)

    def test_lost(self):
        job, name, _ = self.hang("-np", 2, count=2)
        job.signal(signal.SIGKILL)
        job.wait()
        wait_until(lambda: not self.box.strays(), "agents and workers end themselves")
        self.refused("found no running job .*'hvdrun ps -a' lists", "status")
        self.assertRegex(self.ask("ps", "-a").stdout, rf"(?m)^{name} +lost +2 +1 .*hang")
        self.assertIn(": lost: its hvdrun is gone", self.ask("status", name).stdout)
        self.refused(f"job {name} is lost", "wait", name, status=125)
        self.refused(f"job {name} does not run any more", "stop", name)


class Elsewhere(JobCommands, Hostile):

    def test_another_host(self):
        self.refused("found no job 'hvdrun-no-such-host-4242': the id is one of host 'no-such-host', and this is '.*'; run the command there",
                     "status", "hvdrun-no-such-host-4242")

    def test_no_temporary_folder(self):
        for words in (["ps"], ["status"], ["logs", "x"]):
            told = self.ask(*words, status=1, env={"TMPDIR": "/no/such/folder"})
            self.assertEqual((told.stdout, told.stderr),
                             ("", "hvdrun: cannot look for jobs in TMPDIR=/no/such/folder: No such file or directory\n"))

    def test_the_job_of_another_user(self):
        """Root asks by id or path, and gets the same as the user."""
        theirs = self.start_as_stranger("--job-name", "theirs", "-np", 1, "sh", "-c", "echo $HVDRUN_JOB_ID; exec sleep 300")
        name = theirs.wait_output("hvdrun-.*").group()
        path, = wait_until(lambda: glob.glob(os.path.join(self.box.tmp, "hvdrun-*", ".jobs-*", name + ".control")), "the socket")
        self.assertEqual(self.ask("ps", "-q").stdout, "", "not root's own")
        self.assertRegex(self.ask("ps", "--all-users").stdout,
                         r"\Ajob +user +name +state +ranks +hosts +age +last output +command\n"
                         rf"{name} +\S+ +theirs +running +1 +1 .* sh -c .*\n\Z")
        for word in (name, "theirs", path):
            self.assertRegex(self.ask("status", word).stdout, rf"\A{name} \(theirs\): running")
            wait_until(lambda: name in self.ask("logs", word).stdout, "the line in the log")
        attached = self.start("attach", path)
        attached.wait_output(name)
        self.ask("stop", path)
        self.expect(attached.wait(), 130)
        theirs.wait()
        for word in (name, path):
            self.assertIn("was stopped", self.ask("explain", word).stdout)
            self.assertIn(name, self.ask("logs", word).stdout)


class Control(JobCommands):

    def test_which_job_is_stopped(self):
        """A script must name the job; at a terminal, hvdrun says which one it is."""
        job, name = self.begin("-np", 1, "sh", "-c", "echo ready; exec sleep 100")
        for words in (["stop"], ["signal", "USR1"], ["stop", "--grace", 2]):
            self.refused(rf"{words[0]} needs the job unless you are at a terminal; 'hvdrun {words[0]} {name}( USR1)?' is for the one "
                         rf"that runs here \(sh -c echo ready; exec sleep 100, in {self.box.work}\)", *words, status=2)
        self.assertRegex(self.ask("stop", status=1, env={"TMPDIR": self.box.home}).stderr, "found no running job")
        at_terminal = self.terminal("stop")
        at_terminal.wait_output(rf"hvdrun: stop {name} \(sh -c echo ready; exec sleep 100, in {self.box.work}\)")
        self.assertEqual(at_terminal.wait(), 0)
        self.expect(job.wait(), 130)

    def test_stop(self):
        """Nobody sent a signal, and nothing says so."""
        report, events = self.box.path("report"), self.box.path("events")
        job, name = self.begin("-np", 2, "--report", report, "--events", events, "sh", "-c",
                               "trap 'echo got INT; exit 9' INT; " + TRAP, count=2)
        self.assertEqual(self.ask_only("stop").stdout, f"{name} ended with status 130\n")
        result = self.expect(job.wait(), 130)
        self.assertEqual(result.stdout.count("got INT"), 2)
        stopped = rf"stopped by 'hvdrun stop' \(user {pwd.getpwuid(os.geteuid()).pw_name}, \d\d:\d\d:\d\d\)"
        self.expect_said(result, rf"(?m)^hvdrun: {stopped}: the workers have 30 s to exit$")
        self.expect_said(result, rf"(?m)^hvdrun: {stopped}$")
        self.assertRegex(self.ask("ps", "-a").stdout, rf"(?m)^{name} +stopped, status 130 ")
        self.assertRegex(self.ask("status", name).stdout, rf"\A{name}: {stopped} with status 130, ")
        story = self.ask("explain").stdout
        self.assertRegex(story, rf"\A{name} was stopped with status 130, after .* s\nwhat happened first:\n    {stopped}\n")
        self.assertIn("what to do:\n    nothing: the ranks did not fail\n", story)
        with open(report) as file:
            cause = json.load(file)["job"]["cause"]
        self.assertEqual(cause["kind"], "stopped")
        self.assertRegex(cause["text"], stopped)
        with open(events) as file:
            told = {one["event"]: one for one in map(json.loads, file)}
        self.assertRegex(told["stop"]["text"], stopped)
        self.assertNotIn("signal", told)
        self.assertEqual(told["job_end"]["cause"], "stopped")
        for text in (result.said, story, *map(str, told.values())):
            self.assertNotRegex(text, "SIGINT|[Ii]nterrupted|got a signal")

    def test_stop_by_a_program(self):
        """Which does not say who it is."""
        job, name, _ = self.hang("-np", 1)
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(self.sockets()[0])
            one.sendall(b'{"do": "stop", "grace_s": 1}\n')
            self.assertEqual(one.recv(100), b'{"ok":true}\n')
        who = "user root, " if os.geteuid() == 0 else ""
        self.expect_said(self.expect(job.wait(), 130), rf"stopped by a request to the control socket \({who}\d\d:\d\d:\d\d\)")

    def test_stop_with_grace(self):
        job, name = self.begin("-np", 1, "sh", "-c", "trap '' INT; " + TRAP)
        self.assertEqual(self.ask("stop", name, "--grace", "200ms").stdout, f"{name} ended with status 130\n")
        self.expect_said(self.expect(job.wait(), 130), "stopped by .*: the workers have 0.2 s to exit")

    def catches_term(self, pid):
        with open(f"/proc/{pid}/status") as file:
            caught, = re.findall(r"^SigCgt:\t(\w+)$", file.read(), re.M)
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def test_stop_in_a_step_of_slurm(self):
        """Slurm ends the command with the batch script. It still says how the job ended."""
        step = {"SLURM_JOB_ID": "812", "SLURM_NODEID": "0", "SLURMD_NODENAME": "n"}
        for again in False, True:
            gate, let_go = self.box.gate()
            job, name = self.begin("-np", 1, "--scheduler", "none", "sh", "-c",
                                   "trap 'echo got INT' INT; echo ready; until test -e \"$1\"; do sleep 0.05; done", "sh", gate, env=step)
            command = self.start("stop", name, "--slurm-job", "812", env=step)
            job.wait_output("got INT")
            wait_until(lambda one=command: self.catches_term(one.pid), "the command waits for the end of the job")
            command.signal(signal.SIGTERM)
            wait_until(lambda one=command: not self.catches_term(one.pid), "SIGTERM has come")
            if again:  # the second one ends it
                command.signal(signal.SIGTERM)
                self.expect(command.wait(), -signal.SIGTERM)
            let_go()
            if not again:
                self.assertRegex(self.expect(command.wait(), 0).stdout, rf"\A{name} ended with status \d+\n")
            job.wait()
            os.unlink(gate)

    def test_signal(self):
        job, name = self.begin("-np", 3, "sh", "-c", TRAP, count=3)
        self.assertEqual(self.ask_only("signal", "USR1").stdout, "sent USR1\n")
        job.wait_output("got USR1", count=3)
        self.ask("signal", name, "SIGUSR1", "--ranks", "0,2")
        job.wait_output(r"\[0\]<stdout>:got USR1", count=2)
        job.wait_output(r"\[2\]<stdout>:got USR1", count=2)
        self.refused("rank", "signal", name, "USR1", "--ranks", "7")
        self.refused("SIGSTOP stops or continues", "signal", "STOP", status=2)
        self.assertEqual(len(re.findall(r"\[1\]<stdout>:got USR1", job.output())), 1)
        self.ask_only("signal", "TERM", "--ranks", "1")
        self.expect_blame(self.expect(job.wait(), 7), 1, code=7)

    def test_wait(self):
        job, name, let_go = self.hang("-np", 1)
        waiting = [self.start("wait", name) for _ in range(20)]
        self.assertEqual(len(self.ask("ps").stdout.splitlines()), 2)  # they keep nobody out
        let_go()
        for one in waiting:
            self.assertEqual(self.expect(one.wait(), 0).stdout, f"{name} ended with status 0\n")
        self.expect(job.wait(), 0)
        self.refused("found no job 'nosuch'", "wait", "nosuch", status=125)

    def test_the_driver_dies_while_others_wait(self):
        job, name, _ = self.hang("-np", 1)
        waiting = self.start("wait", name)
        self.ask("status")  # most likely it waits by now; if it does not, it finds a lost job
        job.signal(signal.SIGKILL)
        job.wait()
        self.assertIn(f"job {name} is lost", self.expect(waiting.wait(), 125).stderr)

    def test_only_an_elastic_job_changes_its_hosts(self):
        job, _, let_go = self.hang("-np", 1)
        for words in (["drain", "localhost"], ["undrain", "localhost"], ["add", "b:1"]):
            self.refused("this job is not elastic, so its hosts cannot change", *words)
        let_go()
        self.expect(job.wait(), 0)


class Socket(JobCommands):

    def test_modes(self):
        before = os.umask(0)
        try:
            job, name, let_go = self.hang("-np", 1)
        finally:
            os.umask(before)
        for path, mode in ((self.folder(), 0o700), (os.path.dirname(self.folder()), 0o700),
                           (os.path.join(self.folder(), name + ".control"), 0o600),
                           (os.path.join(self.folder(), name + ".json"), 0o600)):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), mode, path)
        let_go()
        self.expect(job.wait(), 0)
        self.assertEqual(self.sockets(), [])
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.folder(), name + ".json")).st_mode), 0o600)

    def test_hostile_clients(self):
        """200 clients that say nothing, nonsense, or too much; that do not read, and that go."""
        job, _, let_go = self.hang("-np", 1)
        path, = self.sockets()
        says = [b"", b"\0\xff\n", b"GET / HTTP/1.1\r\n\r\n", b'{"do":"status"}\n' * 50, b"[" * 100000, b'{"do":"wait"}\nx']
        clients = []
        for number in range(200):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(0.05)
            clients.append(client)
            try:
                client.connect(path)
                client.sendall(says[number % len(says)])
            except OSError:
                pass  # not its turn yet, or it was shown the door
            if number % 3 == 0:
                client.close()
        for client in clients:
            client.close()
        self.assertIn(": running, 1 rank", self.ask("status").stdout)
        let_go()
        self.expect(job.wait(), 0)

    def test_the_folder_goes(self):
        """It costs the record, and not the job."""
        job, name, let_go = self.hang("-np", 1)
        for path in glob.glob(os.path.join(self.folder(), "*")):
            os.unlink(path)
        os.rmdir(self.folder())
        self.refused("found no running job", "status")
        let_go()
        self.expect(job.wait(), 0)
        self.refused(f"found no job '{name}'", "status", name)

    @unittest.skipUnless(os.getuid() == 0, "only root can make a namespace of processes")
    def test_equal_names(self):
        """Two jobs in containers that have the same process id, and so the same id."""
        gate, let_go = self.box.gate()
        jobs = [self.helper("unshare", "--fork", "--pid", "--mount-proc", "--kill-child", HVDRUN, "-np", 1, worker("hang"),
                            "--until", gate, stdout=subprocess.PIPE) for _ in range(2)]
        paths = wait_until(lambda: len(self.sockets()) == 2 and self.sockets(), "two control sockets")
        first, second = sorted(os.path.basename(path).removesuffix(".control") for path in paths)
        self.assertEqual(second, first + ".2")
        for name in (first, second):
            self.assertEqual(json.loads(self.ask("status", name, "--json").stdout)["job"], name)
        self.assertEqual(self.ask("stop", second).stdout, f"{second} ended with status 130\n")
        self.assertEqual([one["job"] for one in json.loads(self.ask("ps", "--json").stdout)], [first])
        let_go()
        self.assertEqual(sorted(job.popen.wait(patient(60)) for job in jobs), [0, 130])

    def test_no_folder(self):
        """It cannot be made: the job runs without."""
        blocked = os.path.join(self.box.tmp, f"hvdrun-{os.getuid()}")
        os.mkdir(blocked, 0o755)
        result = self.start("-v", "-np", 1, "sh", "-c", "sleep 0.2; echo hello").wait()
        os.rmdir(blocked)
        self.expect_said(self.expect(result, 0), "no control socket: .*is not a folder of this user alone")
        self.assertIn("hello", result.stdout)

    def test_suspended(self):
        job, name, let_go = self.hang("-np", 1)
        job.signal(signal.SIGSTOP)
        self.assertRegex(self.ask("ps").stdout, rf"(?m)^{name} +no answer +1 +1 ")
        self.refused("is it suspended", "status")
        job.signal(signal.SIGCONT)
        self.assertIn(": running", self.ask("status").stdout)
        let_go()
        self.expect(job.wait(), 0)


if __name__ == "__main__":
    main()
