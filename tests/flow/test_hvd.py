# SPDX-License-Identifier: Apache-2.0
"""libhvd through hvd.h: tests/hvd/*.c under hvdrun, with 1 to 4 ranks, on each engine."""
# ctest each HVD_ENGINE: self mpi gloo

import json
import os
import select
import signal
import socket

from ground import patient
from rig import BUILD, Flow, main, nightly

ENGINE = os.environ["HVD_ENGINE"]
LAUNCHER = {"self": [], "gloo": ["--controller", "gloo"], "mpi": ["--controller", "mpi"]}
PHASES = ("init", "steps", "large", "adasum", "moves", "barrier", "sets", "join", "shutdown")
ALL_SIZES = (1,) if ENGINE == "self" else (1, 2, 3, 4)
# By day. Ranks of Open MPI keep all processors busy while they wait. Only Adasum differs with more ranks.
SIZES = {"self": (1,), "gloo": (1, 2, 3), "mpi": (1, 3)}[ENGINE]
if os.environ.get("HVDRUN_NIGHTLY"):
    SIZES = ALL_SIZES



class Hvd(Flow):

    def setUp(self):
        super().setUp()
        if ENGINE != "self" and not os.path.exists(os.path.join(BUILD, f"lib/hvd/hvd-{ENGINE}.so")):
            self.skipTest(f"the engine {ENGINE} was not built")

    def run_hvd(self, size, name, *argv, env=None, options=()):
        own = dict(env or {})
        if ENGINE == "mpi":  # Open MPI leaks, in plugins that it has unloaded when sanitizers look
            own["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
        return self.run_job(*LAUNCHER[ENGINE], *options, "-np", size, os.path.join(BUILD, "tests/hvd/hvd_test_" + name), *argv, env=own, timeout=180)

    def every(self, size, name, *argv, env=None):
        result = self.expect(self.run_hvd(size, name, *argv, env=env), 0)
        for rank in range(size):
            self.assertIn(f"rank {rank} of {size}: all right", result.stdout, result.describe())
        return result

    def test_collectives(self):
        for size in SIZES:
            with self.subTest(size=size):
                self.every(size, "collectives")

    def test_collectives_with_other_knobs(self):
        """A threshold that most tensors exceed, a cache that is too small, no cycle time. More ranks differ in nothing
        else than in test_collectives, and without a cycle time they keep all processors busy."""
        knobs = {"HOROVOD_FUSION_THRESHOLD": "5000", "HOROVOD_CACHE_CAPACITY": "20", "HOROVOD_CYCLE_TIME": "0"}
        self.every(min(3, SIZES[-1]), "collectives", env=knobs)

    def test_collectives_in_a_process_set(self):
        """Of two ranks, since rank 0 is not in it."""
        if ENGINE != "self":
            self.every(3, "collectives", "set")

    def test_adasum(self):
        for size in ALL_SIZES:
            with self.subTest(size=size):
                self.every(size, "adasum")

    def test_adasum_above_the_threshold(self):
        self.every(ALL_SIZES[-1], "adasum", env={"HOROVOD_FUSION_THRESHOLD": "5000"})

    def test_places(self):
        size = SIZES[-1]
        result = self.every(size, "places")
        for rank in range(size):
            self.assertIn(f"rank {rank} of {size}: local {rank} of {size}, cross 0 of 1, homogeneous\n", result.stdout)

    def test_places_on_unequal_hosts(self):
        if ENGINE == "self":
            self.skipTest("this engine has one rank")
        result = self.expect(self.run_hvd(3, "places", options=["-H", "a:2,b:1", "--transport", "local"]), 0)
        for line in ("rank 0 of 3: local 0 of 2, cross 0 of 2", "rank 1 of 3: local 1 of 2, cross 0 of 1",
                     "rank 2 of 3: local 0 of 1, cross 1 of 2"):
            self.assertIn(line + ", not homogeneous\n", result.stdout, result.describe())

    def test_rules(self):
        for size in SIZES:
            with self.subTest(size=size):
                self.every(size, "rules")

    def test_misuse(self):
        for size in SIZES[:2]:
            with self.subTest(size=size):
                self.every(size, "misuse")

    def test_process_sets_of_mpi(self):
        if ENGINE == "mpi":
            for size in SIZES:
                with self.subTest(size=size):
                    self.every(size, "mpi_sets")

    def test_starting_again(self):
        if ENGINE != "mpi":  # MPI can be initialized once
            self.every(min(2, SIZES[-1]), "rules", 5)

    def test_idle(self):
        self.every(min(2, SIZES[-1]), "faults", "idle")

    def test_autotune(self):
        log = self.box.path("tune.csv")
        argv = ("--autotune", "--autotune-log-file", log, "--autotune-warmup-samples", 1, "--autotune-steps-per-sample", 2,
                "--autotune-bayes-opt-max-samples", 6)
        size = SIZES[-1]
        result = self.expect(self.run_hvd(size, "faults", "steps", 200, options=argv), 0)
        self.assertEqual(result.stdout.count("all right"), size, result.describe())
        with open(log, encoding="utf-8") as file:
            header, *rows = file.read().splitlines()
        self.assertEqual(header, "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,"
                                 "cycle_time_ms,tensor_fusion_threshold,score")
        self.assertEqual(len(rows), 7, rows)  # the last one is the best
        self.assertEqual(rows[0].rsplit(",", 1)[0], "0,0,0, 1,1,128")
        self.assertEqual(len(set(row.rsplit(",", 1)[0] for row in rows[:6])), 6, rows)
        self.assertIn(rows[6], rows[:6])

    def test_autotune_cannot_write_its_log(self):
        options = ("--autotune", "--autotune-log-file", "/nowhere/log")
        result = self.run_hvd(1, "faults", "steps", 5, options=options)
        self.assertIn("libhvd: warning: cannot write the autotune log '/nowhere/log'", self.expect(result, 0).stderr)

    def test_a_slow_set_does_not_delay_another_one(self):
        if ENGINE != "self":
            self.every(4, "faults", "slow")

    def test_large_tensors_among_small_ones(self):
        for size in [size for size in SIZES if size > 2]:
            with self.subTest(size=size):
                self.every(size, "faults", "lanes", 10)

    def timeline(self, *options):
        """The names of all events of a job, and the tensors that went through the fusion buffer."""
        path = self.box.path("timeline.json")
        argv = ("--timeline-filename", path, "--timeline-mark-cycles", *options)
        self.expect(self.run_hvd(3, "rules", options=argv), 0)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        rows = {event["pid"]: event["args"].get("name") for event in events if event.get("name") == "process_name"}
        copied = {rows[event["pid"]] for event in events if event.get("name") == "MEMCPY_IN_FUSION_BUFFER"}
        return {event.get("name") for event in events}, copied

    def test_timeline(self):
        if ENGINE != "self":
            names, copied = self.timeline()
            phases = {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "NEGOTIATE_BROADCAST", "REDUCESCATTER", "CYCLE_START",
                      "MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER", ENGINE.upper() + "_ALLREDUCE"}
            self.assertEqual(phases - names, set(), names)
            self.assertIn("g0", copied)  # of a group, whose tensors are ready together
            self.assertNotIn("g0", self.timeline("--fusion-threshold-mb", 0)[1])

    def test_a_rank_shuts_down_early(self):
        if ENGINE != "self":
            self.every(3, "faults", "leaves")

    def test_a_rank_exits_without_shutting_down(self):
        if ENGINE == "gloo":
            result = self.expect(self.run_hvd(3, "faults", "exits"), 0)
            self.assertEqual(result.stdout.count("all right"), 3, result.describe())

    def test_the_end_waits_for_a_rank_that_is_late(self):
        """The root of a set once closed its connections when the first of the others had gone."""
        if ENGINE == "gloo":
            self.every(4, "faults", "late")

    def test_stall(self):
        if ENGINE == "gloo":
            result = self.every(3, "faults", "stall", env={"HOROVOD_STALL_CHECK_TIME_SECONDS": "1"})
            # the launcher prints what the library reports over the line
            self.assertIn("ranks 0,2 wait for rank 1 in barrier 'barrier', for 1 s", result.stderr)
            self.assertNotIn("libhvd: warning", result.stderr)
            env = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "2"}
            self.every(3, "faults", "gives_up", env=env)

    def test_what_was_stalled_goes_on(self):
        """This test is the agent at the other end of the line."""
        if ENGINE != "gloo":
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind("")  # the kernel chooses the name
            server.listen()
            script = f'HVDRUN_LINE=@{server.getsockname()[1:].decode()} exec "$0" stall'
            job = self.start(*LAUNCHER[ENGINE], "-np", 2, "sh", "-c", script, os.path.join(BUILD, "tests/hvd/hvd_test_faults"),
                             env={"HOROVOD_STALL_CHECK_TIME_SECONDS": "1"})
            server.settimeout(patient(60))
            lines = [server.accept()[0] for _ in range(2)]
            types = {}
            while lines:
                for line in select.select(lines, [], [], patient(60))[0]:
                    packet = line.recv(4096)
                    types.setdefault(line.fileno(), []).append(packet[1] if packet else None)
                    if not packet:
                        lines.remove(line)
                        line.close()
            self.expect(job.wait(), 0)
        stalled, progress, goes_on = 16, 18, 17
        seen = sorted(types.values(), key=len)
        self.assertEqual(seen[0], [None])  # rank 1 is not the root
        self.assertEqual(seen[1][:2] + seen[1][-2:], [progress, stalled, goes_on, None])

    def test_settings_that_differ(self):
        if ENGINE == "gloo":
            script = 'HOROVOD_FUSION_THRESHOLD=$HOROVOD_RANK exec "$0" idle'
            program = os.path.join(BUILD, "tests/hvd/hvd_test_faults")
            result = self.run_job(*LAUNCHER[ENGINE], "-np", 2, "sh", "-c", script, program)
            self.expect(result, 1)
            self.assertIn("HOROVOD_FUSION_THRESHOLD is '0' on rank 0, and '1' on rank 1", result.stderr)

    def test_a_wrong_setting(self):
        result = self.expect(self.run_hvd(1, "faults", "idle", env={"HOROVOD_CYCLE_TIME": "often"}), 1)
        self.assertIn("HOROVOD_CYCLE_TIME", result.stderr)

    def killed(self, numbers):
        for number in numbers:
            phase = PHASES[number % len(PHASES)]
            with self.subTest(phase=phase, number=number):
                # less than the time-out of 30 s, which nobody should need, and much for a busy machine
                options = () if phase == "init" else ("--grace", 25)
                result = self.expect(self.run_hvd(4, "killed", phase, number, options=options), 128 + signal.SIGKILL)
                self.assertNotIn("FAILED", result.stderr, result.describe())
                if phase != "init":  # before the ranks have met, only the launcher sees it, and ends them
                    self.assertEqual(result.stdout.count("all right"), 3, result.describe())

    def killed_with_mpi(self, numbers):
        """A rank may be in a call of MPI, which nothing can wake: the launcher ends it. No rank sees anything else than
        HVD_ERR_PEER_LOST."""
        for number in numbers:
            phase = PHASES[number % len(PHASES)]
            with self.subTest(phase=phase, number=number):
                result = self.expect(self.run_hvd(4, "killed", phase, number, options=("--grace", 1)), 128 + signal.SIGKILL)
                self.assertNotIn("FAILED", result.stderr, result.describe())
                self.assertIn("was killed by SIGKILL", result.stderr, result.describe())

    def test_a_rank_is_killed_in_each_phase(self):
        if ENGINE == "gloo":
            self.killed(range(len(PHASES)))
        elif ENGINE == "mpi":
            self.killed_with_mpi(range(0, len(PHASES), 2))

    @nightly("the first ones run always")
    def test_a_rank_is_killed_200_times(self):
        if ENGINE == "gloo":
            self.killed(range(len(PHASES), 200 + len(PHASES)))
        elif ENGINE == "mpi":
            self.killed_with_mpi(range(200))


if __name__ == "__main__":
    main()
