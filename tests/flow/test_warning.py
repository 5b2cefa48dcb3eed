# SPDX-License-Identifier: Apache-2.0
"""The warning signal, the map of signals and --slurm-requeue, without Slurm: the variables of a job and a scontrol
of our own, first on PATH, that says what the test wants and writes down how it was called."""
# ctest waits

import json
import os
import re
import signal
import time

from rig import Flow, main, wait_until, worker

SCONTROL = """#!/bin/sh
echo "$@" >> scontrol.log
test "$TZ" = UTC0 || exit 9
case $1 in
show) test ! -e show.wait || sleep 60
      test ! -e show.error || { cat show.error >&2; exit 1; }
      cat job ;;
requeue) test ! -e requeue.wait || sleep 60
      test ! -e requeue.term || kill -TERM $$
      test ! -e requeue.error || { cat requeue.error >&2; exit 1; } ;;
*) exit 8 ;;
esac
"""

# Prints the deadline file when the signal comes, and ends with CODE, or not at all.
SAVER = """#!/bin/bash
save() { echo "saving, deadline $(cut -d' ' -f2- "$HVDRUN_DEADLINE_FILE" 2>/dev/null)"; %s; }
trap save USR1 USR2 TERM INT
echo ready
while :; do sleep 0.05; done
"""


