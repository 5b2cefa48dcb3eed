# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs whose workers start anew: MPI programs (another PMIx namespace, another PMI-1 key value
space), as many workers as -np says, time for those that are asked to end, and how such a job ends."""

import os
import re
import signal
import subprocess

from elastic import Elastic
from rig import HVDRUN, Flow, is_alive, main, mpi_worker, wait_until

QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}

# In the first two epochs rank 2 dies within MPI while the others wait for it.
RING = """#!/bin/sh
echo "rank $RANK restart $TORCHELASTIC_RESTART_COUNT of at most $TORCHELASTIC_MAX_RESTARTS in ${PMIX_NAMESPACE:-none}"
[ "$RANK" != 2 ] || [ "$HVDRUN_EPOCH" -gt 2 ] || exec DIE after 2 kill
exec RING 4096 20
"""
SIZE = 'echo "rank $RANK of $WORLD_SIZE restart $TORCHELASTIC_RESTART_COUNT on $HVDRUN_HOSTNAME"; '
# It needs longer for its checkpoint than workers are given after a failure.
SAVES = """#!/bin/sh
trap 'sleep 6; echo "rank $RANK has saved"; exit 0' TERM
echo "rank $RANK of $WORLD_SIZE began"
while [ ! -e may-end ]; do sleep 0.1; done
"""


class Restart(Elastic, Flow):

    def notices(self):
        with open(self.box.path("events"), encoding="utf-8") as file:
            return [line for line in file if '"event":"notice"' in line]


class Mpi(Restart):

    def ring(self, kind, how, *args):
        text = RING.replace("DIE", mpi_worker("mpi_die", kind)).replace("RING", mpi_worker("mpi_ring", kind))
        script = self.write("ring.sh", text, 0o755)
        return self.start_elastic("-H", "a:2,b:2", f"--mpi={how}", *args, script, env=QUIET).wait(120)

    def expect_ring(self, result):
        self.expect(result, 0)
        self.assertEqual(result.stdout.count("ring of 4 ok"), 1, result.describe())
        said = re.findall(r"rank (\d) restart (\d) of at most 2 in (\S+)", result.stdout)
        self.assertEqual(sorted((int(restart), int(rank)) for rank, restart, _ in said),
                         [(restart, rank) for restart in range(3) for rank in range(4)], result.describe())
        return {restart: {space for _, number, space in said if number == restart} for restart in "012"}

    def test_open_mpi(self):
        spaces = self.expect_ring(self.ring("openmpi", "pmix", "--max-restarts", 2))
        self.assertEqual([len(names) for names in spaces.values()], [1, 1, 1], "one namespace in each epoch")
        self.assertEqual(len(set.union(*spaces.values())), 3, "and another one in each")

    def test_mpich(self):
        self.expect_ring(self.ring("mpich", "pmi1", "--max-restarts", 2))

    def test_no_more_restarts(self):
        result = self.expect(self.ring("openmpi", "pmix", "--max-restarts", 1), 137)
        self.expect_blame(result, 2, signal_number=9, host="b")
        self.expect_said(result, "max-restarts")


class Size(Restart):

    def sizes(self, result, count):
        self.expect(result, 0)
        said = re.findall(r"rank (\d) of (\d) restart (\d) on (\w)", result.stdout)
        self.assertEqual(len(said), count, result.describe())
        return said

    def test_as_many_as_asked_for(self):
        result = self.start_elastic("-np", 2, "-H", "a:2,b:2", "--max-restarts", 1, "sh", "-c", SIZE).wait()
        self.assertEqual({(size, host) for _, size, _, host in self.sizes(result, 2)}, {("2", "a")})

    def test_a_free_host_takes_over(self):
        crash = SIZE + '[ "$HVDRUN_HOSTNAME$HVDRUN_LOCAL_RANK" != a1 ] || kill -9 $PPID; sleep 0.5'
        result = self.start_elastic("-np", 2, "-H", "a:2,b:2", "--on-failure", "restart", "sh", "-c", crash).wait()
        self.expect(result, 0)
        self.assertEqual(re.findall(r"rank (\d of \d) restart 1 on (\w)", "\n".join(sorted(result.lines))),
                         [("0 of 2", "b"), ("1 of 2", "b")], result.describe())

    def test_all_slots_where_a_range_is_given(self):
        result = self.start_elastic("-np", 2, "--min-np", 1, "-H", "a:2,b:1", "sh", "-c", SIZE).wait()
        self.assertEqual({size for _, size, _, _ in self.sizes(result, 3)}, {"3"})


class Time(Restart):

    def test_for_a_checkpoint(self):
        script = self.write("worker.sh", SAVES, 0o755)
        events = self.box.path("events")
        job = self.start_elastic("-np", 2, "--min-np", 1, "-H", "a:1,b:1", "--events", events, script)
        job.wait_output(r"rank \d of 2 began", count=2)
        self.expect(self.start("drain", "b").wait(), 0)
        job.wait_output(r"rank 0 of 1 began", timeout=40)
        self.write("may-end", "")
        result = self.expect(job.wait(), 0)
        self.assertEqual(sorted(re.findall(r"rank (\d) has saved", result.stdout)), ["0", "1"], result.describe())
        self.assertTrue(any("draining b: drain requested" in line for line in self.notices()), self.notices())
        self.assertTrue(any("b has left the job" in line for line in self.notices()), self.notices())


# Rank 0 says how far it is, 10 % more each time but never more than 20 %, and fails.
STANDS_STILL = """#!/bin/sh
[ "$RANK" = 0 ] || exec sleep 60
at=$(cat saved 2> /dev/null || echo 0)
[ "$at" -ge 20 ] || at=$((at + 10))
echo "$at" > saved
[ "$1" = silent ] || echo "$at" > "$HVDRUN_PROGRESS_FILE"
echo "in epoch $HVDRUN_EPOCH"
[ "$1" = silent ] || sleep 1.5
exit 7
"""


class Idle(Restart):
    """Restarts that change nothing."""

    def run_still(self, *args):
        script = self.write("still.sh", STANDS_STILL, 0o755)
        return self.run_job("--transport", "local", "-np", 2, "-H", "a,b", "--grace", 0, "--no-progress-restarts", 1,
                            "--max-restarts", 5, script, *args)

    def test_no_progress(self):
        result = self.expect(self.run_still(), 7)
        self.expect_said(result, r"rank 0 on a exited with code 7; 1 restart in a row made no progress \(--no-progress-restarts\)")
        self.assertEqual(re.findall(r"in epoch (\d)", result.stdout), ["1", "2", "3"], result.describe())

    def test_no_reports(self):
        result = self.expect(self.run_still("silent"), 7)
        self.expect_said(result, r"no more restarts: 5 allowed \(--max-restarts\)")

    def test_a_program_that_cannot_be_executed(self):
        """It may be there in the next epoch, so it costs restarts, and no host."""
        script = self.write("script", "#!/no/such/python\n", 0o755)
        result = self.run_job("--transport", "local", "-np", 2, "-H", "a,b", "--grace", 0, "--max-restarts", 1, script)
        self.expect_said(self.expect(result, 127), r"no more restarts: 1 allowed \(--max-restarts\)")
        self.expect_not_said(result, "blacklisted for the rest")


class End(Restart):

    def test_signal(self):
        job = self.start_elastic("--min-np", 1, "-H", "a:2", "--exit-policy", "rank0", "--report", self.box.path("report"),
                                 "sh", "-c", "echo there; exec sleep 60")
        job.wait_output("there", count=2)
        job.signal(signal.SIGTERM)
        result = self.expect(job.wait(), 143)
        self.expect_said(result, "interrupted \\(SIGTERM\\)")
        self.expect_not_said(result, "succeeded")
        self.assertEqual(self.read_json(self.box.path("report"))["job"]["cause"]["kind"], "interrupted")

    def test_what_failed_on_its_own_was_not_terminated(self):
        gate, let_go = self.box.gate()
        script = ('echo "agent $PPID rank $RANK pid $$"; [ $RANK != 0 ] || exec sleep 60; '
                  'while [ ! -e "$0" ]; do sleep 0.02; done; exit 3')
        job = self.start_elastic("-np", 3, "--min-np", 3, "-H", "a:3", "--max-restarts", 0, "sh", "-c", script, gate)
        job.wait_output("agent", count=3)
        said = re.findall(r"agent (\d+) rank (\d) pid (\d+)", job.output())
        agent, pids = int(said[0][0]), [int(pid) for _, rank, pid in said if rank != "0"]
        os.kill(agent, signal.SIGSTOP)  # it learns of both exits at once
        let_go()
        wait_until(lambda: not any(map(is_alive, pids)), "two exits")
        os.kill(agent, signal.SIGCONT)
        result = self.expect(job.wait(), 3)
        self.expect_said(result, r"1 other rank failed on its own\nhvdrun: terminated 1 other rank\n")

    def test_reset_limit_reached_by_a_lost_host(self):
        crash = '[ $RANK = 0 ] || kill -9 $PPID; sleep 60'
        job = self.start_elastic("--min-np", 1, "-H", "a:1,b:1", "--reset-limit", 0, "sh", "-c", crash)
        self.expect_said(self.expect(job.wait(), 121), "reset-limit.*lost b")

    def test_reset_limit_reached_by_a_drain(self):
        job = self.start_elastic("--min-np", 1, "-H", "a:1,b:1", "--reset-limit", 0, "sh", "-c", "echo there; exec sleep 60")
        job.wait_output("there", count=2)
        self.expect(self.start("drain", "b").wait(), 0)
        result = self.expect(job.wait(), 125)
        self.expect_said(result, "reset-limit.*draining b")
        self.expect_not_said(result, "rank 0: host")

    def test_nobody_reads_the_output(self):
        argv = [HVDRUN, *self.where, "--min-np", "1", "-H", "a:1", "yes"]
        job = subprocess.Popen(argv, env=self.box.environment(), cwd=self.box.work, stdout=subprocess.PIPE)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), b"[0]<stdout>:y\n")
        job.stdout.close()
        self.assertEqual(job.wait(60), 128 + signal.SIGPIPE)


if __name__ == "__main__":
    main()
