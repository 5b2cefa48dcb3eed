# SPDX-License-Identifier: Apache-2.0
"""The exit status tells the truth (D7): codes, signals, causes and consequences, exec failures."""
# ctest waits
# ctest warm

import json
import os
import signal
import sys
import time

from rig import Flow, main, state, wait_until, worker

# Rank 0 ignores SIGTERM, and exits with $1 a little later. Rank 1 exits with 3 as soon as that is so.
IGNORES = """
if [ $RANK = 0 ]; then trap "" TERM; touch holds; sleep 0.7; exit $1; fi
while ! test -e holds; do sleep 0.05; done
exit 3
"""
# Every rank is connected with rank 0. Rank 1 ends its part as the first argument says.
CONNECTED = """
import atexit, os, socket, sys, time

rank, size, how = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1]
path = "connected-" + os.environ["TORCHELASTIC_RESTART_COUNT"]
peers = [socket.socket(socket.AF_UNIX)]
if rank == 0:
    peers[0].bind(path + ".new")
    peers[0].listen(size)
    os.rename(path + ".new", path)
    peers = [peers[0].accept()[0] for _ in range(size - 1)]
else:
    while not os.path.exists(path):
        time.sleep(0.01)
    peers[0].connect(path)

def shutdown():
    time.sleep(0.2)
    for peer in peers:
        peer.shutdown(socket.SHUT_RDWR)
    time.sleep(60)

def exchange():
    for peer in peers:
        peer.sendall(b"x")
    for peer in peers:
        if not peer.recv(1):
            time.sleep(0.5 if how == "exit" else 0)  # the agent sees the end of that peer before this one
            raise RuntimeError("Connection closed by peer")

if how == "late":  # rank 0 takes the processor from rank 1 as soon as that has closed its connection
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if rank == 0 and os.geteuid() == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
exchange()
if rank == 1 and how in ("exit", "late"):
    os._exit(0)
elif rank == 1 and how == "silent":
    shutdown()
elif rank == 1 and path in how.split(","):
    atexit.register(shutdown)
    raise ValueError("row 7 is broken")
if path in how or how in ("exit", "late", "silent"):
    exchange()
    exchange()
"""

# Rank 0 fails because of another service, and rank 1 goes as soon as it sees that.
FAILS = """
import os, socket, sys, time
path, one = sys.argv[1], socket.socket(socket.AF_UNIX)
if os.environ["RANK"] == "0":
    one.bind(path + ".new")
    one.listen()
    os.rename(path + ".new", path)
    peer = one.accept()[0]
    os.write(2, b"ConnectionResetError: [Errno 104] Connection reset by peer\\n")
    os._exit(1)
while not os.path.exists(path):
    time.sleep(0.01)
one.connect(path)
one.recv(1)
os._exit(0)
"""