def utc(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


class Slurm(Flow):
    """A test that believes to be in Slurm's job 77."""

    def setUp(self):
        super().setUp()
        self.write("bin/scontrol", SCONTROL, 0o755)
        self.environ = {"SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "localhost", "SLURM_JOB_NUM_NODES": "1",
                        "SLURM_TASKS_PER_NODE": "8", "SLURM_JOB_CPUS_PER_NODE": "8",
                        "PATH": self.box.path("bin") + ":" + os.environ["PATH"]}
        self.say(left=120)

    def say(self, left=None, state="RUNNING", more=""):
        """What scontrol answers from now on; `left`: seconds until the end."""
        end = utc(time.time() + left) if left is not None else "Unknown"
        self.write("job", f"JobId=77 JobName=x UserId=root(0) JobState={state} Reason=None Requeue=1 Restarts=0 BatchFlag=1 "
                          f"StartTime={utc(0)} EndTime={end} {more}Command=(null)\n")

    def saver(self, then="exit 0"):
        return self.write("saver", SAVER % then, 0o755)

    def start_job(self, *args, ranks=2, env=None):
        job = self.start("-np", ranks, *args, env={**self.environ, **(env or {})})
        job.wait_output("ready", count=ranks)
        return job

    def calls(self):
        try:
            with open(self.box.path("scontrol.log"), encoding="ascii") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []


class Requeue(Slurm):

    def test_warned_saved_and_put_back(self):
        report, events = self.box.path("report"), self.box.path("events")
        job = self.start_job("--slurm-requeue", "--report", report, "--events", events, self.saver())
        job.signal(signal.SIGUSR1)
        result = self.expect(job.wait(), 120)
        self.assertEqual(result.stdout.count("saving, deadline warning signal SIGUSR1"), 2, result.describe())
        self.expect_said(result, r"warning signal SIGUSR1: the workers have 1\d\d s to exit; then "
                                 r"hvdrun requeues the job; the job's time ends at \S+")
        self.expect_said(result, "warning signal SIGUSR1: requeuing the Slurm job 77")
        self.assertEqual(self.calls(), ["show job -o 77", "requeue 77"])
        written = self.read_json(report)
        self.assertEqual(written["job"]["status"], 120)
        self.assertEqual(written["job"]["cause"]["kind"], "requeued")
        self.assertEqual([rank["exit_code"] for rank in written["ranks"]], [0, 0])
        self.assertEqual(written["scheduler"]["name"], "Slurm")
        self.assertEqual(written["scheduler"]["job_id"], "77")
        self.assertEqual(written["scheduler"]["restart_count"], 0)
        with open(events, encoding="utf-8") as file:
            last = [json.loads(line) for line in file][-1]
        self.assertEqual((last["event"], last["status"]), ("job_end", 120))

    def test_whatever_the_workers_end_with(self):
        for then in ("exit 7", "kill -KILL $$", "exit $RANK"):
            with self.subTest(then=then):
                job = self.start_job("--slurm-requeue", self.saver(then))
                job.signal(signal.SIGUSR1)
                self.expect(job.wait(), 120)
        job = self.start_job("--slurm-requeue", worker("hang"))  # which has no handler
        job.signal(signal.SIGUSR1)
        self.expect(job.wait(), 120)

    def test_the_others_may_go_on_saving(self):
        # rank 0 ends badly at once; nobody is ended for that
        gate, let_go = self.box.gate()
        job = self.start_job("--slurm-requeue", "--grace", 1,
                             self.saver(f"test $RANK = 1 || exit 9; while ! test -e {gate}; do sleep 0.05; done; "
                                        "echo saved; exit 0"))
        job.signal(signal.SIGUSR1)
        job.wait_output("saving", count=2)
        wait_until(lambda: len(job.workers()) <= 1, "the end of rank 0")
        time.sleep(2)
        let_go()
        self.assertIn("[1]<stdout>:saved", self.expect(job.wait(), 120).lines)

    def test_those_that_stay_are_ended_before_the_deadline(self):
        self.say(left=3)
        job = self.start_job("--slurm-requeue", worker("stubborn"))
        job.signal(signal.SIGUSR1)
        result = self.expect(job.wait(40), 120)
        self.expect_said(result, "the workers' time is over: sending SIGTERM")
        self.assertEqual(self.calls()[-1], "requeue 77")

    def test_a_failure_before_the_warning_is_a_failure(self):
        result = self.run_job("-np", 2, "--slurm-requeue", worker("exit_with"), "0:3", env=self.environ)
        self.expect(result, 3)
        self.assertEqual(self.calls(), [])
        result = self.run_job("-np", 2, "--slurm-requeue", "true", env=self.environ)
        self.expect(result, 0)
        self.assertEqual(self.calls(), [])

    def test_what_scontrol_refuses(self):
        self.write("requeue.error", "Requested operation is presently disabled for job 77\n")
        report, events = self.box.path("report"), self.box.path("events")
        job = self.start_job("--slurm-requeue", "--report", report, "--events", events, self.saver())
        job.signal(signal.SIGUSR1)
        result = self.expect(job.wait(), 125)
        self.expect_said(result, "cannot requeue the Slurm job 77: .*presently disabled.*--requeue")
        self.assertEqual(self.read_json(report)["job"]["status"], 125)
        with open(events, encoding="utf-8") as file:
            self.assertEqual([json.loads(line) for line in file][-1]["status"], 125)

    def test_slurm_ends_scontrol_too(self):
        # it belongs to the job that has been put back
        self.write("requeue.term", "")
        job = self.start_job("--slurm-requeue", self.saver())
        job.signal(signal.SIGUSR1)
        self.expect(job.wait(), 120)

    def test_it_is_told_while_it_can_be_changed(self):
        for word, said in (("Requeue", "scontrol update jobid=77 requeue=1"), ("BatchFlag", "no batch script")):
            self.say(left=100)
            with open(self.box.path("job"), encoding="ascii") as file:
                shown = file.read()
            self.write("job", shown.replace(f" {word}=1", f" {word}=0"))
            job = self.start_job("--slurm-requeue", self.saver())
            job.signal(signal.SIGUSR1)
            self.expect_said(self.expect(job.wait(), 120), f"Slurm will not requeue this job.*{said}")

    def test_a_scontrol_that_hangs(self):
        self.write("requeue.wait", "")
        self.write("show.wait", "")
        job = self.start_job("--slurm-requeue", self.saver())
        job.signal(signal.SIGUSR1)
        result = self.expect(job.wait(60), 125)
        self.expect_said(result, "cannot ask Slurm how much time the job has left: scontrol did not end within 5 s")
        self.expect_said(result, "cannot requeue the Slurm job 77: scontrol did not end within 10 s")

    def test_no_scontrol(self):
        os.unlink(self.box.path("bin/scontrol"))
        result = self.run_job("--slurm-requeue", "-np", 1, "true", env={**self.environ, "PATH": self.box.path("bin")})
        self.expect(result, 2)
        self.expect_said(result, "--slurm-requeue: cannot find Slurm's scontrol")

    def test_not_in_slurm(self):
        result = self.run_job("--slurm-requeue", "-np", 1, "true")
        self.expect(result, 2)
        self.expect_said(result, "--slurm-requeue: this is not a Slurm job")
        self.expect_said(self.expect(self.run_job("--slurm-requeue", "--dry-run", "-np", 1, "true"), 2), "not a Slurm job")

    def test_an_elastic_job(self):
        for then in ("exit 0", "exit 5"):
            with self.subTest(then=then):
                job = self.start_job("--slurm-requeue", "--max-restarts", 3, self.saver(then))
                job.signal(signal.SIGUSR1)
                result = self.expect(job.wait(), 120)
                self.assertEqual(result.stdout.count("ready"), 2, result.describe())  # nobody was started anew

    def test_the_user_changes_his_mind(self):
        # after the warning, Ctrl-C: this job does not come back
        job = self.start_job("--slurm-requeue", self.saver("true"))
        job.signal(signal.SIGUSR1)
        job.wait_output("saving", count=2)
        job.signal(signal.SIGINT)
        job.wait_output("saving", count=4)
        job.signal(signal.SIGINT)
        job.wait_output("saving", count=6)
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 128 + signal.SIGUSR1)
        self.assertNotIn("requeue 77", self.calls())


