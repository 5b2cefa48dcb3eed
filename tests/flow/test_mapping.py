# SPDX-License-Identifier: Apache-2.0
"""Ranks that are laid out otherwise than host after host: --map-by, --rankfile.

test_plan.py has the golden plans. Here are the refusals, the files, and real runs on simulated hosts. The
variables of a worker must agree with the plan, for every kind of worker.
"""
# ctest busy

import json
import os
import re
import signal

from rig import Flow, main, mpi_worker, nightly, worker

KINDS = ("openmpi", "mpich")
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
LOCAL = ("--transport", "local")

# (options, the host of each rank)
LAYOUTS = (
    (("--map-by", "node", "-H", "a:2,b:2"), "abab"),
    (("--map-by", "node", "-H", "a:3,b:1,c:2"), "abcaca"),
    (("--rankfile", "mixed.ranks"), "baabca"),
    (("--map-by", "seq", "-H", "a,b,b,a"), "abba"),
)


def local_of(layout, rank):
    return layout[:rank].count(layout[rank])


class Mapping(Flow):

    left_timeout = 10

    def dry(self, *args, status=0):
        result = self.expect(self.run_job("--dry-run=json", *LOCAL, *args, "./train"), status)
        return json.loads(result.stdout) if status == 0 else result

    def hosts_of(self, *args):
        return "".join(rank["host"] for rank in self.dry(*args)["ranks"])

    def refused(self, pattern, *args, status=2):
        result = self.dry(*args, status=status)
        self.expect_said(result, pattern)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.describe())


class Files(Mapping):

    def test_seq_follows_the_lines_of_a_hostfile(self):
        path = self.write("hosts", "a\nb\n\n# once more\na\nb\nb\n")
        self.assertEqual(self.hosts_of("--map-by", "seq", "--hostfile", path), "ababb")
        self.assertEqual(self.hosts_of("-np", 3, "--map-by", "seq", "--hostfile", path), "aba")

    def test_seq_follows_the_lines_of_an_allocation(self):
        path = self.write("nodes", "a\nb\na\na\n")
        env = {"PBS_JOBID": "7.head", "PBS_NODEFILE": path}
        result = self.expect(self.run_job("--dry-run=json", "--map-by", "seq", "./train", env=env), 0)
        self.assertEqual("".join(rank["host"] for rank in json.loads(result.stdout)["ranks"]), "abaa")

    def test_rankfile(self):
        path = self.write("ranks", "# as Open MPI has them\nrank 1=b slot=0-1\nrank 0=a slot=1:0\nrank 2=+n0\n")
        for option in ("--rankfile", "-rankfile", "-rf"):
            self.assertEqual(self.hosts_of(option, path, "-H", "a:2,b:1"), "aba")
        self.assertEqual(self.hosts_of("-np", 3, "--rankfile", path, "-H", "b:4,a:4"), "abb")

    def test_a_rankfile_names_the_hosts_where_nobody_else_does(self):
        path = self.write("ranks", "rank 0=b\nrank 1=a\nrank 2=b\n")
        plan = self.dry("--rankfile", path)
        self.assertEqual("".join(rank["host"] for rank in plan["ranks"]), "bab")
        self.assertEqual([(node["name"], node["slots"]) for node in plan["nodes"]], [("b", 2), ("a", 1)])

    def test_bad_rankfiles(self):
        for text, said in (("rank 0=a\nrank 0=b\n", r"ranks:2: 'rank 0=b': rank 0 has a line already, line 1"),
                           ("rank 0=a\nrank 2=b\n", "no line for rank 1, but line 2 has rank 2"),
                           ("rank 0=a\nrank 1=c\n", "ranks:2: rank 1 is to run on c, which is not among the 2 hosts"),
                           ("rank 0=+n2\n", r"ranks:1: rank 0 is to run on \+n2, but the last of the job's 2 hosts is"),
                           ("rank 0=a slot=0-x\n", "ranks:1: .*'0-x' is not a list of CPUs"),
                           ("a slots=4\n", "ranks:1: .*expected 'rank N=HOST slot=CPUS'"),
                           ("", "names no rank"), ("\x7fELF\0\0", "not a text file")):
            with self.subTest(text=text):
                self.refused(said, "--rankfile", self.write("ranks", text), "-H", "a:2,b:2")
        self.refused("no/such/file", "--rankfile", "no/such/file", "-H", "a")
        self.refused("zero.*not a text file", "--rankfile", "/dev/zero", "-H", "a")
        pipe = self.box.path("pipe")
        os.mkfifo(pipe)
        self.refused("pipe", "--rankfile", pipe, "-H", "a", "--start-timeout", 1)
        self.refused("is a folder", "--rankfile", self.box.path("."), "-H", "a")

    def test_more_than_slots(self):
        path = self.write("ranks", "rank 0=a\nrank 1=a\n")
        self.refused("ranks puts 2 ranks on a, which has 1 slot; give it more slots, or --oversubscribe",
                     "--rankfile", path, "-H", "a:1,b:1", status=123)
        self.assertEqual(self.hosts_of("--rankfile", path, "-H", "a:1,b:1", "--oversubscribe"), "aa")
        path = self.write("hosts", "a slots=1 max_slots=2\nb slots=1\n")
        self.assertEqual(self.hosts_of("-np", 5, "--hostfile", path, "--oversubscribe"), "aabbb")
        self.assertEqual(self.hosts_of("-np", 5, "--map-by", "node", "--hostfile", path, "--oversubscribe"), "ababb")


