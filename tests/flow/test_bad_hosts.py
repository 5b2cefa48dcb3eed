# SPDX-License-Identifier: Apache-2.0
"""--bad-hosts: what is in the file is left out, spares take its place, and what a job finds is written."""

import fcntl
import os
import re
import signal
import stat
import sys
import time

from hostile import Hostile
from rig import Flow, main

SILENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silent_fuse.py")

NAMES = 'echo "on $HVDRUN_HOSTNAME"'
# An agent dies in the first two epochs in which its host takes part.
LOSES = """#!/bin/sh
if [ "$HVDRUN_HOSTNAME$HVDRUN_LOCAL_RANK" = b0 ]; then echo >> lost; kill -9 $PPID; fi
while [ "$(wc -l < lost)" -lt 2 ]; do sleep 0.05; done
"""
LOSES_MOST = """#!/bin/sh
[ "$HVDRUN_EPOCH" -lt 3 ] || exit 0
kill -9 $PPID
sleep 60
"""


class BadHosts(Flow):

    def setUp(self):
        super().setUp()
        self.write("lost", "")

    def bad(self, text=None):
        if text is not None:
            return self.write("bad", text)
        with open(self.box.path("bad"), encoding="utf-8") as file:
            return [line for line in file.read().splitlines() if not line.startswith("#")]

    def used(self, result):
        self.expect(result, 0)
        return sorted(set(re.findall(r"on (\S+)", result.stdout)))

    def away(self):
        """Hosts that are this machine, but not simulated: nothing is remembered of those."""
        home = self.box.path("away")
        os.makedirs(home, exist_ok=True)
        return ["--launch-agent", f"env -u XDG_RUNTIME_DIR TMPDIR={home} HOME={home} HOST=%h"]

    def run_names(self, *args):
        return self.run_job("--transport", "local", "--bad-hosts", "bad", *args, "sh", "-c", NAMES)

    def lose(self, *args, script=LOSES):
        path = self.write("lose.sh", script, 0o755)
        return self.run_job(*self.away(), "--bad-hosts", "bad", "--on-failure", "restart", "--blacklist-after", 2, *args, path)


