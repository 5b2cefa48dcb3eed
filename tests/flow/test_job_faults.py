# SPDX-License-Identifier: Apache-2.0
"""What must not harm a job, or what other commands show of it: a terminal that vanishes, clients that are killed or
stopped, a log folder that goes, and a clock that is set back (docs/jobs.md)."""
# ctest waits

import glob
import json
import os
import re
import shutil
import signal
import subprocess

from job_commands import JobCommands
from rig import main, patient, plain, sanitized, wait_until, worker

# The wall clock of a process: BACK seconds behind as soon as the file BACK_FILE exists.
CLOCK = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *file = getenv("BACK_FILE"), *back = getenv("BACK");
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && file != NULL && back != NULL && access(file, F_OK) == 0)
        now->tv_sec -= atol(back);
    return result;
}
"""


class Faults(JobCommands):

    def wait_socket(self):
        return wait_until(lambda: glob.glob(os.path.join(self.folder(), "*.control")), "the control socket")


class Terminal(Faults):
    """With --on-hangup end, which is the default. flow.detach has the other one."""

    def test_during_bring_up(self):
        slow = self.write("slow", "#!/bin/sh\ntouch called\nexec sleep 600\n", 0o755)
        process, _, vanish = self.on_terminal("-np", 1, "-H", "far:1", "--launch-agent", slow + " %h", worker("hang"))
        wait_until(lambda: os.path.exists(self.box.path("called")), "hvdrun calls the host")
        vanish()
        self.assertEqual(process.wait(patient(60)), 129)

    def test_while_ranks_talk(self):
        process, read_until, vanish = self.on_terminal("-np", 2, "sh", "-c", "echo ready; exec yes")
        read_until(b"ready")
        vanish()
        self.assertIn(process.wait(patient(60)), (129, 141))

    def test_at_the_end(self):
        process, read_until, vanish = self.on_terminal("-np", 1, "sh", "-c", "trap 'echo ends; sleep 0.5; exit 3' INT\n"
                                                       "echo ready; while :; do sleep 0.05; done")
        read_until(b"ready")
        process.send_signal(signal.SIGINT)
        read_until(b"ends")
        vanish()
        self.assertEqual(process.wait(patient(60)), 130)


class Clients(Faults):

    def test_killed_and_stopped(self):
        """They wait for the end, follow the output, and cannot hold up either."""
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("hang"), "--until", gate)
        job.wait_output("ready")
        self.wait_socket()
        clients = [self.start(*(("wait",), ("attach",), ("logs", "-f"))[number % 3]) for number in range(30)]
        for number, client in enumerate(clients):
            if number % 3 == 1:
                client.wait_output("ready")
        for number, client in enumerate(clients[:20]):
            client.signal((signal.SIGKILL, signal.SIGSTOP)[number % 2])
        self.assertIn(": running, 1 rank", self.ask("status").stdout)
        let_go()
        self.expect(job.wait(), 0)
        for number, client in enumerate(clients):
            if number < 20 and number % 2 == 1:
                client.signal(signal.SIGCONT)
            if number >= 20 or number % 2 == 1:
                self.expect(client.wait(), 0)
            else:
                client.wait()


class LogFolder(Faults):

    def test_it_goes_while_the_job_runs(self):
        """The rest of the log is lost, and one line says so when a new file cannot be made."""
        job = self.start("-np", 1, "--log-dir", "logs", "--log-size", 1, "sh", "-c", """
            echo begins; while [ ! -e gone ]; do sleep 0.05; done
            for i in 1 2 3 4 5 6 7 8; do seq 20000; sleep 0.15; done; echo ends""")
        wait_until(lambda: glob.glob(self.box.path("logs", "*.log")), "the log")
        shutil.rmtree(self.box.path("logs"))
        self.write("gone", "")
        result = self.expect(job.wait(), 0)
        self.assertEqual(len(result.lines), 8 * 20000 + 2)
        self.assertEqual(len(re.findall(r"cannot \w+ '\S+\.log'", result.stderr)), 1, result.describe())

    def test_all_of_it_goes_while_others_follow(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("hang"), "--until", gate)
        job.wait_output("ready")
        self.wait_socket()
        following = self.start("attach")
        following.wait_output("ready")
        for path in glob.glob(os.path.join(self.folder(), "*")):
            os.unlink(path)
        os.rmdir(self.folder())
        result = following.wait()
        self.assertEqual(result.status, 125, result.describe())
        let_go()
        self.expect(job.wait(), 0)


class Clock(Faults):

    @plain
    def test_set_back_by_an_hour(self):
        if sanitized():
            self.skipTest("the sanitizer has a clock_gettime() of its own")
        if shutil.which("cc") is None:
            self.skipTest("no C compiler")
        source = self.write("clock.c", CLOCK)
        library = self.box.path("clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        clock = {"LD_PRELOAD": library, "BACK": "3600", "BACK_FILE": self.box.path("back")}
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, "sh", "-c", f"""
            i=0; while [ ! -e {gate} ]; do i=$((i+1)); echo line $i; sleep 0.05; done; echo last; exit 3""", env=clock)
        self.wait_socket()
        following = self.start("attach", env=clock)
        following.wait_output("line 5$")
        self.write("back", "")
        seen = following.output().count("\n")
        following.wait_output("line ", count=seen + 20)
        status = json.loads(self.ask("status", "--json", env=clock).stdout)
        self.assertTrue(0 <= status["up_s"] < 3000 and 0 <= status["last_output_s"] < 3000, status)
        self.assertNotIn("-", re.search(r"up (.*)", self.ask("status", env=clock).stdout)[1])
        let_go()
        self.expect(job.wait(), 3)
        result = self.expect(following.wait(), 3)
        numbers = [int(number) for number in re.findall(r"line (\d+)", result.stdout)]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)), "no line is missing, and each comes once")
        self.assertTrue(result.stdout.endswith("last\n"))
        for one in (clock, None):
            ended, = json.loads(self.ask("ps", "-a", "--json", env=one).stdout)
            self.assertEqual((ended["state"], ended["status"]), ("ended, status 3", 3))
            self.assertRegex(self.ask("status", ended["job"], env=one).stdout, r"ended with status 3, \d+ \w+.* ago, after \d+ s\n")
            self.assertEqual(len(self.ask("logs", ended["job"], env=one).lines), len(result.lines))
        times = [json.loads(line)["time"] for line in self.ask("logs", ended["job"], "--json").lines]
        self.assertTrue(any(two < one - 3000 for one, two in zip(times, times[1:])), "the clock of the job was set back")


if __name__ == "__main__":
    main()
