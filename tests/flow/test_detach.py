# SPDX-License-Identifier: Apache-2.0
"""Jobs without a terminal: --detach, logs, attach, --on-hangup (docs/jobs.md)."""
# ctest waits

import glob
import json
import os
import re
import resource
import shutil
import signal

from hostile import Hostile
from job_commands import JobCommands
from rig import main, patient, wait_until, worker

# Less than what `attach` shows of the past, so that it does not matter how late that begins.
COUNT = 'for i in 1 2 3 4 5; do echo line $i; done; while [ ! -e "$0" ]; do sleep 0.2; done; ' \
        'for i in 6 7 8; do echo line $i; done; echo last'


class Detach(JobCommands):

    def detach(self, *args):
        """A detached job; returns its id."""
        result = self.ask("--detach", *args)
        self.assertRegex(result.stdout, r"\Ahvdrun-\S+-\d+\n\Z")
        self.assertEqual(result.stderr, "")
        return result.stdout.strip()

    def hang(self, *args):
        gate, let_go = self.box.gate()
        return self.detach(*args, worker("hang"), "--until", gate), let_go


class Start(Detach, Hostile):

    def test_when_all_ranks_run(self):
        name, let_go = self.hang("-np", 3)
        self.assertRegex(self.ask("status").stdout, rf"\A{name}: running, 3 ranks on 1 host")
        self.assertEqual(self.ask("logs").stdout.count("ready"), 3)
        let_go()
        self.ask("wait", name)

    def test_run_is_a_word_too(self):
        result = self.ask("run", "--detach", "-np", 1, "sh", "-c", "exit 4")
        self.ask("wait", result.stdout.strip(), status=4)
        self.expect_lines(self.run_job("run", "-np", 1, "echo", "hello"), ["[0]<stdout>:hello"])

    def test_errors_of_the_start(self):
        """They come as if the job were not detached."""
        result = self.ask("--detach", "-np", 1, "nosuchprogram", status=127)
        self.assertEqual(result.stdout, "")
        self.assertIn("'nosuchprogram' was not found in PATH", result.stderr)
        self.assertIn("cannot be combined with --pty", self.ask("--detach", "--pty", 0, "-np", 1, "true", status=2).stderr)
        self.assertIn("needs a log", self.ask("--detach", "--log-size", 0, "-np", 1, "true", status=2).stderr)
        self.assertIn("hvdrun check", self.ask("check", "--detach", status=2).stderr)

    def test_no_folder(self):
        """Nobody could reach the job, so it ends."""
        blocked = os.path.join(self.box.tmp, f"hvdrun-{os.getuid()}")
        os.mkdir(blocked, 0o755)
        result = self.ask("--detach", "-np", 1, "sleep", 100, status=125)
        os.rmdir(blocked)
        self.assertIn("is not a folder of this user alone", result.stderr)

    def test_a_full_disk(self):
        """Nobody could read a log or a record, so no rank starts."""
        script, folder = self.small_folder()
        job = self.start_in_place(f"{script} && (head -c 1000000 /dev/zero >{folder}/fill; true) 2>/dev/null", "--detach", "-np", 1,
                                  "sh", "-c", "touch ran", env={"TMPDIR": folder})
        result = self.expect(job.wait(), 125)
        self.assertRegex(result.stderr, r"\Ahvdrun: --detach needs a folder for the log and the record of the job \(TMPDIR sets it\): "
                         r"[^\n]*No space left on device[^\n]*\n\Z")
        self.assertFalse(os.path.exists(self.box.path("ran")))

    def test_interrupted_start(self):
        """A host that does not answer: Ctrl-C at the command ends the job that starts."""
        stuck = self.write("stuck", "#!/bin/sh\nsleep 600\n", 0o755)
        job = self.start("--detach", "-np", 1, "-H", "far:1", "--launch-agent", stuck + " %h", "true")
        wait_until(lambda: glob.glob(os.path.join(self.folder(), "*.control")), "the control socket")
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)

    def test_killed_start(self):
        """Nobody would learn the id of the job, so it ends."""
        stuck = self.write("stuck", "#!/bin/sh\nsleep 600\n", 0o755)
        job = self.start("--detach", "-np", 1, "-H", "far:1", "--launch-agent", stuck + " %h", "true")
        wait_until(lambda: glob.glob(os.path.join(self.folder(), "*.control")), "the control socket")
        job.signal(signal.SIGKILL)
        job.wait()
        wait_until(lambda: not self.box.strays(), "its driver ends")
        entry, = json.loads(self.ask("ps", "-a", "--json").stdout)
        self.assertEqual(entry["status"], 125, entry)
        self.assertIn("which waited for the start, was killed", self.ask("explain").stdout)

    def test_an_elastic_job(self):
        gate, let_go = self.box.gate()
        name = self.detach("--min-np", 1, "-H", "a:1,b:1", "--transport", "local", worker("hang"), "--until", gate)
        self.assertRegex(self.ask("status", name).stdout, rf"\A{name}: running, epoch 1, 2 ranks on 2 hosts")
        attached = self.start("attach")
        attached.wait_output("ready", count=2)
        let_go()
        self.expect(attached.wait(), 0)

    def test_input_from_a_file(self):
        self.write("data", "one\ntwo\n")
        with open(self.box.path("data"), "rb") as data:
            result = self.expect(self.start("--detach", "-np", 1, "cat", stdin=data).wait(), 0)
        self.assertEqual(self.ask("attach", result.stdout.strip()).stdout, "[0]<stdout>:one\n[0]<stdout>:two\n")


