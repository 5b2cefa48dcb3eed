# SPDX-License-Identifier: Apache-2.0
"""Hostile workers, terminals and places: the right status, whole lines, one clear word, nothing left."""
# ctest waits

import os
import re
import resource
import signal
import subprocess
import termios
import time

from hostile import Hostile
from rig import HVDRUN, Flow, Job, is_alive, main, mpi_worker, plain, sanitized, state, wait_until, worker

# spew writes whole lines, and no write is split: a line's first part would be shown after 200 ms, if
# the machine is too busy for the second
WHOLE = ("--chunk", 4000)
QUICK = ("--grace", "200ms", "--drain-timeout", "100ms")
CLOSED = ("0", "1", "2", "01", "12", "012")  # standard descriptors that the shell has closed


class Workers(Hostile, Flow):

    def read(self, path):
        with open(self.box.path(path), "rb") as file:
            return file.read()

    def noisy(self, *noise):
        """Rank 1 makes noise, and the lines of two others come out whole."""
        result = self.run_job("-np", 3, "--output-filename", "files", worker("noise"), "--rank", 1, *noise)
        self.expect(result, 0)
        self.expect_noise(result.stderr, 1, self.read("files/rank.1/stdout"))
        for rank in (0, 2):
            self.expect_whole(result.out, rank, 1000)
        return result

    def test_binary_noise(self):
        self.noisy()

    def test_a_line_of_ten_million_bytes(self):
        result = self.noisy("--never", 10, "--bytes", 10_000_000)
        self.assertGreater(len(result.out), 10_000_000)

    def test_noise_without_labels_is_byte_exact(self):
        for more in ([], ["--never", 10, "--bytes", 10_000_000]):
            result = self.expect(self.run_job("-np", 1, "--no-label", worker("noise"), *more), 0)
            self.expect_noise(result.stderr.replace("[0]<stderr>:", ""), 0, result.out)

    @plain
    def test_many_ranks_that_talk_at_once(self):
        ranks, lines = (16, 200) if sanitized() else (64, 500)
        result = self.expect(self.run_job("-np", ranks, worker("spew"), "--lines", lines, *WHOLE), 0)
        checked = subprocess.run([worker("lines_verify"), "--ranks", str(ranks), "--lines", str(lines)],
                                 input=result.out, capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr.decode())

    def test_a_rank_that_stops_itself(self):
        job = self.start("-np", 2, worker("stop"))
        job.wait_output("stopping", count=2)
        workers = job.wait_workers(2)
        for one in workers.values():
            wait_until(lambda pid=one.pid: state(pid) == "T", "a stopped rank")
            os.kill(one.pid, signal.SIGCONT)
        self.assertEqual(self.expect(job.wait(), 0).stdout.count("continued"), 2)

    def test_a_rank_that_has_stopped_itself_is_ended_with_the_others(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, *QUICK, worker("exit_with"), "--gate", gate, "0:3", ":", "-np", 2, worker("stop"))
        job.wait_output("stopping", count=2)
        stopped = [one for rank, one in job.wait_workers(3).items() if rank > 0]
        wait_until(lambda: all(state(one.pid) == "T" for one in stopped), "stopped ranks")
        let_go()
        self.expect_blame(self.expect(job.wait(), 3), 0, code=3)

    def test_stopped_processes_that_ranks_leave_behind(self):
        for kind in ("child", "daemon"):
            with self.subTest(kind=kind):
                result = self.expect(self.run_job("-np", 2, *QUICK, worker("stop"), "--kind", kind), 0)
                self.assertEqual(len(re.findall("left", result.stdout)), 2)

    def test_one_that_goes_on_writing_after_its_rank(self):
        result = self.expect(self.run_job("-np", 2, *QUICK, worker("afterword")), 0)
        for rank in (0, 1):
            numbers = [int(n) for n in re.findall(rf"(?m)^\[{rank}\]<stdout>:spew r={rank} s=1 n=(\d+) \w+ c=\w+$",
                                                  result.stdout)]
            self.assertEqual(numbers, list(range(len(numbers))), result.describe())
            self.assertGreater(len(numbers), 10)
        self.assertEqual(len(result.lines), len(re.findall(r"(?m)^\[[01]\]<stdout>:spew ", result.stdout)))

    def test_a_chain_of_processes_is_caught(self):
        # each lives for a moment only; what is found is already somebody else
        gate, let_go = self.box.gate()
        job = self.start_as_stranger("-np", 2, *QUICK, worker("breed"), "--kind", "chain", "--gate", gate,
                                     limits={resource.RLIMIT_NPROC: (100, 100)})
        job.wait_output("breeding", count=2)
        let_go()
        self.expect(job.wait(), 0)
        self.box.check_nothing_left()

    def test_a_fork_bomb_under_a_limit(self):
        gate, let_go = self.box.gate()
        after, begin = self.box.gate("after")
        job = self.start_as_stranger("-np", 2, *QUICK, worker("breed"), "--after", after, "--gate", gate, "--code", 3,
                                     limits={resource.RLIMIT_NPROC: (60, 60)})
        job.wait_output("ready", count=2)  # else the first may leave no process for the second
        begin()
        job.wait_output("breeding", count=2)
        wait_until(lambda: len(job.tree()) > 40, "the bomb")
        let_go()
        self.expect(job.wait(), 3)
        self.box.check_nothing_left()

    def test_more_ranks_than_processes_are_allowed(self):
        job = self.start_as_stranger("-np", 40, worker("hang"), limits={resource.RLIMIT_NPROC: (20, 20)})
        result = self.expect(job.wait(), 126)
        self.expect_said(result, r"rank \d+ could not start: cannot start .*ulimit -u")
        self.box.check_nothing_left()


