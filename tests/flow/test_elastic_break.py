# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs under attack: what once broke them."""
# ctest waits

import json
import os
import re
import signal
import subprocess

from elastic import Elastic
from rig import Flow, main, mpi_worker, patient, wait_until, worker


class Break(Elastic, Flow):

    def events_of(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def wait_marks(self, count, name="up"):
        """Until so many workers have made a file of that name and their rank."""
        wait_until(lambda: sum(one.startswith(name) for one in os.listdir(self.box.work)) >= count, f"{count} workers")

    # nothing is left

    def test_driver_is_killed(self):
        """Its control socket goes with it, though nobody but the agents can remove it."""
        job = self.start_elastic("-H", "a:1,b:1", "--min-np", 1, "sh", "-c", "touch up$RANK; exec sleep 100")
        self.wait_marks(2)
        job.signal(signal.SIGKILL)
        self.assertEqual(job.wait().status, -signal.SIGKILL)
        self.box.check_nothing_left()

    def test_an_agent_hangs(self):
        """It is lost, and goes with all that is below it at once, not at the end of the job; so do its folders."""
        gate, let_go = self.box.gate()
        job = self.start_elastic(
            "-H", "a:1,b:1", "--min-np", 1, "--max-preemptions", 9, "--node-timeout", patient(1.5), "--grace", "1s", "sh", "-c",
            f"touch up$RANK; while ! test -e '{gate}'; do sleep 0.1; done")
        self.wait_marks(2)
        agent = self.agent_of(job, "a")
        workers = [one.pid for one in job.tree() if one.ppid == agent.pid]
        os.kill(agent.pid, signal.SIGSTOP)
        job.wait_output("lost a: no heartbeat", "stderr")
        wait_until(lambda: not {agent.pid, *workers} & {one.pid for one in job.tree() if one.state != "Z"}, "they end")
        job.wait_output("epoch 2: ", "stderr")
        let_go()
        self.expect(job.wait(), 0)
        self.box.check_nothing_left()

    def test_a_worker_asks_without_end(self):
        """The driver holds two requests for each worker and some; more are refused, and the job goes on."""
        script = self.write("ask.py", """
import os, selectors, socket
address = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
answers, ready = [], selectors.DefaultSelector()
for _ in range(60):
    one = socket.create_connection(address)
    one.sendall(b"GET /rank_and_size/a:0 HTTP/1.1\\r\\n\\r\\n")
    ready.register(one, selectors.EVENT_READ)
while len(answers) < 30:
    for key, _ in ready.select():
        answers.append(key.fileobj.recv(4096).split()[1].decode())
        ready.unregister(key.fileobj)
print("answers", *sorted(set(answers)), flush=True)
ready.select(100)
""")
        job = self.start_elastic("-H", "a:2", "--min-np", 1, "sh", "-c", f"test $RANK = 1 && exec sleep 100; exec python3 {script}")
        job.wait_output("answers 503$")
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 128 + signal.SIGTERM)

    # a training that is over does not begin again

    def test_a_host_is_lost_after_a_rank_has_succeeded(self):
        """On the other host, the work after the training goes on when the host is lost."""
        job = self.start_elastic(
            "-H", "a:1,b:1", "--min-np", 1, "--grace", 1, "sh", "-c",
            '"$@" || exit; test $HVDRUN_HOSTNAME = a || { echo uploads; exec sleep 100; }', "sh",
            worker("elastic_horovod"), "--steps", 5, "--step-ms", 5, "--alarm", 100)
        job.wait_output("uploads")
        job.wait_output("final steps=5")
        wait_until(lambda: not any(one.environ().get("HVDRUN_HOSTNAME") == "a" for one in job.tree()), "rank 0 has ended")
        os.kill(self.agent_of(job, "b").pid, signal.SIGKILL)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, "lost b: .*; the workers do not start again, because 1 of 2 had exited with code 0")
        self.assertEqual(result.stdout.count("final steps=5"), 1, result.describe())

    def test_a_host_is_lost_before_its_output_is_read(self):
        """All ranks have ended with 0. A child that holds the output of rank 1 kills the agent when the job ends."""
        script = self.write("last.sh", """
if [ $RANK = 1 ]; then
    agent=$PPID
    (trap "kill -9 $agent" TERM; touch holds; while :; do sleep 0.05; done) &
    while ! test -e holds; do sleep 0.05; done
fi
echo "rank $RANK ends"
""")
        result = self.expect(self.start_elastic("-H", "a:1,b:1", "--min-np", 1, "--grace", 5, "sh", script).wait(), 121)
        self.expect_said(result, "lost b: .*; all ranks exited with code 0, but output of rank 1 may be missing")

    # the end is told, and comes

    def test_interrupted(self):
        job = self.start_elastic("-H", "a:1,b:1", "--min-np", 1, "sh", "-c", "touch up$RANK; exec sleep 100")
        self.wait_marks(2)
        job.signal(signal.SIGTERM)
        result = self.expect(job.wait(), 128 + signal.SIGTERM)
        self.expect_said(result, "interrupted \\(SIGTERM\\)")
        self.expect_not_said(result, "succeeded")

    def test_interrupted_without_hosts(self):
        script = self.write("none.sh", "#!/bin/sh\n", 0o755)
        job = self.start_elastic("--host-discovery-script", script, "true")
        job.wait_output("waiting for 1 more slot: 0 found, at least 1 needed", "stderr")
        job.signal(signal.SIGINT)
        result = self.expect(job.wait(), 128 + signal.SIGINT)
        self.expect_said(result, "interrupted \\(SIGINT\\)")

    def test_too_few_slots_at_the_start(self):
        result = self.run_job(*self.where, "-H", "a:2,b:2", "-np", 9, "--min-np", 1, "--elastic-timeout", "2s", "true")
        self.expect(result, 123)
        self.expect_said(result, "waiting for 5 more slots: 4 found, at least 9 needed")

    def test_the_end_while_waiting_after_a_restart(self):
        """The agents have ended the workers of the epoch already, and are asked to end a second time."""
        events = self.box.path("events")
        self.set_hosts("a:2", "b:2")
        job = self.start_elastic(
            *self.discover("a:2", "b:2"), "--np", 4, "--min-np", 4, "--on-failure", "restart", "--grow-delay", "0",
            "--events", events, "--grace", 1, "sh", "-c", "touch up$RANK; exec sleep 100")
        self.wait_marks(4)
        self.set_hosts("a:2")
        job.wait_output("waiting for 2 more slots", "stderr")
        job.signal(signal.SIGINT)
        result = self.expect(job.wait(), 128 + signal.SIGINT)
        self.expect_said(result, "interrupted \\(SIGINT\\)")
        self.assertNotIn("node_lost", self.events_of(events), "an agent did not answer the second end")

    def test_crashes_in_one_slot(self):
        """It is needed, so it is not put aside: the restarts are counted, and then the program's status tells."""
        result = self.run_job(*self.where, "-H", "a:2,b:2", "--max-restarts", 5, "sh", "-c",
                              "test $RANK != 1 || exit 4; exec sleep 100")
        self.expect(result, 4)
        self.expect_said(result, "rank 1 on a exited with code 4; no more restarts: 5 allowed")
        self.expect_not_said(result, "blacklisted|waiting for")

    def test_not_executed(self):
        """The reason is told, not only the status."""
        job = self.start_elastic("-H", "a:1", "--max-restarts", 0, "--on-failure", "restart", "./program")
        result = self.expect(job.wait(), 127)
        self.expect_said(result, "cannot execute ./program: No such file")

    def test_mpi_abort(self):
        """Its status is the job's, whatever ended the process that called it."""
        for kind in ("mpich", "openmpi"):
            with self.subTest(kind):
                result = self.run_job(*self.where, "-np", 2, "-H", "a:1,b:1", "--max-restarts", 1,
                                      mpi_worker("mpi_abort", kind), 0, 5)
                self.expect(result, 5)
                self.expect_said(result, "rank 0 on a exited with code 5; no more restarts: 1 allowed")

    def test_nobody_reads_and_the_user_insists(self):
        """After the third time, which kills the workers, hvdrun waits for no agent and then for no reader."""
        job = self.start_elastic("-H", "a:1,b:1", "--max-restarts", 2, worker("spew"), "--for-ever", stdout="hold")
        wait_until(lambda: sum(one.comm == "spew" for one in job.tree()) == 2, "two workers")

        def insist():
            job.signal(signal.SIGINT)
            try:
                return job.popen.wait(0.5) is not None
            except subprocess.TimeoutExpired:
                return False
        for _ in range(20):
            if insist():
                break
        self.expect(job.wait(), 128 + signal.SIGINT)

    # many epochs

    def test_two_hundred_epochs(self):
        result = self.run_job(*self.where, "-H", "a:2,b:2", "--max-restarts", 250, "sh", "-c", "test $HVDRUN_EPOCH -gt 200")
        self.expect(result, 0)
        self.expect_said(result, "epochs: 200 crashes, 0 hosts lost")

    def test_an_epoch_that_ends_while_it_starts(self):
        """The host a is told to end its workers when it has started some of them. The others have nothing to end."""
        script = 'test $HVDRUN_EPOCH -le 5 || exit 0; test $HVDRUN_HOSTNAME = a || exit 1; exec sleep 1000'
        result = self.run_job(*self.where, "-H", "a:150,b:1", "--max-restarts", 10, "sh", "-c", script, timeout=120)
        self.expect(result, 0)
        self.expect_said(result, "6 epochs: 5 crashes, 0 hosts lost")

    def test_ranks_that_never_ran_did_not_succeed(self):
        """The epoch ends while the host a starts its ranks, and the job waits for the host b, which has gone."""
        report = self.box.path("report")
        self.set_hosts("a:150", "b:1")
        script = 'test $HVDRUN_HOSTNAME = a && exec sleep 1000; echo a:150 > "$1.new"; mv "$1.new" "$1"; exit 1'
        job = self.start_elastic(
            *self.discover("a:150", "b:1"), "-np", 151, "--min-np", 151, "--max-restarts", 10, "--grow-delay", "0", "--report", report,
            "sh", "-c", script, "sh", self.box.path("hosts"))
        job.wait_output("waiting for 1 more slot", "stderr", timeout=120)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 128 + signal.SIGTERM)
        with open(report, encoding="utf-8") as file:
            ranks = json.load(file)["ranks"]
        self.assertEqual(len(ranks), 151)
        self.assertEqual([one for one in ranks if one["exit_code"] == 0], [])

    def test_all_members_die_while_newcomers_start(self):
        """The first newcomer kills the only member. The others of its host have nothing to end."""
        gate, _ = self.box.gate("may-end")
        events, pid = self.box.path("events"), self.box.path("pid")
        script = ('if test $HVDRUN_HOSTNAME = a; then echo $$ > "$1.new"; mv "$1.new" "$1"; shift; exec "$@"; fi; '
                  'test $HVDRUN_EPOCH != 2 || kill -9 $(cat "$1") 2> "$1.errors"; exec sleep 1000')
        job = self.start_elastic(
            *self.discover("a:1"), "-np", 1, "--min-np", 1, "--max-np", 151, "--max-restarts", 10, "--grow-delay", "0", "--grace", 1,
            "--events", events, "sh", "-c", script, "sh", pid, worker("elastic_horovod"), "--until", gate, "--alarm", 300)
        job.wait_output("epoch-round 1 ")
        self.set_hosts("a:1", "b:150")
        wait_until(lambda: re.search('"size": ?151', self.events_of(events)) or job.popen.poll() is not None, "all start anew", 120)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 128 + signal.SIGTERM)
        self.assertNotIn("node_lost", self.events_of(events))

    def test_mpi_starts_anew_often(self):
        for kind in ("mpich", "openmpi"):
            with self.subTest(kind):
                hello = mpi_worker("mpi_hello", kind)
                result = self.run_job(*self.where, "-np", 2, "-H", "a:1,b:1", "--max-restarts", 30, "sh", "-c",
                                      f"{hello}; test $HVDRUN_EPOCH -gt 10")
                self.expect(result, 0)
                self.expect_said(result, "epoch 11: 2 ranks on 2 hosts")


if __name__ == "__main__":
    main()