class Words(Mapping):

    def test_the_number_of_ranks(self):
        ranks = self.write("ranks", "rank 0=a\nrank 1=b\n")
        for args, said in ((("-np", 5, "--map-by", "ppr:2:node", "-H", "a:4,b:4"), "room for 4 ranks on 2 hosts"),
                           (("-np", 3, "--rankfile", ranks, "-H", "a:4,b:4"), "places for 2 ranks, but 3 are wanted"),
                           (("-np", 1, "--rankfile", ranks), "places for 2 ranks, but 1 is wanted")):
            with self.subTest(args=args):
                self.refused(said, *args)
        self.refused("one for each of the 2 entries", "-np", 3, "--map-by", "seq", "-H", "a:4,b:4", status=123)

    def test_one_rule_at_a_time(self):
        ranks = self.write("ranks", "rank 0=a\n")
        self.refused("--map-by and .*--rankfile both say", "--map-by", "node", "--rankfile", ranks, "-H", "a")
        self.assertEqual(self.hosts_of("--map-by", "slot", "--rankfile", ranks, "-H", "a,b"), "a")

    def test_the_option_that_a_rankfile_replaces(self):
        result = self.dry("--rank-map", "b,a", "-H", "a,b", status=2)
        self.expect_said(result, "unknown option.*--rank-map")

    def test_words_that_nobody_knows(self):
        for word in ("socket", "ppr:2", "ppr:2:socket", "slot:SPAN", ":", "node:PE=0"):
            with self.subTest(word=word):
                self.refused("--map-by.*expected", "--map-by", word, "-H", "a:2")
        self.refused("PE|--map-by sets 2 cores for each worker, but --cpus-per-proc sets 4", "--map-by", "slot:PE=2",
                     "--cpus-per-proc", 4)

    def test_spellings(self):
        for args in (("-map-by", "NODE"), ("--map-by=node",), ("--map-by", "node:NOOVERSUBSCRIBE")):
            self.assertEqual(self.hosts_of(*args, "-H", "a:2,b:2"), "abab")
        self.assertEqual(self.hosts_of("-np", 3, "--map-by", ":OVERSUBSCRIBE", "-H", "a"), "aaa")

    def test_an_elastic_job_is_mapped_by_slots(self):
        ranks = self.write("ranks", "rank 0=a\n")
        for args in (("--map-by", "node"), ("--map-by", "slot:PE=2"), ("--rankfile", ranks)):
            with self.subTest(args=args):
                self.refused(f"{args[0]}.*elastic job", "--min-np", 1, "-H", "a,b", *args)
        self.assertEqual(self.hosts_of("--min-np", 1, "--map-by", "slot", "-H", "a,b"), "ab")


class Runs(Mapping):

    def setUp(self):
        super().setUp()
        self.write("mixed.ranks", "".join(f"rank {rank}={host}\n" for rank, host in enumerate("baabca")))

    def run_layout(self, args, *program, **options):
        env = {**QUIET, **options.pop("env", {})}
        return self.run_job(*args, *LOCAL, *program, env=env, timeout=120, **options)


