# SPDX-License-Identifier: Apache-2.0
"""The workers' environment, variable by variable."""

import os
import socket

from rig import Flow, main, wait_until, worker

# What an outer launcher or a batch script may have left: all of it would lie to our workers.
LIES = {name: "77" for name in (
    "PMI_RANK PMI_SIZE PMI_FD PMI_ID PMI_PORT PMI_SPAWNED PMIX_RANK PMIX_NAMESPACE PMIX_SERVER_URI2 PMIX_SERVER_TMPDIR "
    "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE "
    "OMPI_COMM_WORLD_NODE_RANK OMPI_UNIVERSE_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS HOROVOD_RANK HOROVOD_SIZE "
    "HOROVOD_LOCAL_RANK HOROVOD_LOCAL_SIZE HOROVOD_CROSS_RANK HOROVOD_CROSS_SIZE HOROVOD_HOSTNAME HOROVOD_ELASTIC "
    "HOROVOD_GLOO_RENDEZVOUS_ADDR HOROVOD_GLOO_RENDEZVOUS_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK "
    "GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID "
    "TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_ERROR_FILE CROSS_RANK CROSS_SIZE LOCAL_SIZE JAX_PROCESS_ID "
    "JAX_NUM_PROCESSES JAX_COORDINATOR_ADDRESS SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_NPROCS "
    "SLURM_STEP_NUM_TASKS SLURM_PMIX_MAPPING_SERV SLURM_SRUN_COMM_PORT HYDI_CONTROL_FD FLUX_TASK_RANK TF_CONFIG").split()}


class WithEnvironment(Flow):

    def environments(self, *args, size=1, env=None):
        """Runs the worker `env`, returns its environment of each rank."""
        folder = self.box.path(f"env{len(os.listdir(self.box.work))}")
        os.mkdir(folder)
        self.result = self.expect(self.run_job(*args, worker("show_env"), folder, env=env), 0)
        found = []
        for rank in range(size):
            with open(os.path.join(folder, f"env.{rank}"), "rb") as file:
                entries = file.read().split(b"\0")[:-1]
            names = [entry.split(b"=", 1)[0] for entry in entries]
            self.assertEqual(len(names), len(set(names)), "a name twice")
            found.append({os.fsdecode(k): os.fsdecode(v) for k, v in (e.split(b"=", 1) for e in entries)})
        return found

    def has(self, env, **want):
        for name, value in want.items():
            with self.subTest(variable=name):
                self.assertEqual(env.get(name), str(value), name)

    def lacks(self, env, *names):
        for name in names:
            with self.subTest(variable=name):
                self.assertNotIn(name, env)