class Term(Slurm):
    """SIGTERM with --slurm-requeue: from Slurm, which takes the nodes away, or from somebody?"""

    def test_slurm_ends_the_job(self):
        for state, more in (("RUNNING", f"PreemptTime={utc(time.time())} "), ("TIMEOUT", ""), ("PREEMPTED", ""),
                            ("COMPLETING", f"PreemptTime={utc(time.time())} ")):
            with self.subTest(state=state):
                self.say(left=20 if more else -1, state=state, more=more)
                job = self.start_job("--slurm-requeue", self.saver())
                job.signal(signal.SIGTERM)
                result = self.expect(job.wait(), 120)
                self.assertEqual(result.stdout.count("saving, deadline warning signal SIGTERM"), 2, result.describe())
                self.assertEqual(self.calls()[-1], "requeue 77")

    def test_the_user_ends_the_job(self):
        for state in ("CANCELLED", "COMPLETING", "RUNNING"):
            with self.subTest(state=state):
                self.say(left=100, state=state)
                job = self.start_job("--slurm-requeue", worker("hang"))
                job.signal(signal.SIGTERM)
                self.expect(job.wait(), 143)
                self.assertNotIn("requeue 77", self.calls())

    def test_slurm_is_slower_than_its_signal(self):
        job = self.start_job("--slurm-requeue", self.saver())
        job.signal(signal.SIGTERM)
        wait_until(lambda: len(self.calls()) == 1, "the question")
        self.say(left=20, more=f"PreemptTime={utc(time.time())} ")
        self.expect(job.wait(), 120)

    def test_nobody_knows(self):
        self.write("show.error", "slurm_load_jobs error: Unable to contact slurm controller\n")
        job = self.start_job("--slurm-requeue", worker("hang"))
        job.signal(signal.SIGTERM)
        result = self.expect(job.wait(), 143)
        self.expect_said(result, "cannot ask Slurm.*Unable to contact slurm controller")

    def test_after_the_warning(self):
        # the time limit came before the workers were done; the second TERM is the user's word
        job = self.start_job("--slurm-requeue", self.saver("test -e saved && exit 0"))
        job.signal(signal.SIGUSR1)
        job.wait_output("saving", count=2)
        self.say(left=-1, state="TIMEOUT")
        self.write("saved", "")
        job.signal(signal.SIGTERM)
        result = self.expect(job.wait(40), 120)
        self.assertEqual(self.calls(), ["show job -o 77", "show job -o 77", "requeue 77"], result.describe())

    def test_a_second_one_waits_for_no_answer(self):
        self.write("show.wait", "")
        job = self.start_job("--slurm-requeue", worker("hang"))
        job.signal(signal.SIGTERM)
        wait_until(lambda: len(self.calls()) == 1, "the question")
        job.signal(signal.SIGTERM)
        self.expect(job.wait(4), 143)