class LeftOut(BadHosts):

    def test_a_spare_takes_its_place(self):
        self.bad("b until=2999-01-01 job=train lost  # twice\nz\n")
        result = self.run_names("-np", 4, "-H", "a:2,b:2,c:2")
        self.assertEqual(self.used(result), ["a", "c"])
        self.assertEqual(result.stderr, "hvdrun: bad leaves out b (lost; job train)\n")

    def test_in_each_kind_of_list(self):
        self.bad("b\n")
        self.write("hosts", "a slots=1\nb slots=1\nc slots=1\n")
        self.write("discover", "#!/bin/sh\ncat hosts-found\n", 0o755)
        self.write("hosts-found", "a:1\nb:1\nc:1\n")
        for args in (["--hostfile", "hosts"], ["-H", "a,b,c", "--min-np", 2], ["--hosts-watch", "hosts", "-np", 2],
                     ["--host-discovery-script", "./discover", "-np", 2]):
            with self.subTest(args=args):
                result = self.run_names(*args)
                self.assertEqual(self.used(result), ["a", "c"])
                self.assertEqual(result.stderr.count("bad leaves out b\n"), 1, result.describe())

    def test_a_pipe(self):
        """It is read once, also for a job that discovers its hosts."""
        self.write("discover", "#!/bin/sh\nprintf 'a\\nb\\nc\\n'\n", 0o755)
        os.mkfifo(self.box.path("pipe"))
        job = self.start("--transport", "local", "--bad-hosts", "pipe", "--host-discovery-script", "./discover", "-np", 2, "sh",
                         "-c", NAMES)
        with open(self.box.path("pipe"), "w", encoding="utf-8") as pipe:
            pipe.write("b\n")
        self.assertEqual(self.used(job.wait()), ["a", "c"])

    def test_in_an_allocation(self):
        self.bad("n2\n")
        env = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_NUM_NODES": "3",
               "SLURM_TASKS_PER_NODE": "1(x3)"}
        result = self.run_job("--bad-hosts", "bad", "--dry-run", "./train", env=env)
        self.expect(result, 0)
        self.assertEqual(re.findall(r"^ +\d+ +(\S+)", result.stdout, re.M), ["n1", "n3"], result.describe())
        self.assertEqual(result.stderr, "hvdrun: bad leaves out n2\n")
        ranks = self.run_job("--bad-hosts", "bad", "--dry-run", "./train", env=dict(env, SLURM_NTASKS="3"))
        self.assertEqual(ranks.stdout, result.stdout)  # so many that the hosts do not have them any more
        result = self.run_job("--bad-hosts", "bad", "--dry-run", "-np", 3, "./train", env=env)
        self.expect_said(self.expect(result, 123), "not enough slots: .*bad leaves out n2; delete the lines")

    def test_a_rankfile_that_names_it(self):
        self.bad("b lost\n")
        self.write("ranks", "rank 0=a slot=0\nrank 1=b slot=0\n")
        result = self.run_job("--bad-hosts", "bad", "-H", "a:1,b:1", "--rankfile", "ranks", "true")
        self.expect(result, 2)
        self.assertRegex(result.stderr, r"^hvdrun: ranks:2: rank 1 is to run on b, which is not among [^\n]*; add it to -H or the "
                                        r"hostfile \(bad leaves out b \(lost\); delete the lines of hosts that are well again\)\n$")

    def test_an_order_of_names_stays(self):
        self.bad("b\n")
        result = self.run_job("--bad-hosts", "bad", "-H", "a,b,a,c", "--map-by", "seq", "--dry-run", "./train")
        self.expect(result, 0)
        self.assertEqual(re.findall(r"^ +\d+ +(\S+)", result.stdout, re.M), ["a", "a", "c"], result.describe())

    def test_expired(self):
        self.bad("b until=2020-01-01 lost\n")
        result = self.run_names("-H", "a,b")
        self.assertEqual(self.used(result), ["a", "b"])
        self.assertEqual(result.stderr, "")

    def test_no_file_yet(self):
        self.assertEqual(self.used(self.run_names("-H", "a")), ["a"])
        self.assertFalse(os.path.exists(self.box.path("bad")))

    def test_too_few_left(self):
        self.bad("b lost\nc\n")
        for args in (["-np", 3, "-H", "a:2,b:2"], ["-np", 3, "--min-np", 1, "-H", "a:2,b:2"], ["-H", "b,c"]):
            with self.subTest(args=args):
                result = self.expect(self.run_names(*args), 123)
                self.assertRegex(result.stderr, r"^hvdrun: not enough slots: [^\n]* b \(lost\)[^\n]*delete the lines of hosts "
                                                r"that are well again\)?\n$")

    def test_wrong_lines_and_files(self):
        binary = b"\x7fELF\x02\x01\x01\x00" * 100
        for text, said in (("a\nb until=soon\n", r"--bad-hosts: bad:2: 'until=soon' has no time; expected UTC, as in "
                                                 r"until=2026-11-27T10:33Z"),
                           ("import os\nos._exit(0)\n", r"--bad-hosts: bad:2: 'os._exit\(0\)' is not a host name"),
                           (binary, r"--bad-hosts: bad:1: '' is not a line of text")):
            with self.subTest(text=text):
                with open(self.box.path("bad"), "wb") as file:
                    file.write(text if isinstance(text, bytes) else text.encode())
                result = self.expect(self.run_names("-H", "a"), 2)
                self.assertRegex(result.stderr, rf"^hvdrun: {said}\n$")
        os.unlink(self.box.path("bad"))
        os.mkdir(self.box.path("bad"))
        self.expect_said(self.expect(self.run_names("-H", "a"), 2), "bad is a folder")
        result = self.expect(self.run_job("--bad-hosts", "none/bad", "-H", "a", "true"), 2)
        self.assertEqual(result.stderr, "hvdrun: --bad-hosts: the folder of none/bad does not exist\n")