class Parents(Flow):

    def test_one_that_ignores_the_end_of_its_children(self):
        # what is ignored stays so through exec, and then the kernel keeps no child until it is waited for
        for kind in ([], ["-H", "a:1,b:1", "--transport", "local"]):
            with self.subTest(kind=kind):
                result = self.run_job("-np", 2, *kind, worker("exit_with"), "1:3", ignore=[signal.SIGCHLD])
                self.expect_blame(self.expect(result, 3), 1, code=3)
        self.expect(self.run_job("-np", 2, *QUICK, worker("orphan"), "--kind", "daemon", ignore=[signal.SIGCHLD]), 0)


class Descriptors(Hostile, Flow):

    def closed(self, which, *args, **options):
        """A run whose shell has closed some of descriptors 0 to 2."""
        script = 'exec "$@" ' + " ".join(f"{fd}>&-" for fd in which)
        result = Job(self.box, ["sh", "-c", script, "sh", HVDRUN, *args], **options).wait()
        self.box.check_nothing_left()
        return result

    def own(self, folder, rank):
        with open(self.box.path(folder, f"rank.{rank}", "stdout"), encoding="utf-8") as file:
            return [line.split(" -> ") for line in file.read().splitlines()]

    def test_any_of_them_closed_at_the_start(self):
        for which in CLOSED:
            for kind in ([], ["-H", "a:1,b:1", "--transport", "local"])[:2 if which == "012" else 1]:
                with self.subTest(closed=which, kind=kind):
                    folder = f"files{which}{len(kind)}"
                    result = self.closed(which, "-np", 2, *kind, "--output-filename", folder, worker("fds"))
                    self.expect(result, 0)
                    for rank in (0, 1):
                        self.assertEqual([name for name, _ in self.own(folder, rank)], ["fd 0", "fd 1", "fd 2"])
                    if "1" not in which:
                        self.assertEqual(len(result.lines), 6, result.describe())

    def test_the_status_does_not_need_them(self):
        for which in CLOSED:
            with self.subTest(closed=which):
                result = self.expect(self.closed(which, "-np", 2, worker("exit_with"), "1:3"), 3)
                if "2" not in which:
                    self.expect_blame(result, 1, code=3)

    def test_workers_of_every_kind_of_run_have_their_own_alone(self):
        leak = os.open("/dev/zero", os.O_RDONLY)
        self.addCleanup(os.close, leak)
        for kind in (["--mpi=pmix"], ["-H", "a:1,b:1", "--transport", "local"], ["--pty", 1], ["--merge-stderr"],
                     ["--report", "report", "--events", "events"]):
            with self.subTest(kind=kind):
                result = self.run_job("-np", 2, *kind, "--output-filename", "own", worker("fds"), pass_fds=[leak])
                self.expect(result, 0)
                for rank in (0, 1):
                    self.assertEqual([name for name, _ in self.own("own", rank)], ["fd 0", "fd 1", "fd 2"], result.describe())

    def test_a_full_device_as_standard_output(self):
        with open("/dev/full", "wb", buffering=0) as full:
            for args, status in ((["-np", 1, "true"], 0), (["-np", 1, worker("hello")], 0),
                                 (["-np", 2, worker("exit_with"), "1:3"], 3)):
                self.expect(self.run_job(*args, stdout=full), status)
            # what has nothing but its output to give fails with it
            for args in (["check"], ["check", "--json"], ["--dry-run", "-np", 2, "true"], ["--help"], ["--version"]):
                with self.subTest(args=args):
                    result = self.expect(self.run_job(*args, stdout=full), 125)
                    self.assertEqual(result.said.lower().count("no space left"), 1, result.describe())

    def test_a_full_device_as_standard_error(self):
        with open("/dev/full", "wb", buffering=0) as full:
            result = self.run_job("-np", 2, worker("exit_with"), "--say", "x", "1:3", stderr=full)
        self.expect(result, 3)

    def test_report_and_events_on_a_full_disk(self):
        mount, folder = self.small_folder(size="4k")
        fill = f"{mount} && head -c 4096 /dev/zero >'{folder}/filler'"
        for option in ("--report", "--events"):
            with self.subTest(option=option):
                result = self.in_place(fill, "-np", 2, option, f"{folder}/file", worker("exit_with"), "1:3")
                self.expect(result, 3)
                self.assertEqual(result.said.lower().count("no space left"), 1, result.describe())
                self.expect_blame(result, 1, code=3)