class Warn(Slurm):
    """Without --slurm-requeue."""

    def test_usr1_in_slurm_only_warns(self):
        job = self.start_job(worker("signals"), "--exit-on", "USR2")
        for count in (1, 2, 3):
            job.signal(signal.SIGUSR1)
            job.wait_output("got SIGUSR1", count=2 * count)
        job.wait_output(r"warning signal SIGUSR1: the job's time ends at \S+, in 1\d\d s", name="stderr")
        self.assertEqual(self.calls(), ["show job -o 77"])  # not asked again and again
        job.signal(signal.SIGUSR2)
        self.expect(job.wait(), 0)

    def test_the_job_ends_before_the_answer(self):
        self.write("show.wait", "")
        job = self.start_job(worker("signals"), "--exit-on", "USR2")
        job.signal(signal.SIGUSR1)
        job.wait_output("got SIGUSR1", count=2)
        wait_until(lambda: len(self.calls()) == 1, "the question")
        job.signal(signal.SIGUSR2)
        self.expect(job.wait(4), 0)  # scontrol is ended, not waited for

    def test_the_deadline_file_follows(self):
        job = self.start_job(self.write("reader", """#!/bin/bash
trap 'echo warned' USR1
echo ready
while ! test -e "$HVDRUN_DEADLINE_FILE"; do sleep 0.05; done
read seconds why < "$HVDRUN_DEADLINE_FILE"
echo "$seconds $why"
""", 0o755), ranks=1)
        now = time.time()
        job.signal(signal.SIGUSR1)
        result = self.expect(job.wait(), 0)
        at = re.search(r"([\d.]+) warning signal SIGUSR1", result.stdout)
        self.assertTrue(at, result.describe())
        self.assertTrue(now + 60 < float(at.group(1)) < now + 180, result.describe())

    def test_the_end_of_the_variable_is_taken_when_scontrol_fails(self):
        self.write("show.error", "no\n")
        self.environ["SLURM_JOB_END_TIME"] = str(int(time.time()) + 300)
        job = self.start_job("--warn-signal", "USR2", self.saver("exit 0"))
        job.signal(signal.SIGUSR2)
        result = self.expect(job.wait(), 0)
        self.expect_said(result, r"the workers have 2\d\d s to exit")

    def test_named_it_ends_the_job(self):
        job = self.start_job("--warn-signal", "USR2", self.saver("exit 4"))
        job.signal(signal.SIGUSR1)  # which is none now
        job.wait_output("saving")
        self.assertEqual(self.calls(), [])
        self.expect(job.wait(), 4)
        job = self.start_job("--warn-signal", "USR2", self.saver("exit 4"))
        job.signal(signal.SIGUSR2)
        result = self.expect(job.wait(), 128 + signal.SIGUSR2)
        self.assertEqual(result.stdout.count("saving"), 2, result.describe())
        self.expect_said(result, "warning signal SIGUSR2: not all workers exited with 0")

    def test_outside_of_slurm_the_grace_counts(self):
        for grace, said in (([], "30 s"), (["--grace", 12], "12 s")):
            job = self.start("-np", 2, *grace, "--warn-signal", "ALRM", "--map-signal", "ALRM:USR1", self.saver())
            job.wait_output("ready", count=2)
            job.signal(signal.SIGALRM)
            result = self.expect(job.wait(), 0)
            self.assertEqual(result.stdout.count("saving, deadline warning signal SIGALRM"), 2, result.describe())
            self.expect_said(result, f"warning signal SIGALRM: the workers have {said} to exit")

    def test_none(self):
        job = self.start_job("--warn-signal", "none", worker("signals"), "--exit-on", "USR2")
        job.signal(signal.SIGUSR1)
        job.wait_output("got SIGUSR1", count=2)
        job.signal(signal.SIGUSR2)
        self.expect(job.wait(), 0)
        self.assertEqual(self.calls(), [])