class Told(Runs):
    """What workers are told about themselves."""

    NAMES = ("HOROVOD_HOSTNAME", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
             "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_GTIDS",
             "SLURM_STEP_TASKS_PER_NODE", "HVDRUN_SLOT")

    def told(self, result, rank):
        lines = [line.partition(":")[2] for line in result.lines if line.startswith(f"[{rank}]<stdout>:")]
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def test_environment(self):
        inherited = {name: "7" for name in self.NAMES if name.startswith("SLURM")}
        for args, layout in LAYOUTS:
            with self.subTest(layout=layout):
                result = self.expect(self.run_layout(args, worker("hello"), *self.NAMES, env=inherited), 0)
                order = list(dict.fromkeys(layout))
                for rank, host in enumerate(layout):
                    local = local_of(layout, rank)
                    having = [name for name in order if layout.count(name) > local]
                    mine = [r for r, name in enumerate(layout) if name == host]
                    want = {"HOROVOD_HOSTNAME": host, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": len(mine),
                            "GROUP_RANK": order.index(host), "OMPI_COMM_WORLD_LOCAL_RANK": local,
                            "HOROVOD_CROSS_RANK": having.index(host), "HOROVOD_CROSS_SIZE": len(having),
                            "SLURM_NODEID": order.index(host), "SLURM_LOCALID": local,
                            "SLURM_GTIDS": ",".join(map(str, mine)), "HVDRUN_SLOT": local}
                    told = self.told(result, rank)
                    self.assertEqual({name: told.get(name) for name in want},
                                     {name: str(value) for name, value in want.items()}, result.describe())

    def test_stdin_of_one_rank_and_of_all(self):
        args, layout = LAYOUTS[2]
        whole = r"stdin 6 \w+"
        for rank in (0, 3, 5):
            result = self.expect(self.run_layout((*args, "--stdin", rank), worker("stdin_sum"), stdin=b"hello\n"), 0)
            readers = re.findall(rf"^\[(\d)\]<stdout>:{whole}$", result.stdout, re.M)
            self.assertEqual(readers, [str(rank)], result.describe())
        result = self.expect(self.run_layout((*args, "--stdin", "all"), worker("stdin_sum"), stdin=b"hello\n"), 0)
        readers = re.findall(rf"^\[(\d)\]<stdout>:{whole}$", result.stdout, re.M)
        self.assertEqual(sorted(readers), [str(rank) for rank in range(len(layout))], result.describe())

    def test_who_failed_and_who_is_where(self):
        args, layout = LAYOUTS[2]
        report = self.box.path("report.json")
        result = self.run_layout((*args, "--report", report), "sh", "-c",
                                 'test "$HVDRUN_RANK" != 4 || exit 6; sleep 60')
        self.expect(result, 6)
        self.expect_blame(result, 4, code=6, host="c")
        ranks = self.read_json(report)["ranks"]
        self.assertEqual("".join(rank["host"] for rank in sorted(ranks, key=lambda rank: rank["rank"])), layout)

    def test_a_lost_node_counts_its_own_ranks(self):
        job = self.start("--map-by", "node", "-H", "a:2,b:3,c:1", *LOCAL, "sh", "-c",
                         'echo "$HVDRUN_HOSTNAME $PPID"; exec sleep 60')
        job.wait_output(r"\w \d+$", count=6)
        os.kill(int(job.wait_output(r"b (\d+)$", count=3).group(1)), signal.SIGKILL)
        result = self.expect(job.wait(60), 121)
        self.expect_said(result, "node b was lost.*; 3 of its 3 ranks were running")

    def test_hosts_that_do_not_answer_are_named_with_their_ranks(self):
        result = self.run_job("--map-by", "node", "-H", "a:2,b:3", "--launch-agent", "sh -c 'exec sleep 60' %h",
                              "--start-timeout", 1, "true")
        self.expect(result, 122)
        self.expect_said(result, r"a \([^)]*; ranks 0,2\), b \([^)]*; ranks 1,3-4\)")

    def test_signals_reach_all(self):
        args, layout = LAYOUTS[0]
        job = self.start(*args, *LOCAL, worker("signals"), "--exit-on", "USR1", env=QUIET)
        job.wait_output(r"ready \d+$", count=len(layout))
        job.signal(signal.SIGUSR1)
        result = self.expect(job.wait(60), 0)
        self.assertEqual(sorted(re.findall(r"^\[(\d)\]<stdout>:got .*USR1", result.stdout, re.M)),
                         [str(rank) for rank in range(len(layout))], result.describe())