class Terminals(Hostile, Flow):

    def test_hung_up(self):
        for name, status in (("hang", 128 + signal.SIGHUP), ("stubborn", 128 + signal.SIGHUP)):
            with self.subTest(worker=name):
                window, pid = self.start_in_window("-np", 2, *QUICK, worker(name))
                text = b""
                while text.count(b"ready") < 2:
                    text += os.read(window.popen.stdout.fileno(), 4096)
                self.assertEqual(self.close_window(window, pid), status)
                self.box.check_nothing_left()

    def test_hung_up_while_ranks_talk(self):
        window, pid = self.start_in_window("-np", 2, *QUICK, worker("spew"), "--for-ever")
        os.read(window.popen.stdout.fileno(), 4096)
        self.assertEqual(self.close_window(window, pid), 128 + signal.SIGHUP)
        self.box.check_nothing_left()

    def test_read_only(self):
        master, slave = os.openpty()
        name = os.ttyname(slave)
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        shut = os.open(name, os.O_RDONLY | os.O_NOCTTY)
        self.addCleanup(os.close, shut)
        result = self.expect(self.run_job("-np", 2, worker("hello"), stdout=shut), 0)
        self.assertEqual(result.said.count("Bad file descriptor"), 1, result.describe())
        self.expect(self.run_job("-np", 2, worker("exit_with"), "1:3", stdin=shut, stdout=shut, stderr=shut), 3)

    def test_suspended_and_resumed_output(self):
        gate, let_go = self.box.gate()
        lines = 2000
        job = self.terminal("-np", 2, "sh", "-c", f'echo ready; while ! test -e "{gate}"; do sleep 0.02; done; '
                            f'exec "{worker("spew")}" --lines {lines} --chunk 4000')
        job.wait_output("ready", count=2)
        job.type("\x13")
        let_go()
        time.sleep(0.3)
        job.type("\x11")
        self.assertEqual(job.wait(), 0, job.describe())
        for rank in (0, 1):
            self.expect_whole(re.sub(r"(?m)^.*ready\n", "", job.output()).encode(), rank, lines)

    def test_suspended_output_does_not_keep_the_job(self):
        job = self.terminal("-np", 2, *QUICK, worker("spew"), "--for-ever")
        job.wait_output("spew")
        job.type("\x13")
        pid = job.pid
        for _ in range(200):
            if not is_alive(pid):
                break
            os.kill(pid, signal.SIGTERM)
            time.sleep(0.1)
        self.assertIn(job.wait(), (143, -signal.SIGTERM), job.describe())

    def test_resized_again_and_again(self):
        lines = 3000
        job = self.terminal("-np", 2, worker("spew"), "--lines", lines, *WHOLE)
        for count in range(60):
            job.resize(1 + count % 50, 1 + count * 7 % 200)
        self.assertEqual(job.wait(), 0, job.describe())
        for rank in (0, 1):
            self.expect_whole(job.output().encode(), rank, lines)

    def test_in_the_background_of_one_that_stops_writers(self):
        gate, let_go = self.box.gate()
        job = self.terminal("-np", 2, worker("hang"), "--until", gate, place="bg")
        modes = termios.tcgetattr(job.slave)
        modes[3] |= termios.TOSTOP
        termios.tcsetattr(job.slave, termios.TCSANOW, modes)
        job.wait_output("ready", count=2)
        let_go()
        self.assertEqual(job.wait(), 0, job.describe())
        self.assertFalse([line for line in job.reported() if line.startswith("stopped")], job.describe())
        self.assertEqual(job.output().count("done"), 2)

    def test_a_terminal_for_a_rank_in_the_background(self):
        # the terminal's modes are those of the program in the foreground
        gate, let_go = self.box.gate()
        job = self.terminal("-np", 1, "--pty", 0, worker("hang"), "--until", gate, place="bg")
        job.wait_output("ready")
        self.assertEqual(termios.tcgetattr(job.slave), job.modes)
        job.command("f")
        wait_until(lambda: termios.tcgetattr(job.slave)[3] & termios.ICANON == 0, "every key for the rank")
        let_go()
        self.assertEqual(job.wait(), 0, job.describe())
        self.assertEqual(job.modes, job.modes_after)


