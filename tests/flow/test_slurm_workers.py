# SPDX-License-Identifier: Apache-2.0
"""What workers find in Slurm jobs: their variables, the key of the job nowhere, MPI."""

from ground import mpi_worker, worker
from slurm import HVDRUN, Runs, main

QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}


class Environment(Runs):

    def run_env(self, *words, options=("-N3", "--ntasks-per-node=2")):
        result = self.batch(self.hvdrun(*words, worker("show_env"), self.box.work), *options)
        self.expect(result, 0)
        return self.environments(6)

    def test_variables_of_slurm_are_each_workers_own(self):
        for rank, env in enumerate(self.run_env()):
            node = 1 + rank // 2
            own = {"SLURM_PROCID": rank, "SLURM_LOCALID": rank % 2, "SLURM_NODEID": node - 1, "SLURM_NTASKS": 6, "SLURM_NPROCS": 6,
                   "SLURM_TASKS_PER_NODE": "2(x3)", "SLURMD_NODENAME": f"node{node}", "SLURM_JOB_NODELIST": "node[1-3]"}
            self.assertEqual({name: env.get(name) for name in own}, {name: str(value) for name, value in own.items()}, rank)
            for name in env:
                self.assertNotRegex(name, r"^(SLURM_PMIX|SLURM_SRUN_COMM|SRUN_COMM|SLURM_PMI|HVDRUN_AGENT|PMI_|PMIX_)", rank)

    def test_the_same_names_on_every_node(self):
        """A worker cannot tell whether its node is that of the batch script."""
        names = [{name for name in env if name.startswith("SLURM")} for env in self.run_env()]
        for rank, found in enumerate(names):
            self.assertEqual(found ^ names[0], set(), rank)

    def test_kept_on_request(self):
        found = self.run_env("--keep-scheduler-env")
        self.assertEqual({env["HVDRUN_RANK"] for env in found}, set("012345"))
        self.assertEqual({env["SLURM_PROCID"] for env in found[:2]}, {"0"})
        for env in found:
            self.assertFalse([name for name in env if name.startswith("HVDRUN_AGENT")])

    def test_the_key_is_nowhere_to_be_seen(self):
        job = self.hang("-N3", "--ntasks-per-node=1", count=3)
        seen = self.everything()
        keys = {one.environ().get("HVDRUN_AGENT_KEY") for one in seen if one.comm == "srun"}
        self.assertEqual(len(keys), 1, "srun has one key in its environment")
        key = keys.pop()
        self.assertRegex(key, r"^[0-9a-f]{32,}$")
        for one in seen:
            self.assertNotIn(key.encode(), one.read("cmdline"), str(one))
        for number in (1, 2, 3):
            for process in self.host(number).workers().values():
                self.assertNotIn(b"HVDRUN_AGENT", process.read("environ"))
                self.assertNotIn(key.encode(), process.read("environ"))
        self.assertNotIn(key, job.output() + job.output("stderr") + self.scontrol("show", "job", "-dd", job.id) +
                         self.cluster.logs(10000))
        job.cancel()
        job.wait()


class Mpi(Runs):

    def test_open_mpi(self):
        result = self.batch(self.hvdrun(mpi_worker("mpi_hello", "openmpi"), 5), "-N2", "--ntasks-per-node=2", env=QUIET)
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:rank {r} of 4 sum 6" for r in range(4)])

    def test_mpich(self):
        # Debian's MPICH may spin in MPI_Finalize between hosts under any launcher: see test_hosts_mpi.py
        result = self.batch(self.hvdrun("--timeout", 8, mpi_worker("mpi_hello", "mpich"), 5), "-N2", "--ntasks-per-node=2",
                            env=QUIET)
        self.assertIn(result.status, (0, 124), result.describe())
        self.expect_lines(result, [f"[{r}]<stdout>:rank {r} of 4 sum 6" for r in range(4)])

    def test_ring_from_the_login_node(self):
        result = self.salloc(["-N3", "--ntasks-per-node=1"], HVDRUN, mpi_worker("mpi_ring", "openmpi"), 1 << 16, 5,
                             env=QUIET).wait()
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:ring of 3 ok"])

    def test_abort(self):
        result = self.batch(self.hvdrun(mpi_worker("mpi_abort", "openmpi"), 3, 7, "told\n"), "-N2", "--ntasks-per-node=2", env=QUIET)
        self.expect(result, 7)
        for rank in range(4):
            self.assertIn(f"[{rank}]<stdout>:told", result.lines, result.describe())


if __name__ == "__main__":
    main()