class Logs(Detach):

    def test_streams_and_ranks(self):
        name = self.detach("-np", 2, "sh", "-c", "echo out $RANK; echo err $RANK >&2; printf half")
        self.ask("wait", name)
        shown = self.ask("logs", name)
        self.assertEqual(sorted(shown.stdout.splitlines()), ["[0]<stdout>:half", "[0]<stdout>:out 0",
                                                             "[1]<stdout>:half", "[1]<stdout>:out 1"])
        self.assertEqual(sorted(shown.stderr.splitlines()), ["[0]<stderr>:err 0", "[1]<stderr>:err 1"])
        self.assertEqual(self.ask("logs", name, "--ranks", 1).stderr, "[1]<stderr>:err 1\n")
        self.assertEqual(len(self.ask("logs", name, "-n", 3, "--ranks", "0").lines), 2)  # and one on stderr
        self.assertEqual(self.ask("logs", name, "-n", 0).stdout, "")
        self.assertEqual(self.ask("logs", name, "--since", "1h").stdout, shown.stdout)
        self.assertEqual(self.ask("logs", name, "--since", "0").stdout, "")

    def test_json(self):
        name = self.detach("-np", 1, "sh", "-c", "echo out; printf '\\377 half' >&2; sleep 0.5; echo ' whole' >&2; exit 2")
        self.ask("wait", name, status=2)
        lines = [json.loads(line) for line in self.ask("logs", name, "--json").lines]
        said = {(line["rank"], line["stream"], line["text"]) for line in lines}
        self.assertTrue({(0, "stdout", "out"), (None, "stderr", "hvdrun: rank 0 exited with code 2")} <= said, lines)
        self.assertEqual("".join(line["text"] for line in lines if line["stream"] == "stderr" and line["rank"] == 0),
                         "? half whole")
        self.assertTrue(all(line["time"] > 1e9 for line in lines))

    def test_nowhere_to_write(self):
        """After a failed write, the rest of the log is not read: it would say that lines of an earlier file are missing."""
        name = self.detach("-np", 1, "seq", 5000)
        self.ask("wait", name)
        with open(os.path.join(self.folder(), name + ".2.log"), "wb") as file:
            file.write(b"1700000000000 0 o 5\nlast\n")
        self.assertIn("older output is missing", self.ask("logs", name, "--json").stderr)
        for words in ([], ["--json"], ["--json", "-f"]):
            with self.subTest(words=words), open("/dev/full", "wb", buffering=0) as full:
                told = self.expect(self.start("logs", name, *words, stdout=full).wait(), 1)
                self.assertEqual(told.stderr, "hvdrun: cannot write: No space left on device\n")

    def test_last_lines(self):
        name = self.detach("-np", 1, "seq", 1000)
        self.ask("wait", name)
        self.assertEqual(self.ask("logs", "-n", 2, name).stdout, "[0]<stdout>:999\n[0]<stdout>:1000\n")
        self.assertEqual(len(self.ask("logs", name).lines), 1000)

    def test_follow(self):
        gate, let_go = self.box.gate()
        name = self.detach("-np", 1, "sh", "-c", COUNT, gate)
        following = self.start("logs", "-f", name)
        following.wait_output(r"line 5$")
        let_go()
        numbers = re.findall(r"line (\d+)", self.expect(following.wait(), 0).stdout)
        self.assertEqual(numbers, [str(i) for i in range(1, 9)])
        self.assertTrue(following.output().endswith("[0]<stdout>:last\n"))

    def test_of_a_job_with_a_terminal(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("hang"), "--until", gate)
        job.wait_output("ready")
        wait_until(lambda: glob.glob(os.path.join(self.folder(), "*.log")), "the log")
        wait_until(lambda: re.search(r"\[0\]<stdout>:ready \d+\n", self.ask("logs").stdout), "the line in the log")
        let_go()
        self.expect(job.wait(), 0)

    def test_the_end_of_a_flood(self):
        """The last line before a silence may be the cause of a failure; and the log says that its beginning is gone."""
        gate, let_go = self.box.gate()
        name = self.detach("-np", 1, "--log-size", 2, "sh", "-c",
                           'yes LINE | head -c 100000000; echo END; while [ ! -e "$1" ]; do sleep 0.2; done', "sh", gate)
        wait_until(lambda: self.ask("logs", "-n", 1).stdout.endswith("END\n"), "the end of the flood, while the rank is quiet")
        shown = self.ask("logs")
        self.assertIn("hvdrun: the log was full (--log-size), so older output is missing here\n", shown.stderr)
        let_go()
        self.ask("wait", name)

    def test_a_cut_log(self):
        """As after a full disk: half a piece at the end."""
        name = self.detach("-np", 1, "sh", "-c", "sleep 0.2; echo one")
        self.ask("wait", name)
        with open(os.path.join(self.folder(), name + ".0.log"), "ab") as file:
            file.write(b"1700000000000 0 o 100\nhalf a")
        self.assertIn("hvdrun: the log ends within a line: the disk was full, or hvdrun was killed\n", self.ask("logs", name).stderr)

    def test_bounded(self):
        """What came too fast for the log, or does not fit, is missing. The end is there."""
        name = self.detach("-np", 1, "--log-size", 1, "sh", "-c",
                           "for i in 1 2 3 4 5 6; do seq -f 'line %010g of this job' 20000; sleep 0.15; done; echo end")
        self.ask("wait", name)
        files = glob.glob(os.path.join(self.folder(), "*.log"))
        self.assertIn(len(files), (1, 2))
        self.assertLess(sum(map(os.path.getsize, files)), 2 << 20)
        lines = self.ask("logs", name).lines
        self.assertEqual(lines[-1], "[0]<stdout>:end")
        self.assertGreater(len(lines), 5000)

    def test_another_folder(self):
        name = self.detach("-np", 1, "--log-dir", "my/logs", "sh", "-c", "echo one; sleep 0.5; echo two")
        following = self.start("logs", "-f", name)
        self.assertEqual(self.expect(following.wait(), 0).lines, ["[0]<stdout>:one", "[0]<stdout>:two"])
        self.assertEqual(os.listdir(self.box.path("my", "logs")), [name + ".0.log"])
        self.assertEqual(glob.glob(os.path.join(self.folder(), "*.log")), [])
        shutil.rmtree(self.box.path("my"))
        self.assertIn("cannot open the folder of the log", self.ask("logs", name, status=1).stderr)
        self.write("file", "")
        self.assertIn("--log-dir: cannot write to the folder", self.ask("--log-dir", "file/x", "-np", 1, "true", status=2).stderr)

    def test_full_disk(self):
        """It costs the log, and not the job."""
        job = self.start("-np", 1, "sh", "-c", "seq 100000; sleep 0.3; seq 100000", limits={
            resource.RLIMIT_FSIZE: (50000, 50000)})
        result = self.expect(job.wait(), 0)
        self.assertEqual(len(result.lines), 200000)
        self.expect_said(result, r"cannot write '\S+\.0\.log'")

    def test_no_file_at_all(self):
        """A limit of the size of files costs the files of hvdrun, too, and not the job. The ranks have it as it is."""
        for limit in (0, 1000):
            limits = {resource.RLIMIT_FSIZE: (limit, limit)}
            result = self.expect(self.start("-np", 2, "seq", 1000, limits=limits).wait(), 0)
            self.assertEqual(len(result.lines), 2000)
            result = self.expect(self.start("-np", 1, "sh", "-c", "exec seq 10000 >large", limits=limits).wait(), 128 + signal.SIGXFSZ)
            self.expect_said(result, "rank 0 was killed by SIGXFSZ")

    def test_no_log(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, "--log-size", 0, worker("hang"), "--until", gate)
        job.wait_output("ready")
        wait_until(lambda: glob.glob(os.path.join(self.folder(), "*.control")), "the control socket")
        self.assertEqual(self.ask("logs").stdout, "")
        let_go()
        self.expect(job.wait(), 0)