class Places(Hostile, Flow):

    @property
    def no_proc(self):
        if sanitized():
            self.skipTest("a sanitizer does not start without /proc")
        return "mount -t tmpfs none /proc"

    @plain
    def test_no_proc(self):
        for kind in ([], ["-H", "a:1,b:1", "--transport", "local"]):
            result = self.in_place(self.no_proc, "-np", 2, *kind, worker("hello"))
            self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:hello from rank {r} of 2" for r in (0, 1)])
            self.assertEqual(result.stderr, "", result.describe())
        result = self.in_place(self.no_proc, "-np", 2, worker("exit_with"), "1:3")
        self.expect_blame(self.expect(result, 3), 1, code=3)

    @plain
    def test_what_ranks_leave_behind_without_proc(self):
        for kind in ("child", "daemon"):
            with self.subTest(kind=kind):
                result = self.in_place(self.no_proc, "-np", 2, *QUICK, worker("orphan"), "--kind", kind)
                self.assertEqual(self.expect(result, 0).stderr, "", result.describe())

    def test_a_proc_that_hides_others(self):
        hidden = "mount -t proc -o hidepid=2 none /proc"
        for kind in ("child", "daemon"):
            with self.subTest(kind=kind):
                result = self.in_place(hidden, "-np", 2, *QUICK, worker("orphan"), "--kind", kind, stranger=True)
                self.assertEqual(self.expect(result, 0).stderr, "", result.describe())

    @plain
    def test_agent_killed_without_proc(self):
        job = self.start_in_place(self.no_proc, "-np", 2, *QUICK, worker("orphan"), "--kind", "daemon", "--gate",
                                  self.box.path("never"))
        job.wait_output("left", count=2)
        os.kill(job.agents()[0].pid, signal.SIGKILL)
        self.expect(job.wait(), 121)
        self.box.check_nothing_left()

    @plain
    def test_mpi_without_proc(self):
        result = self.in_place(self.no_proc, "-np", 2, mpi_worker("mpi_hello", "openmpi"),
                               env={"OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:rank {r} of 2 sum 1" for r in (0, 1)])

    def expect_without_pmix(self, script, folder, why):
        """Only programs that surely use PMIx need the folder. The check says what a job then does."""
        env = {"TMPDIR": folder, "XDG_RUNTIME_DIR": None}
        can = ((["-np", 2, worker("hello")], ""), (["-np", 2, mpi_worker("mpi_hello", "mpich")], ""),
               (["-np", 2, "sh", "-c", f"exec {worker('hello')}"], f"localhost: {why}; hvdrun continues without PMIx"),
               (["check", "-q"], rf"warning: localhost: {why}: programs that use PMIx"))
        for args, said in can:
            result = self.expect(self.in_place(script, *args, env=env), 0)
            self.assertRegex(result.stderr + (result.stdout if args[0] == "check" else ""), f"^(hvdrun: )?{said}")
            self.assertEqual(len(result.lines), 1 if args[0] == "check" else 2)
            self.assertLessEqual(result.stderr.count("\n"), 1 if said else 0, result.describe())
        for args in ((mpi_worker("mpi_hello", "openmpi"),), ("check", "-q", "--mpi=pmix")):
            result = self.expect(self.in_place(script, *args, env=env), 125)
            text = (result.stdout + result.stderr).strip()
            self.assertRegex(text, rf"^(hvdrun|problem): localhost: {why}$")

    def test_read_only_temporary_folder(self):
        mount, folder = self.small_folder()
        self.expect_without_pmix(f"{mount} && mount -o remount,ro '{folder}'", folder,
                                 rf"cannot create the runtime folder {folder}/\S+ \(TMPDIR names the place\): "
                                 "Read-only file system")

    def test_full_temporary_folder(self):
        mount, folder = self.small_folder("full")
        self.expect_without_pmix(f"{mount} && {{ cat /dev/zero >'{folder}/f' 2>&- || true; }}", folder,
                                 rf"no space left in {folder} \(TMPDIR names the place\)")

    def test_few_open_files(self):
        few = {resource.RLIMIT_NOFILE: (64, 64)}
        result = self.run_job("-np", 8, worker("hello"), limits=few)
        self.assertEqual(len(self.expect(result, 0).lines), 8)
        for args in (["-np", 40], ["-np", 18, "--mpi=pmi1"]):
            with self.subTest(args=args):
                result = self.expect(self.run_job(*args, worker("hello"), limits=few), 125)
                self.expect_said(result, r"ranks here need about \d+ open files and the limit is 64: raise")
                self.assertEqual((result.stdout, len(result.said.strip().split("\n"))), ("", 1), result.describe())
        result = self.run_job("-H", "n[1-80]:1", "--transport", "local", worker("hello"), limits=few)
        self.expect_said(self.expect(result, 125), r"too many open files \(ulimit -n")

    @plain
    def test_few_open_files_with_a_hard_limit_that_is_high(self):
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
            self.skipTest("the hard limit of open files is too low")
        ranks = 60 if sanitized() else 300
        result = self.run_job("-np", ranks, worker("hello"), timeout=120,
                              limits={resource.RLIMIT_NOFILE: (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])})
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:hello from rank {r} of {ranks}" for r in range(ranks)])


if __name__ == "__main__":
    main()