class Map(Flow):

    def test_workers_get_the_other_one(self):
        pairs = (("USR1", "TERM"), ("INT", "USR2"), ("TERM", "HUP"), ("QUIT", "QUIT"))
        mapped = ",".join(":".join(pair) for pair in pairs)
        for sent, got in pairs:
            with self.subTest(sent=sent):
                job = self.start("-np", 2, "--map-signal", mapped, worker("signals"), "--exit-on", got)
                job.wait_output("ready", count=2)
                job.signal(getattr(signal, "SIG" + sent))
                result = self.expect(job.wait(), 0)
                self.assertEqual(result.stdout.count(f"got SIG{got}"), 2, result.describe())
                self.assertEqual(result.stdout.count("got SIG"), 2, result.describe())

    def test_the_status_is_of_the_signal_that_came(self):
        job = self.start("-np", 2, "--map-signal", "INT:USR1", worker("hang"))
        job.wait_output("ready", count=2)
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)

    def test_what_cannot_be(self):
        for option, value, said in (("--map-signal", "USR1:KILL", "SIGKILL cannot be passed on"),
                                    ("--map-signal", "USR1", "expected FROM:TO"),
                                    ("--warn-signal", "FOO", "'FOO' is not a signal"),
                                    ("--warn-signal", "KILL", "hvdrun does not pass SIGKILL on")):
            for dry in ([], ["--dry-run"]):
                with self.subTest(value=value, dry=dry):
                    result = self.expect(self.run_job(*dry, "-np", 1, option, value, "true"), 2)
                    self.expect_said(result, f"{option}.*{said}")


class Agents(Flow):
    """A scheduler's signal to all processes of a job: agents and launcher get it, the workers only once."""

    def test_an_agent_tells_the_launcher(self):
        job = self.start("-H", "a,b", "--transport", "local", worker("signals"), "--exit-on", "USR2")
        job.wait_output("ready", count=2)
        agents = job.agents()
        self.assertEqual(len(agents), 2, job.describe())
        for agent in agents:
            os.kill(agent.pid, signal.SIGUSR1)
        job.signal(signal.SIGUSR1)
        job.wait_output("got SIGUSR1", count=2)
        time.sleep(0.5)
        self.assertEqual(job.output().count("got SIGUSR1"), 2, job.describe())
        os.kill(agents[1].pid, signal.SIGUSR2)
        self.expect(job.wait(), 0)

    def test_the_end_is_wanted_once(self):
        job = self.start("-H", "a,b,c,d", "--transport", "local", "--grace", 30, worker("signals"), "--exit-on", "USR1")
        job.wait_output("ready", count=4)
        agents = job.agents()
        for agent in agents:
            os.kill(agent.pid, signal.SIGTERM)
        job.signal(signal.SIGTERM)
        job.wait_output("got SIGTERM", count=4)
        time.sleep(0.5)  # five wishes would have killed them
        self.assertEqual(len(job.workers()), 4, job.describe())
        job.signal(signal.SIGUSR1)
        self.expect(job.wait(), 0)

    def test_other_signals_do_not_end_an_agent(self):
        job = self.start("-H", "a,b", "--transport", "local", worker("signals"), "--exit-on", "USR2")
        job.wait_output("ready", count=2)
        for agent in job.agents():
            for name in ("ALRM", "VTALRM", "PROF", "URG", "IO", "PWR", "XCPU"):
                os.kill(agent.pid, getattr(signal, "SIG" + name))
        time.sleep(0.5)
        self.assertEqual(len(job.agents()), 2, job.describe())
        job.signal(signal.SIGUSR2)
        self.expect(job.wait(), 0)


class Restarted(Slurm):
    """After a requeue: SLURM_RESTART_COUNT is not 0."""

    def test_logs_go_on(self):
        files, events, report = (self.box.path(name) for name in ("out", "events", "report"))
        argv = ["-np", 2, "--output-filename", files, "--events", events, "--report", report, "sh", "-c",
                "echo run ${SLURM_RESTART_COUNT-0}"]
        for count in (None, 1, 2):
            env = {**self.environ, **({} if count is None else {"SLURM_RESTART_COUNT": str(count)})}
            self.expect(self.run_job(*argv, env=env), 0)
        with open(self.box.path("out/rank.1/stdout"), encoding="ascii") as file:
            self.assertEqual(file.read(), "run 0\nrun 1\nrun 2\n")
        with open(events, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["event"] for line in file].count("job_end"), 3)
        self.assertEqual(self.read_json(report)["scheduler"]["restart_count"], 2)
        # a job that begins writes anew
        self.expect(self.run_job(*argv, env=self.environ), 0)
        with open(self.box.path("out/rank.1/stdout"), encoding="ascii") as file:
            self.assertEqual(file.read(), "run 0\n")

    def test_the_report_outside_of_slurm(self):
        report = self.box.path("report")
        self.expect(self.run_job("--report", report, "true"), 0)
        self.assertIsNone(self.read_json(report)["scheduler"])


if __name__ == "__main__":
    main()