class Remembered(BadHosts):

    def test_a_host_that_is_lost_again_and_again(self):
        self.bad("# mine\nz since=2020-01-01 until=2020-01-02 old\n? a line that is wrong comes later\n".replace("? ", "y "))
        os.chmod(self.box.path("bad"), 0o664)
        result = self.expect(self.lose("--job-name", "train", "-np", 2, "--max-np", 4, "-H", "a:2,b:2"), 0)
        self.expect_said(result, r"b is bad: it was lost 2 times, the last time: [^\n]*; bad remembers it for 168 h\n")
        lines = self.bad()
        self.assertEqual(lines[0], "y a line that is wrong comes later")
        self.assertRegex(lines[1], r"^b since=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ until=\S+Z job=train it was lost 2 times, the "
                                   r"last time: \S")
        self.assertEqual(len(lines), 2, lines)
        self.assertEqual(stat.S_IMODE(os.stat(self.box.path("bad")).st_mode), 0o664)
        self.assertFalse([name for name in os.listdir(self.box.work) if name.startswith("bad.")])
        self.assertEqual(self.used(self.run_names("-np", 1, "-H", "b,c")), ["c"])

    def test_most_hosts_lost_are_not_their_fault(self):
        self.bad("")
        for np in (1, 2):  # one after the other, and at once: then only one of them is blacklisted
            result = self.lose("--blacklist-after", 1, "-np", np, "-H", "a:1,b:1,c:1,d:1", "--max-np", np, script=LOSES_MOST)
            self.expect_said(self.expect(result, 0), r"bad does not remember [^\n]+: [234] of [34] hosts of this job were lost or "
                                                     r"did not end, so most likely the network, a file system or this "
                                                     r"machine is the cause\n")
            self.assertEqual(self.bad(), [])

    def test_one_host_lost_often_is_one_host(self):
        self.bad("")
        result = self.lose("--blacklist-after", 1, "--blacklist-cooldown-range", "100ms", "200ms", "-np", 2, "--max-np", 4,
                           "-H", "a:2,b:2")
        self.expect(result, 0)
        self.assertEqual([line.split()[0] for line in self.bad()], ["b"], result.describe())

    def test_not_of_simulated_hosts(self):
        result = self.lose("--transport", "local", "-np", 2, "--max-np", 4, "-H", "a:2,b:2")
        self.expect_said(self.expect(result, 0), "bad does not remember it, because --transport local only simulates hosts")
        self.assertFalse(os.path.exists(self.box.path("bad")))

    def test_never_for_a_crash(self):
        result = self.run_job(*self.away(), "--bad-hosts", "bad", "--max-restarts", 3, "--blacklist-after", 1, "-np", 2, "-H",
                              "a:1,b:1,c:1", "sh", "-c",
                              '[ "$HVDRUN_HOSTNAME" != b ] || exit 3; sleep 0.5')
        self.expect_said(self.expect(result, 0), "slot 0 of b is blacklisted")
        self.assertFalse(os.path.exists(self.box.path("bad")))

    def test_a_file_that_cannot_be_written(self):
        os.symlink("none/file", self.box.path("bad"))
        result = self.expect(self.lose("-np", 2, "--max-np", 4, "-H", "a:2,b:2"), 0)
        self.expect_said(result, r"b is bad: [^\n]*; other jobs do not learn of it: cannot open bad: ")

    def test_a_link_stays(self):
        self.write("real", "")
        os.symlink("real", self.box.path("bad"))
        self.expect(self.lose("-np", 2, "--max-np", 4, "-H", "a:2,b:2"), 0)
        self.assertTrue(os.path.islink(self.box.path("bad")))
        self.assertEqual(len(self.bad()), 1)

    def test_waits_for_another_job(self):
        self.bad("")
        with open(self.box.path("bad"), "r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = self.write("lose.sh", LOSES, 0o755)
            job = self.start(*self.away(), "--bad-hosts", "bad", "--on-failure", "restart", "--blacklist-after", 2, "-np", 2, "--max-np", 4, "-H",
                             "a:2,b:2", path)
            job.wait_output("it was lost 2 times", "stderr")
            time.sleep(0.3)  # it should wait for the lock now; if it is late, it does not need to
            self.write("new", "c by another job\n")
            os.rename(self.box.path("new"), self.box.path("bad"))
        result = self.expect(job.wait(), 0)
        self.assertEqual([line.split()[0] for line in self.bad()], ["c", "b"], result.describe())


class Unkilled(Hostile, BadHosts):
    """The kernel holds a process that reads from a server that is gone."""

    def run_stuck(self, status, *args):
        """Rank 1 leaves such a process behind."""
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.skipTest("no right to mount with /dev/fuse")
        folder, pidfile = self.box.path("mounted"), self.box.path("fuse.pid")
        os.mkdir(folder)
        script = self.write("stuck.sh", f"""#!/bin/sh
if [ "$HVDRUN_HOSTNAME" = b ]; then
    cat {folder}/batches &
    sleep 0.5
    exit {status}
fi
sleep 1
""", 0o755)
        mount = f"{sys.executable} {SILENT} {folder} {pidfile} && while test ! -s {pidfile}; do sleep 0.1; done"
        job = self.start_in_place(mount, *self.away(), "--bad-hosts", "bad", "--grace", 0, *args, script)
        job.wait_output(r"not even SIGKILL ends pid \d+ \(cat", "stderr", timeout=60)
        with open(pidfile, encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)  # the read fails then
        return self.expect(job.wait(60), 0)

    def expect_remembered(self):
        self.assertEqual(len(self.bad()), 1)
        self.assertRegex(self.bad()[0], r"^b since=\S+ until=\S+ job=\S+ not even SIGKILL ends pid \d+ \(cat")

    def test_a_process_that_is_left_behind(self):
        result = self.run_stuck(0, "-np", 2, "-H", "a,b")
        self.expect_said(result, r"b: not even SIGKILL ends pid \d+ \(cat[^)]*\); most likely it waits for a file system or a "
                                 r"device: look there, or restart the host")
        self.expect_remembered()

    def test_the_job_goes_on_elsewhere(self):
        result = self.run_stuck(3, "-np", 2, "-H", "a,b,c", "--max-restarts", 1)
        self.expect_said(result, r"b is blacklisted for the rest of the job: not even SIGKILL ends pid \d+ \(cat")
        self.expect_said(result, r"epoch \d: 2 ranks on 2 hosts \([^)]*added c")
        self.assertEqual(result.stderr.count("not even SIGKILL ends"), 3, result.describe())  # and its two consequences
        self.expect_remembered()


if __name__ == "__main__":
    main()