class Environment(WithEnvironment):

    def test_ranks_for_every_framework(self):
        found = self.environments("-H", "a:2,b:1", "--transport", "local", size=3)
        facts = [dict(rank=0, local=0, locals=2, cross=0, crosses=2, node=0, host="a"),
                 dict(rank=1, local=1, locals=2, cross=0, crosses=1, node=0, host="a"),
                 dict(rank=2, local=0, locals=1, cross=1, crosses=2, node=1, host="b")]
        for env, fact in zip(found, facts):
            rank, local, locals_, node = fact["rank"], fact["local"], fact["locals"], fact["node"]
            self.has(env, HOROVOD_RANK=rank, HOROVOD_SIZE=3, HOROVOD_LOCAL_RANK=local, HOROVOD_LOCAL_SIZE=locals_,
                     HOROVOD_CROSS_RANK=fact["cross"], HOROVOD_CROSS_SIZE=fact["crosses"], HOROVOD_HOSTNAME=fact["host"],
                     HOROVOD_CONTROLLER="gloo", HOROVOD_CPU_OPERATIONS="gloo", PYTHONUNBUFFERED=1,
                     PYTHONFAULTHANDLER=1)
            self.has(env, RANK=rank, WORLD_SIZE=3, LOCAL_RANK=local, LOCAL_WORLD_SIZE=locals_, GROUP_RANK=node,
                     GROUP_WORLD_SIZE=2, ROLE_RANK=rank, ROLE_WORLD_SIZE=3, TORCHELASTIC_RESTART_COUNT=0,
                     TORCHELASTIC_MAX_RESTARTS=0)
            self.has(env, CROSS_RANK=node, CROSS_SIZE=2, LOCAL_SIZE=locals_, JAX_PROCESS_ID=rank, JAX_NUM_PROCESSES=3)
            self.has(env, OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=3, OMPI_COMM_WORLD_LOCAL_RANK=local,
                     OMPI_COMM_WORLD_LOCAL_SIZE=locals_, OMPI_COMM_WORLD_NODE_RANK=local, MPI_LOCALRANKID=local,
                     MPI_LOCALNRANKS=locals_)
            self.assertTrue(env.get("ROLE_NAME"))
            self.assertTrue(env.get("TORCHELASTIC_RUN_ID"))
            self.lacks(env, "HOROVOD_ELASTIC", "TF_CONFIG")
            self.assertIn(env.get("TORCHELASTIC_USE_AGENT_STORE", "False"), ("", "0", "False"))
        self.assertEqual(len({env["TORCHELASTIC_RUN_ID"] for env in found}), 1)
        self.assertEqual(len({env["TORCHELASTIC_ERROR_FILE"] for env in found}), 3)

    def test_rendezvous_is_on_loopback(self):
        for env in self.environments("-np", 2, size=2):
            self.has(env, HOROVOD_GLOO_RENDEZVOUS_ADDR="127.0.0.1")
            self.assertTrue(1024 <= int(env["HOROVOD_GLOO_RENDEZVOUS_PORT"]) <= 65535)
            interfaces = {name for _, name in socket.if_nameindex()}
            self.assertIn(env["HOROVOD_GLOO_IFACE"], interfaces)
            self.assertLessEqual(set(env["NCCL_SOCKET_IFNAME"].split(",")), interfaces)

    def test_no_proxy_where_there_is_a_proxy(self):
        env, = self.environments("-np", 1, env={"http_proxy": "http://proxy.example:3128"})
        for name in ("no_proxy", "NO_PROXY"):
            self.assertIn("127.0.0.1", env[name].split(","))

    def test_no_proxy_keeps_what_it_had(self):
        env, = self.environments("-np", 1, env={"no_proxy": "example.org,10.0.0.0/8"})
        self.assertLessEqual({"example.org", "10.0.0.0/8", "127.0.0.1"}, set(env["no_proxy"].split(",")))

    def test_network_interfaces_from_the_flag(self):
        for option in ("--network-interfaces", "--network-interface"):
            env, = self.environments("-np", 1, option, "lo")
            self.has(env, NCCL_SOCKET_IFNAME="lo", HOROVOD_GLOO_IFACE="lo")

    def test_mpi_controller(self):
        env, = self.environments("-np", 1, "--mpi")
        self.has(env, HOROVOD_CONTROLLER="mpi")
        self.assertNotEqual(env.get("HOROVOD_CPU_OPERATIONS"), "gloo", "that mix crashes Horovod")
        env, = self.environments("-np", 1, "--gloo")
        self.has(env, HOROVOD_CONTROLLER="gloo", HOROVOD_CPU_OPERATIONS="gloo")

    def test_master_address_and_port(self):
        found = self.environments("-H", "a:1,b:1", "--transport", "local", size=2)
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            low, high = map(int, file.read().split())
        for env in found:
            port = int(env["MASTER_PORT"])
            self.assertTrue(1024 <= port <= 65535)
            self.assertFalse(low <= port <= high, "a port that any outgoing connection may take")
            socket.getaddrinfo(env["MASTER_ADDR"], port, family=socket.AF_INET)
            host, jax_port = env["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)
            self.assertEqual(host, env["MASTER_ADDR"])
            self.assertNotEqual(int(jax_port), port)
        self.assertEqual(len({(env["MASTER_ADDR"], env["MASTER_PORT"], env["JAX_COORDINATOR_ADDRESS"])
                              for env in found}), 1)

    def test_master_port_is_held(self):
        result = self.expect(self.run_job("-np", 4, worker("port_try")), 0)
        self.expect_lines(result, ["[0]<stdout>:stranger refused", "[0]<stdout>:store listens",
                                   *(f"[0]<stdout>:rank {r} met" for r in (1, 2, 3))])

    def test_master_port_chosen_and_not_held(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        env, = self.environments("-np", 1, "--master-port", port)
        self.has(env, MASTER_PORT=port)
        result = self.expect(self.run_job("-np", 1, "--no-port-hold", worker("port_try")), 0)
        self.assertIn("[0]<stdout>:stranger got the port", result.lines, result.describe())

    def test_master_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen(1)
            port = taken.getsockname()[1]
            result = self.run_job("-np", 1, "--master-port", port, "true")
        self.assertNotEqual(result.status, 0, result.describe())
        self.expect_said(result, f"{port}.*in use")

    def test_master_port_is_free_afterwards(self):
        env, = self.environments("-np", 1)

        def free():
            with socket.socket() as again:
                try:
                    again.bind(("0.0.0.0", int(env["MASTER_PORT"])))
                except OSError:
                    return False
                return True
        wait_until(free, "a free port again")  # another job on this machine may have it for a moment

    def test_inherited_rank_variables_are_scrubbed(self):
        found = self.environments("-np", 2, size=2, env=LIES)
        for rank, env in enumerate(found):
            for name in LIES:
                with self.subTest(variable=name):
                    self.assertNotEqual(env.get(name), "77")
            # Slurm's rank-like ones are rewritten where they were
            self.has(env, SLURM_PROCID=rank, SLURM_LOCALID=rank, SLURM_NODEID=0, SLURM_NTASKS=2, SLURM_NPROCS=2)

    def test_slurms_job_is_kept_and_nothing_of_it_made_up(self):
        env, = self.environments("-np", 1, env={"SLURM_JOB_ID": "4711", "SLURM_JOB_NUM_NODES": "1"})
        self.has(env, SLURM_JOB_ID="4711", SLURM_JOB_NUM_NODES="1")
        env, = self.environments("-np", 1)
        self.assertFalse([name for name in env if name.startswith("SLURM_")])

    def test_the_shells_environment_is_passed_on(self):
        given = {"PLAIN": "value", "EMPTY": "", "NEWLINE": "a\nb=c", "UTF8": "größe", "EQUALS": "a=b=c",
                 "dotted.name": "x", "CUDA_VISIBLE_DEVICES": "1,0", "LONG": "x" * 100_000}
        env, = self.environments("-np", 1, env=given)
        self.has(env, **given)

    def test_not_passed_on(self):
        names = {"BASH_FUNC_ls%%": "() { :; }", "OLDPWD": "/somewhere", "_HOROVOD_SECRET_KEY": "secret",
                 "SSH_CONNECTION": "1 2 3 4", "HVDRUN_AGENT_KEY": "secret", "HVDRUN_KEY": "secret"}
        env, = self.environments("-np", 1, env=names)
        self.lacks(env, *names)

    def test_x_with_and_without_value(self):
        env, = self.environments("-np", 1, "-x", "A=1", "-x", "B=two words", "-x", "C", "-x", "D=", "-x", "E=a=b",
                                 env={"C": "inherited", "A": "old"})
        self.has(env, A="1", B="two words", C="inherited", D="", E="a=b")

    def test_x_of_an_unset_variable_is_said(self):
        env, = self.environments("-np", 1, "-x", "NOT_SET_ANYWHERE")
        self.lacks(env, "NOT_SET_ANYWHERE")
        self.expect_said(self.result, "NOT_SET_ANYWHERE.*not set")

    def test_x_wins_over_what_is_only_a_default(self):
        env, = self.environments("-np", 1, "-x", "OMP_NUM_THREADS=3", "-x", "PYTHONUNBUFFERED=0",
                                 "-x", "PYTHONFAULTHANDLER=", "-x", "HOROVOD_CYCLE_TIME=9", "--cycle-time-ms", "2")
        self.has(env, OMP_NUM_THREADS="3", PYTHONUNBUFFERED="0", PYTHONFAULTHANDLER="", HOROVOD_CYCLE_TIME="9")

    def test_x_cannot_lie_about_the_rank(self):
        found = self.environments("-np", 2, "-x", "RANK=9", "-x", "HOROVOD_SIZE=9", size=2)
        for rank, env in enumerate(found):
            self.has(env, RANK=rank, HOROVOD_SIZE=2)
        self.expect_said(self.result, "RANK")

    def test_env_file(self):
        path = self.write("vars", "# a comment\n\nONE=1\nexport TWO='two words'\nTHREE=\"a\\tb\"\nFOUR=a=b # note\n")
        env, = self.environments("-np", 1, "--env-file", path)
        self.has(env, ONE="1", TWO="two words", THREE="a\tb", FOUR="a=b")

    def test_bad_env_file_names_file_and_line(self):
        path = self.write("vars", "ONE=1\nno assignment here\n")
        self.expect_said(self.expect(self.run_job("-np", 1, "--env-file", path, "true"), 2), r"vars:2\b")
        self.expect_said(self.expect(self.run_job("-np", 1, "--env-file", "nowhere", "true"), 2),
                         "nowhere.*no such file")

    def test_no_env(self):
        env, = self.environments("-np", 1, "--no-env", "-x", "HVDRUN_TEST_TAG", "-x", "CHOSEN", "-x", "NEW=1",
                                 env={"PRIVATE": "secret", "CHOSEN": "yes"})
        self.lacks(env, "PRIVATE")
        self.has(env, CHOSEN="yes", NEW="1", HOROVOD_RANK=0, WORLD_SIZE=1)
        self.assertIn("PATH", env)

    def test_secrets_are_on_no_command_line(self):
        gate, let_go = self.box.gate()
        job = self.start("-H", "a:1,b:1", "--transport", "local", worker("hang"), "--until", gate,
                         env={"MY_SECRET": "correct-horse"})
        job.wait_output("ready", count=2)
        for one in job.tree():
            with open(f"/proc/{one.pid}/cmdline", "rb") as file:
                self.assertNotIn(b"correct-horse", file.read())
        let_go()
        self.expect(job.wait(), 0)

    def test_omp_num_threads(self):
        cpus = len(os.sched_getaffinity(0))
        for ranks in (1, 2):
            for env in self.environments("-np", ranks, size=ranks):
                self.has(env, OMP_NUM_THREADS=max(1, cpus // ranks))
        env, = self.environments("-np", 1, env={"OMP_NUM_THREADS": "5"})
        self.has(env, OMP_NUM_THREADS="5")

    def test_hosts_that_are_one_machine_share_its_cpus(self):
        cpus = len(os.sched_getaffinity(0))
        local = "--transport", "local"
        for env in self.environments("-H", f"a:{cpus},b:1", "-np", cpus + 1, *local, size=cpus + 1):
            self.has(env, OMP_NUM_THREADS="1", OMPI_MCA_mpi_yield_when_idle="1")
        self.expect_not_said(self.result, "same machine")
        for env in self.environments("-H", "localhost:1,127.0.0.1:1", size=2):
            self.has(env, OMP_NUM_THREADS=max(1, cpus // 2))
        self.expect_said(self.result, "127.0.0.1 is the same machine as localhost: the job uses its CPUs")


class Knobs(WithEnvironment):

    def knobs(self, *options, **want):
        env, = self.environments("-np", 1, *options)
        self.has(env, **want)
        return env

    def test_none_by_default(self):
        env = self.knobs()
        self.lacks(env, "HOROVOD_FUSION_THRESHOLD", "HOROVOD_CYCLE_TIME", "HOROVOD_AUTOTUNE", "HOROVOD_TIMELINE",
                   "HOROVOD_LOG_LEVEL", "HOROVOD_STALL_CHECK_DISABLE", "HOROVOD_CACHE_CAPACITY")

    def test_tuning(self):
        self.knobs("--fusion-threshold-mb", 32, "--cycle-time-ms", "3.5", "--cache-capacity=512",
                   "--hierarchical-allreduce", "--no-hierarchical-allgather", "--torus-allreduce",
                   "--num-nccl-streams", 2, "--thread-affinity", 1, "--gloo-timeout-seconds", 60,
                   "--mpi-threads-disable",
                   HOROVOD_FUSION_THRESHOLD=33554432, HOROVOD_CYCLE_TIME="3.5", HOROVOD_CACHE_CAPACITY=512,
                   HOROVOD_HIERARCHICAL_ALLREDUCE=1, HOROVOD_HIERARCHICAL_ALLGATHER=0, HOROVOD_TORUS_ALLREDUCE=1,
                   HOROVOD_NUM_NCCL_STREAMS=2, HOROVOD_THREAD_AFFINITY=1, HOROVOD_GLOO_TIMEOUT_SECONDS=60,
                   HOROVOD_MPI_THREADS_DISABLE=1)
        self.knobs("--fusion-threshold-mb", 0, "--no-hierarchical-allreduce", "--hierarchical-allgather",
                   "--no-torus-allreduce", "--no-mpi-threads-disable",
                   HOROVOD_FUSION_THRESHOLD=0, HOROVOD_HIERARCHICAL_ALLREDUCE=0, HOROVOD_HIERARCHICAL_ALLGATHER=1,
                   HOROVOD_TORUS_ALLREDUCE=0, HOROVOD_MPI_THREADS_DISABLE=0)

    def test_autotune(self):
        self.knobs("--autotune", "--autotune-log-file", "tune.csv", "--autotune-warmup-samples", 4,
                   "--autotune-steps-per-sample", 5, "--autotune-bayes-opt-max-samples", 6,
                   "--autotune-gaussian-process-noise", "0.7",
                   HOROVOD_AUTOTUNE=1, HOROVOD_AUTOTUNE_LOG="tune.csv", HOROVOD_AUTOTUNE_WARMUP_SAMPLES=4,
                   HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=5, HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES=6,
                   HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE="0.7")

    def test_timeline_stall_check_and_log(self):
        self.knobs("--timeline-filename", "t.json", "--timeline-mark-cycles", "--no-stall-check",
                   "--stall-check-warning-time-seconds", 10, "--stall-check-shutdown-time-seconds", 20,
                   "--log-level", "DEBUG", "--log-with-timestamp",
                   HOROVOD_TIMELINE="t.json", HOROVOD_TIMELINE_MARK_CYCLES=1, HOROVOD_STALL_CHECK_DISABLE=1,
                   HOROVOD_STALL_CHECK_TIME_SECONDS=10, HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=20,
                   HOROVOD_LOG_LEVEL="DEBUG", HOROVOD_LOG_HIDE_TIME=0)
        self.knobs("--stall-check", "--timeline-filename", "t.json", "--no-timeline-mark-cycles",
                   "--log-without-timestamp", HOROVOD_STALL_CHECK_DISABLE=0, HOROVOD_TIMELINE_MARK_CYCLES=0,
                   HOROVOD_LOG_HIDE_TIME=1)

    def test_values_out_of_range(self):
        for option, value in (("--fusion-threshold-mb", "-5"), ("--cycle-time-ms", "soon"), ("--log-level", "LOUD"),
                              ("--cache-capacity", "1.5"), ("--autotune-gaussian-process-noise", "2")):
            with self.subTest(option=option):
                result = self.expect(self.run_job("-np", 1, f"{option}={value}", "true"), 2)
                self.expect_said(result, f"{option}.*{value}")


class PmiVariables(WithEnvironment):

    def kind(self, *options):
        env, = self.environments("-np", 1, *options)
        return env, any(name.startswith("PMI_") for name in env), any(name.startswith("PMIX_") for name in env)

    def test_a_plain_program_has_neither(self):
        for options in ([], ["--mpi=auto"], ["--mpi=none"]):
            env, pmi, pmix = self.kind(*options)
            self.assertEqual((pmi, pmix), (False, False))
            self.lacks(env, "JSM_JSRUN_PORT", "PRTE_LAUNCHED")

    def test_pmi1(self):
        env, pmi, pmix = self.kind("--mpi=pmi1")
        self.assertEqual((pmi, pmix), (True, False))
        self.has(env, PMI_RANK=0, PMI_SIZE=1)
        self.assertTrue(env["PMI_FD"].isdigit())

    def test_pmix(self):
        env, pmi, pmix = self.kind("-H", "localhost:1", "--mpi=pmix")
        self.assertEqual((pmi, pmix), (False, True))
        self.has(env, PMIX_RANK=0, OMPI_COMM_WORLD_RANK=0, OMPI_UNIVERSE_SIZE=1)
        self.assertTrue(env["PMIX_NAMESPACE"])
        for name in ("PMIX_SERVER_TMPDIR", "OMPI_MCA_orte_tmpdir_base"):
            self.assertTrue(env[name].startswith((self.box.tmp, self.box.run)), f"{name}={env[name]}")

    def test_the_mpi_controller_needs_pmix(self):
        """The program links with no MPI, and loads the one that the user names."""
        for options in (["--controller", "mpi"], ["--mpi"], ["-x", "HOROVOD_CONTROLLER=mpi"]):
            self.assertEqual(self.kind(*options)[1:], (False, True), options)
        self.assertEqual(self.kind("--controller", "mpi", "--mpi=none")[1:], (False, False))
        self.assertEqual(self.kind("--controller", "mpi", "--mpi=pmi1")[1:], (True, False))


if __name__ == "__main__":
    main()