class Attach(Detach):

    def test_all_of_the_output_and_the_status(self):
        gate, let_go = self.box.gate()
        name = self.detach("-np", 1, "sh", "-c", COUNT + "; echo sorry >&2; exit 6", gate)
        first = self.start("attach")
        first.wait_output("line 3$")
        second = self.start("attach", name)
        second.wait_output("line 3$")
        let_go()
        for one in (first, second, self.start("attach", name)):  # the third one comes after the end
            result = self.expect(one.wait(), 6)
            self.assertRegex(result.stdout, r"\A\[0\]<stdout>:line 1\n[\s\S]*\[0\]<stdout>:last\n\Z")
            self.assertRegex(result.stderr, r"\A\[0\]<stderr>:sorry\nhvdrun: rank 0 exited with code 6\n")

    def test_attach_begins_with_the_last_lines(self):
        """A log may be long. The rest is one option away."""
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, "sh", "-c", 'seq 1 500; echo ready; while [ ! -e "$1" ]; do sleep 0.2; done; echo bye', "sh", gate)
        job.wait_output("ready")
        wait_until(lambda: self.ask("ps", "-q").stdout, "the record")
        wait_until(lambda: "ready" in self.ask("logs").stdout, "the log")
        some, three, every = self.start("attach"), self.start("attach", "-n", 3), self.start("attach", "-n", "all")
        for one in (some, three, every):
            one.wait_output("ready")
        let_go()
        some, three, every = (self.expect(one.wait(), 0) for one in (some, three, every))
        self.expect(job.wait(), 0)
        label = "[0]<stdout>:"
        self.assertEqual(some.lines, [f"{label}{n}" for n in range(482, 501)] + [f"{label}ready", f"{label}bye"])
        self.assertRegex(some.stderr, r"\Ahvdrun: 481 earlier lines are not shown; 'hvdrun attach -n all hvdrun-\S+' shows them\n\Z")
        self.assertEqual((three.lines[:2], three.stderr), ([f"{label}499", f"{label}500"], ""))
        self.assertEqual((len(every.lines), every.stderr), (502, ""))

    def test_ctrl_c_leaves(self):
        name, let_go = self.hang("-np", 1)
        attached = self.start("attach")
        attached.wait_output("ready")
        attached.signal(signal.SIGINT)
        self.assertIn(f"detached; 'hvdrun attach {name}' attaches again", self.expect(attached.wait(), 0).stderr)
        self.assertIn(": running", self.ask("status").stdout)
        let_go()
        self.ask("wait", name)

    def test_sig_proxy(self):
        name, _ = self.hang("-np", 1)
        attached = self.start("attach", name, "--sig-proxy")
        attached.wait_output("ready")
        attached.signal(signal.SIGINT)
        self.expect(attached.wait(), 130)

    def test_detach_keys(self):
        name, let_go = self.hang("-np", 1)
        attached = self.terminal("attach", name)
        attached.wait_output("ready")
        attached.type("q\x10x\x10\x11")
        self.assertEqual(attached.wait(), 0, attached.describe())
        attached.wait_output("detached; ")
        self.assertEqual(attached.modes, attached.modes_after)
        let_go()
        self.ask("wait", name)

    def test_slow_clients_do_not_slow_the_job(self):
        """Two that are stopped, and one whose reader does not read."""
        gate, let_go = self.box.gate()
        name = self.detach("-np", 1, "sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.2; done; seq 300000; echo end', gate)
        slow = [self.start("attach", name, stdout=wish) for wish in ("pipe", "pipe", "hold")]
        for one in slow[:2]:
            one.signal(signal.SIGSTOP)
        let_go()
        self.ask("wait", name)
        for one in slow[:2]:
            one.signal(signal.SIGCONT)
        slow[2].release()
        for one in slow:
            self.assertEqual(self.expect(one.wait(), 0).lines[-1], "[0]<stdout>:end")

    def test_a_driver_that_is_killed(self):
        name, _ = self.hang("-np", 1)
        followers = {self.start("attach", name): 125, self.start("logs", "-f", name): 1}
        for one in followers:
            one.wait_output("ready")
        os.kill(int(name.rpartition("-")[2]), signal.SIGKILL)
        for one, status in followers.items():
            self.assertIn(f"job {name} is lost", self.expect(one.wait(), status).stderr)
        wait_until(lambda: not self.box.strays(), "its processes end")


class Hangup(Detach):

    def test_the_reader_of_the_output_goes(self):
        """An ssh without a terminal is killed: nobody reads, and no signal comes."""
        for how, status in (("detach", 0), ("end", 141)):
            with self.subTest(how=how):
                gate, let_go = self.box.gate(how)
                job = self.start("--on-hangup", how, "-np", 2, "sh", "-c", 'while [ ! -e "$1" ]; do echo line; sleep 0.1; done; echo bye',
                                 "sh", gate, stdout="hold")
                name = wait_until(lambda: self.ask("ps", "-q").stdout.strip(), "the control socket")
                os.close(job.held.pop("stdout"))
                if how == "detach":
                    wait_until(lambda: "hvdrun: the reader of the output is gone, and the job goes on without it" in
                               self.ask("logs", name).stderr, "the notice in the log")
                    self.assertEqual(self.ask("ps", "-q").lines, [name])
                    let_go()
                self.expect(job.wait(), status)
                if how == "detach":
                    self.assertEqual(self.ask("logs", name).stdout.count("bye"), 2)
                else:
                    self.assertIn("the reader of the output is gone (SIGPIPE)", self.ask("status", name).stdout)
                    self.assertIn("the program that read the output of hvdrun has ended", self.ask("explain", name).stdout)

    def test_ends_the_job(self):
        process, read_until, vanish = self.on_terminal("-np", 1, worker("hang"))
        read_until(b"ready")
        vanish()
        self.assertEqual(process.wait(patient(30)), 129)

    def test_detaches_the_job(self):
        gate, let_go = self.box.gate()
        process, read_until, vanish = self.on_terminal("--on-hangup", "detach", "-np", 2, "sh", "-c", COUNT + "; exit 5", gate)
        read_until(b"line 3")
        wait_until(lambda: self.ask("ps", "-q").stdout, "the record of the job, which comes a moment after its start")
        vanish()
        attached = self.start("attach")
        attached.wait_output("the terminal is gone, and the job goes on without it", name="stderr")
        attached.wait_output("line 3$", count=2)
        let_go()
        self.expect(attached.wait(), 5)
        self.assertEqual(process.wait(patient(30)), 5)

    def test_during_bring_up(self):
        """The terminal goes before any rank runs."""
        slow = self.write("slow", '#!/bin/sh\ntouch called\nwhile [ ! -e go ]; do sleep 0.2; done\nexec sh\n', 0o755)
        gate, let_go = self.box.gate()
        process, _, vanish = self.on_terminal("--on-hangup", "detach", "-np", 1, "-H", "far:1", "--launch-agent", slow + " %h",
                                              worker("hang"), "--until", gate)
        wait_until(lambda: os.path.exists(self.box.path("called")), "hvdrun calls the host")
        vanish()
        self.write("go", "")
        wait_until(lambda: glob.glob(os.path.join(self.folder(), "*.log")), "the log")
        attached = self.start("attach")
        attached.wait_output("ready")
        let_go()
        self.assertEqual(process.wait(patient(60)), 0)
        self.expect(attached.wait(), 0)
        shutil.rmtree(os.path.join(self.box.run, "hvdrun"))  # the agent that hvdrun sent

    def test_at_the_end(self):
        """The terminal goes while the job ends."""
        process, read_until, vanish = self.on_terminal("--on-hangup", "detach", "--grace", 2, "-np", 1, "sh", "-c",
                                                       "trap 'sleep 0.5; exit 3' INT; echo ready; while :; do sleep 0.2; done")
        read_until(b"ready")
        process.send_signal(signal.SIGINT)
        vanish()
        self.assertEqual(process.wait(patient(30)), 130)

    def test_by_the_configuration(self):
        self.write("hvdrun.ini", "[launch]\non-hangup = detach\n")
        gate, let_go = self.box.gate()
        job = self.start("--config-file", "hvdrun.ini", "-np", 1, worker("hang"), "--until", gate)
        job.wait_output("ready")
        wait_until(lambda: self.ask("ps", "-q").stdout, "the record of the job, which comes a moment after its start")
        for _ in range(2):  # a shell and the kernel may both send it
            job.signal(signal.SIGHUP)
            job.wait_output("the terminal is gone", name="stderr")
            self.ask("status")  # the driver has taken the signal before it answers
        let_go()
        done = job.wait()
        self.expect(done, 0)
        self.assertEqual(done.stderr.count("the terminal is gone"), 1)


if __name__ == "__main__":
    main()