class Mpi(Runs):
    """The maps that PMIx and PMI-1 give must be true, or ranks look for shared memory that is not there."""

    def expect_places(self, result, layout):
        self.expect(result, 0)
        for rank, host in enumerate(layout):
            pattern = rf"^\[{rank}\]<stdout>:rank {rank} of {len(layout)}, {local_of(layout, rank)} of " \
                      rf"{layout.count(host)} on "
            self.assertTrue(any(re.match(pattern, line) for line in result.lines), result.describe())
        self.assertIn("[0]<stdout>:sum ok", result.lines, result.describe())

    def test_who_shares_a_node_and_a_large_sum(self):
        for kind in KINDS:
            for args, layout in LAYOUTS:
                with self.subTest(kind=kind, layout=layout):
                    self.expect_places(self.run_layout(args, mpi_worker("mpi_nodes", kind), 4), layout)

    @nightly("test_who_shares_a_node_and_a_large_sum has the same layouts, and sums too")
    def test_one_world(self):
        for kind in KINDS:
            for args, layout in LAYOUTS:
                with self.subTest(kind=kind, layout=layout):
                    size = len(layout)
                    result = self.expect(self.run_layout(args, mpi_worker("mpi_hello", kind), 10), 0)
                    total = size * (size - 1) // 2
                    self.expect_lines(result, [f"[{r}]<stdout>:rank {r} of {size} sum {total}" for r in range(size)])

    def test_messages(self):
        for kind in KINDS:
            args, layout = LAYOUTS[1]
            result = self.expect(self.run_layout(args, mpi_worker("mpi_ring", kind), 1 << 20, 3), 0)
            self.expect_lines(result, [f"[0]<stdout>:ring of {len(layout)} ok"])

    def test_open_mpi_shares_memory_within_a_host_only(self):
        args, layout = LAYOUTS[0]
        result = self.run_layout((*args, "-x", "OMPI_MCA_btl_base_verbose=100"), mpi_worker("mpi_nodes", "openmpi"))
        self.expect(result, 0)
        used = re.findall(r"^\[(\d)\]<stderr>:.*Using (\w+) btl for send to \[\[\d+,\d+\],(\d)\]", result.stderr, re.M)
        want = [(str(a), "self" if a == b else "vader" if layout[a] == layout[b] else "tcp", str(b))
                for a in range(4) for b in range(4)]
        self.assertLessEqual(set(used), set(want), result.describe())
        self.assertTrue({how for _, how, _ in used} >= {"vader", "tcp"}, result.describe())

    @nightly("unit.pmi1.mapping cuts the map; this shows that MPICH understands it")
    def test_many_rounds(self):
        """The map of MPICH is cut to one round where all rounds would be too long for a value of PMI-1."""
        hosts = ",".join(f"n{i}:40" for i in range(3))
        result = self.run_layout(("--map-by", "node", "-np", 40, "-H", hosts), mpi_worker("mpi_nodes", "mpich"))
        self.expect_places(result, "".join("abc"[rank % 3] for rank in range(40)))

    def test_programs_with_a_colon(self):
        for kind in KINDS:
            program = mpi_worker("mpi_nodes", kind)
            result = self.run_layout(("--map-by", "node", "-H", "a:2,b:2"), "-np", 1, program, ":", "-np", 3, program)
            self.expect_places(result, "abab")

    def test_publish_abort_and_conversations(self):
        args, layout = LAYOUTS[2]
        size = len(layout)
        for kind in KINDS:
            result = self.expect(self.run_layout(args, mpi_worker("mpi_abort", kind), 4, 7), 7)
            self.expect_said(result, r"rank 4\b.*abort.*\b7\b")
        for test in ("publish", "modex", "fetch", "some", "query", "group", "connect"):
            with self.subTest(test=test):
                result = self.expect(self.run_layout(("--map-by", "node", "--timeout", 60, "--mpi=pmix", "-H",
                                                      "a:2,b:2"), worker("mpi_pmix"), test, 2), 0)
                self.expect_lines(result, [f"[{r}]<stdout>:rank {r} {test} ok" for r in range(4)])
        self.assertEqual(size, 6)


class Horovod(Runs):

    def test_all_layouts(self):
        for args, layout in LAYOUTS:
            with self.subTest(layout=layout):
                size = len(layout)
                result = self.expect(self.run_layout(args, worker("horovod_worker"), "--reinit", 1), 0)
                sums = re.findall(r"rank (\d+) of (\d+): sum (\d+)", result.stdout)
                self.assertEqual(sorted({(int(r), int(n), int(s)) for r, n, s in sums}),
                                 [(r, size, size * (size - 1) // 2) for r in range(size)], result.describe())


if __name__ == "__main__":
    main()