class Exit(Flow):

    def test_exit_code_of_the_failed_rank(self):
        for code in (1, 3, 42, 255):
            with self.subTest(code=code):
                result = self.expect(self.run_job("-np", 4, worker("exit_with"), f"2:{code}"), code)
                self.expect_blame(result, 2, code=code)

    def test_the_blame_names_host_and_last_stderr_lines(self):
        result = self.expect(self.run_job("-np", 3, worker("exit_with"), "--say", "out of luck", "1:3"), 3)
        self.expect_blame(result, 1, code=3)
        self.expect_said(result, r"(localhost|127\.0\.0\.1|" + os.uname().nodename + ")")
        for n in (1, 2, 3):
            self.assertIn(f"[1]<stderr>:out of luck {n}\n", result.stderr, result.describe())
            self.expect_said(result, f"out of luck {n}")

    def test_the_blame_is_the_last_thing_printed(self):
        result = self.expect(self.run_job("-np", 3, worker("exit_with"), "--say", "boom", "1:3"), 3)
        lines = result.stderr.splitlines()
        last_labelled = max(i for i, line in enumerate(lines) if line.startswith("["))
        self.assertTrue(any("rank 1" in line for line in lines[last_labelled + 1:]), result.describe())

    def test_only_the_last_lines_of_a_long_stderr(self):
        result = self.run_job("-np", 2, worker("spew"), "--stream", 2, "--lines", 500, "--rank", 1,
                              "--end-by-signal", signal.SIGABRT)
        self.expect(result, 134)
        self.expect_blame(result, 1, signal_number=signal.SIGABRT)
        quoted = result.said.count("spew r=1")
        self.assertTrue(1 <= quoted <= 50, f"{quoted} lines quoted{result.describe()}")
        self.expect_said(result, "n=499 ")

    def test_death_by_signal(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGPIPE,
                       signal.SIGTERM):
            with self.subTest(signal=number):
                result = self.run_job("-np", 3, worker("crash"), "--rank", 1, "--how", int(number))
                self.expect(result, 128 + number)
                self.expect_blame(result, 1, signal_number=number)

    def test_real_segmentation_fault_and_abort(self):
        result = self.expect(self.run_job("-np", 2, worker("crash"), "--rank", 0, "--how", "segv"), 139)
        self.expect_blame(result, 0, signal_number=signal.SIGSEGV)
        result = self.expect(self.run_job("-np", 2, worker("crash"), "--rank", 1, "--how", "abort"), 134)
        self.expect_blame(result, 1, signal_number=signal.SIGABRT)

    def test_killed_from_outside(self):
        job = self.start("-np", 3, worker("hang"))
        os.kill(job.wait_workers(3)[2].pid, signal.SIGKILL)
        result = self.expect(job.wait(), 137)
        self.expect_blame(result, 2, signal_number=signal.SIGKILL)

    def test_the_killed_ones_are_not_blamed(self):
        result = self.expect(self.run_job("-np", 6, worker("exit_with"), "4:3"), 3)
        self.expect_blame(result, 4, code=3)
        self.expect_not_said(result, r"rank [01235]\b.*(failed|exit code 143|SIGTERM\))")

    def test_a_consequence_with_a_code_of_its_own_is_not_the_cause(self):
        # rank 0 ignores our TERM and exits with 9 a little later: still rank 1 began it
        result = self.expect(self.run_job("-np", 2, "sh", "-c", IGNORES, "sh", 9), 3)
        self.expect_blame(result, 1, code=3)

    def test_first_of_two_failures(self):
        result = self.expect(self.run_job("-np", 4, worker("exit_with"), "3:5:100", "0:6:20000"), 5)
        self.expect_blame(result, 3, code=5)

    def test_a_failure_ends_the_job_at_once(self):
        # whoever waited for the grace would hang, for the test
        self.expect(self.run_job("-np", 4, "--grace", "1h", worker("exit_with"), "1:3"), 3)

    def test_a_clean_exit_never_starts_a_timer(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 3, "--grace", 1, worker("exit_with"), "--gate", gate, "0:0", "2:0")
        # rank 1 is not named and hangs; let the other two go, and much later the job is untouched
        workers = job.wait_workers(3)
        let_go()
        wait_until(lambda: len(job.workers()) == 1, "two clean exits")
        time.sleep(3)
        self.assertNotEqual(state(workers[1].pid), "", "the last rank was ended")
        self.assertIsNone(job.popen.poll(), "the job was ended")
        os.kill(workers[1].pid, signal.SIGUSR1)
        self.expect(job.wait(), 128 + signal.SIGUSR1)

    def test_all_clean_at_different_times(self):
        self.expect(self.run_job("-np", 3, worker("exit_with"), "0:0", "1:0:300", "2:0:600"), 0)

    def test_survivors_that_ignore_term_are_killed(self):
        result = self.run_job("-np", 1, "--grace", 1, worker("exit_with"), "0:3:500", ":",
                              "-np", 3, worker("stubborn"))
        self.expect(result, 3)
        self.expect_blame(result, 0, code=3)

    def both_fail(self, policy, codes, delays=(0, 200)):
        """Two ranks end while their agent is stopped, so it hears of both before it kills anyone."""
        gate, let_go = self.box.gate()
        job = self.start("-np", 3, "--exit-policy", policy, worker("exit_with"), "--gate", gate,
                         f"0:{codes[0]}:{delays[0]}", f"1:{codes[1]}:{delays[1]}")
        workers = job.wait_workers(3)
        agents = job.agents()
        self.assertEqual(len(agents), 1, job.describe())
        os.kill(agents[0].pid, signal.SIGSTOP)
        let_go()
        wait_until(lambda: state(workers[0].pid) == state(workers[1].pid) == "Z", "two dead ranks")
        os.kill(agents[0].pid, signal.SIGCONT)
        result = job.wait()
        os.unlink(gate)
        return result

    def test_exit_policy_first_and_max(self):
        # the agent hears of both at once, and still knows who was first
        result = self.expect(self.both_fail("first", (3, 9)), 3)
        self.expect_blame(result, 0, code=3)
        result = self.expect(self.both_fail("first", (3, 9), delays=(200, 0)), 9)
        self.expect_blame(result, 1, code=9)
        self.expect(self.both_fail("max", (3, 9)), 9)

    def test_exit_policy_rank0(self):
        result = self.run_job("-np", 2, "--exit-policy", "rank0", "sh", "-c", IGNORES, "sh", 0)
        self.expect(result, 0)
        result = self.run_job("-np", 2, "--exit-policy", "rank0", worker("exit_with"), "1:3")
        self.expect(result, 3)
        result = self.run_job("-np", 2, "--exit-policy", "rank0", worker("exit_with"), "0:7", "1:0:300")
        self.expect(result, 7)

    def test_unknown_exit_policy(self):
        result = self.expect(self.run_job("-np", 1, "--exit-policy", "best", "true"), 2)
        self.expect_said(result, "exit-policy.*best.*first.*max.*rank0")

    def test_command_not_found(self):
        result = self.expect(self.run_job("-np", 2, "no-such-command-anywhere"), 127)
        self.expect_said(result, "no-such-command-anywhere.*(not found|no such file)")
        result = self.expect(self.run_job("-np", 2, "./no/such/file"), 127)
        self.expect_said(result, r"no/such/file.*no such file or directory")

    def test_missing_interpreter_is_not_found(self):
        path = self.write("orphaned", "#!/no/such/interpreter\n", 0o755)
        result = self.expect(self.run_job("-np", 1, path), 127)
        self.expect_said(result, "orphaned.*no such file")

    def test_not_executable(self):
        path = self.write("plain.txt", "text\n", 0o644)
        result = self.expect(self.run_job("-np", 2, path), 126)
        self.expect_said(result, r"plain\.txt.*permission denied")

    def test_folder_is_not_executable(self):
        os.mkdir(self.box.path("folder"))
        result = self.expect(self.run_job("-np", 1, self.box.path("folder")), 126)
        self.expect_said(result, "folder.*(permission denied|is a directory)")

    def test_exec_failure_is_said_once(self):
        result = self.expect(self.run_job("-np", 8, "./no/such/file"), 127)
        self.assertLessEqual(result.said.lower().count("no such file"), 2, result.describe())

    def test_exec_failure_of_one_app_ends_the_other(self):
        result = self.run_job("-np", 2, worker("hang"), ":", "-np", 1, "./no/such/file")
        self.expect(result, 127)
        self.expect_said(result, "no/such/file")

    def test_last_output_before_a_crash_is_not_lost(self):
        result = self.run_job("-np", 2, worker("spew"), "--rank", 1, "--lines", 3000, "--no-newline",
                              "--end-by-signal", signal.SIGKILL)
        self.expect(result, 137)
        self.assertEqual(result.stdout.count("[1]<stdout>:spew "), 3000, result.describe())
        self.assertIn("n=2999 ", result.stdout)

    def test_error_file_of_the_worker_is_shown(self):
        result = self.expect(self.run_job("-np", 2, worker("error_file"), "--rank", 1), 1)
        self.expect_blame(result, 1, code=1)
        self.expect_said(result, r"ValueError: the .?.?loss.?.? is not a number")

    def connected(self, how, *args):
        script = self.write("connected.py", CONNECTED)
        return self.run_job("-np", 2, *args, sys.executable, "-B", script, how)

    def test_the_cause_and_not_the_first_to_exit(self):
        for args in ([], ["--merge-stderr"]):
            with self.subTest(args=args):
                events = self.box.path("events")
                result = self.expect(self.connected("connected-0", "--events", events, *args), 1)
                os.unlink(self.box.path("connected-0"))
                self.expect_blame(result, 1)
                self.expect_said(result, "rank 1 is most likely the cause: ValueError: row 7 is broken; rank 0 exited")
                self.expect_said(result, r"rank 1: .*terminated by hvdrun.*\n    ValueError: row 7 .*rank 0: .*exit code 1")
                with open(events, encoding="utf-8") as file:
                    last = json.loads(file.read().splitlines()[-1])
                self.assertEqual((last["event"], last["rank"], last["first_rank"]), ("job_end", 1, 0))

    def test_the_cause_is_an_early_exit_with_0(self):
        for how in ("exit", "late"):
            with self.subTest(how=how):
                result = self.expect(self.connected(how), 1)
                os.unlink(self.box.path("connected-0"))
                if how == "late" and "at the same time" in result.said:
                    self.expect_blame(result, 0, code=1)
                    self.expect_said(result, "rank 1 exited with code 0 at the same time, and hvdrun cannot tell what failed first")
                    continue
                self.expect_blame(result, 1, code=0)
                self.expect_said(result, "rank 1 is most likely the cause: it exited with code 0 before its peers; rank 0 exited")

    def test_a_peer_that_ends_because_of_a_failure(self):
        """Rank 1 exits with 0 as soon as rank 0 has failed by itself. It may be seen to end before rank 0 can be waited for."""
        script = self.write("fails.py", FAILS)
        for number in range(8):
            result = self.expect(self.run_job("-np", 2, sys.executable, "-S", script, f"peer-{number}"), 1)
            self.expect_blame(result, 0, code=1)
            self.expect_not_said(result, "most likely")

    def test_no_cause_is_guessed(self):
        result = self.expect(self.connected("silent"), 1)
        self.expect_blame(result, 0, code=1)
        self.expect_not_said(result, "most likely")

    def test_the_cause_in_an_elastic_job(self):
        elastic = ["-H", "localhost:2", "--min-np", 2, "--on-failure", "restart"]
        result = self.expect(self.connected("connected-0,connected-1", *elastic, "--max-restarts", 1), 1)
        cause = "rank 1 is most likely the cause: ValueError: row 7 is broken"
        self.expect_said(result, f"all workers restart\n.*{cause}\n.*epoch 2")
        self.expect_said(result, f"{cause}; rank 0 on localhost exited with code 1; no more restarts")

    def test_usage_errors_have_status_2_and_one_line(self):
        for args in (["--no-such-option", "true"], ["-np", "0", "true"], ["-np", "four", "true"],
                     ["-np", "2"], [], ["--timeout", "soon", "true"]):
            with self.subTest(args=args):
                result = self.expect(self.run_job(*args), 2)
                self.assertEqual(result.stdout, "", result.describe())
                self.assertTrue(1 <= len(result.stderr.splitlines()) <= 2, result.describe())


if __name__ == "__main__":
    main()
