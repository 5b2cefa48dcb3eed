# SPDX-License-Identifier: Apache-2.0
"""What the GPUs of a job do, with the fake library of NVIDIA in tests/gpu/fake (docs/jobs.md, docs/monitoring.md)."""
# ctest waits

import json
import os
import re
import signal

from ground import BUILD
from job_commands import JobCommands
from procfs import descendants
from rig import main, patient, wait_until
from test_metrics import fetch, samples

LIBRARY = os.path.join(BUILD, "tests/gpu/fake_nvml_now")
OLD_LIBRARY = os.path.join(BUILD, "tests/gpu/fake_nvml_old")
MIB = 2**20
SLEEP = "sleep 600 & echo ready; wait"
BUSY = {"uuid": "GPU-aaaa", "use": 98, "memory_use": 22, "power": 690500, "total": 1000 * MIB, "used": 400 * MIB,
        "energy": 5000000}


class Gpus(JobCommands):

    def gpus(self, *gpus, processes=(), faults=()):
        """Says what the fake library shows from now on."""
        lines = [f"gpu {index} {key} {value}" for index, gpu in enumerate(gpus) for key, value in gpu.items()]
        lines += [f"process {index} {pid} {memory}" for index, pid, memory in processes]
        lines += [" ".join(map(str, fault)) for fault in faults]
        path = self.write("gpus.new", "\n".join(lines) + "\n")
        os.replace(path, self.path())

    def path(self):
        return self.box.path("gpus")

    def environment(self, library=LIBRARY):
        return {"FAKE_NVML": self.path(), "LD_LIBRARY_PATH": library}

    def run_with(self, *args, library=LIBRARY, count=2):
        job, name = self.begin("-np", count, *args, "sh", "-c", SLEEP, count=count, env=self.environment(library))
        pids = {one["rank"]: one["pid"] for one in self.once(name)["ranks"]}
        return job, name, [pids[rank] for rank in range(count)]

    def once(self, *words):
        return json.loads(self.ask("top", "--once", "--json", *words).stdout)

    def ranks(self, usage):
        return sorted(usage["ranks"], key=lambda one: one["rank"])

    def end(self, job):
        self.ask_only("stop", "--grace", 1)
        job.wait()

    def helpers(self, job):
        """The helper processes below the agents of the job."""
        return [one.pid for one in descendants(job.pid) if one.read("cmdline").endswith(b"\0--gpus\0")]


class Top(Gpus):

    def test_each_rank_and_each_host(self):
        """A rank has the GPUs that its processes use, also those of its children."""
        self.gpus(BUSY, dict(BUSY, uuid="GPU-bbbb", power=120000, use=100, memory_use=0))
        job, _, (first, second) = self.run_with()
        child, = [one.pid for one in descendants(second)]
        self.gpus(BUSY, dict(BUSY, uuid="GPU-bbbb", power=120000, use=100, memory_use=0),
                  processes=[(0, first, 300 * MIB), (0, second, 10 * MIB), (1, child, 20 * MIB), (1, 1, 5)])
        usage = self.once()
        one, two = self.ranks(usage)
        self.assertEqual((one["gpus"], one["gpu_use_percent"], one["gpu_power_w"], one["gpu_memory_bytes"],
                          one["gpu_energy_j"]), (1, 98, 690.5, 300 * MIB, 5000), one)
        self.assertEqual((two["gpus"], two["gpu_use_percent"], two["gpu_power_w"], two["gpu_memory_bytes"],
                          two["gpu_energy_j"]), (2, 99, 810.5, 30 * MIB, 10000), two)
        host, = usage["hosts"]
        self.assertEqual(host["gpus"][0], {
            "index": 0, "uuid": "GPU-aaaa", "use_percent": 98, "memory_use_percent": 22, "power_w": 690.5,
            "energy_j": 5000, "memory_bytes": 1000 * MIB, "memory_used_bytes": 400 * MIB})
        self.assertEqual([gpu["uuid"] for gpu in host["gpus"]], ["GPU-aaaa", "GPU-bbbb"])
        shown = self.ask("top", "--once").stdout
        self.assertRegex(shown, r"(?m)^ +rank +host .* gpu +gpu power +gpu memory ")
        self.assertRegex(shown, r"(?m)^ +0 +localhost .* 98 % +690 W +300 MiB ")
        self.end(job)

    def test_what_is_missing_is_absent(self):
        """A GPU that says little, and a rank without one."""
        self.gpus({"uuid": "GPU-aaaa", "power": 100000})
        job, _, (first, _) = self.run_with()
        self.gpus({"uuid": "GPU-aaaa", "power": 100000}, processes=[(0, first, -1)])
        usage = self.once()
        one, two = self.ranks(usage)
        self.assertEqual({key: value for key, value in one.items() if key.startswith("gpu")},
                         {"gpus": 1, "gpu_power_w": 100})
        self.assertFalse([key for key in two if key.startswith("gpu")], two)
        self.assertEqual(usage["hosts"][0]["gpus"], [{"index": 0, "uuid": "GPU-aaaa", "power_w": 100}])
        self.end(job)

    def test_an_older_driver(self):
        """It cannot tell the energy, and has an older list of processes."""
        self.gpus(BUSY)
        job, _, (first, _) = self.run_with(library=OLD_LIBRARY)
        self.gpus(BUSY, processes=[(0, first, MIB)])
        one, _ = self.ranks(self.once())
        self.assertEqual(one["gpu_power_w"], 690.5, one)
        self.assertNotIn("gpu_energy_j", one)
        self.end(job)

    def test_a_lost_gpu(self):
        """One function or all of them say so. The other GPUs go on."""
        self.gpus(BUSY, BUSY)
        job, _, (first, _) = self.run_with()
        self.gpus(BUSY, BUSY, processes=[(0, first, MIB)], faults=[("fail", "nvmlDeviceGetPowerUsage", 15)])
        gpu = self.once()["hosts"][0]["gpus"][0]
        self.assertEqual((gpu["trouble"], gpu["use_percent"]), ("is lost", 98))
        self.assertNotIn("power_w", gpu)
        self.gpus(BUSY, faults=[("fail", "nvmlDeviceGetHandleByIndex_v2", 16)])
        usage = self.once()
        self.assertEqual(usage["hosts"][0]["gpus"], [{"index": 0, "trouble": "needs a reset"}])
        self.gpus(faults=[("fail", "nvmlDeviceGetCount_v2", 999)])
        self.assertNotIn("gpus", self.once()["hosts"][0])
        self.end(job)

    def test_a_call_that_hangs(self):
        """The rest of the answer comes all the same, and the job can end."""
        self.gpus(BUSY)
        job, _, _ = self.run_with()
        self.gpus(BUSY, faults=[("slow", "nvmlDeviceGetPowerUsage", 600000)])
        usage = self.once()
        self.assertEqual(len(usage["ranks"]), 2)
        for one in usage["ranks"]:
            self.assertIn("cpus", one)
        self.assertEqual(len(self.helpers(job)), 1)
        self.end(job)

    def test_no_driver(self):
        """The helper ends, and does not start again."""
        job, _ = self.begin("-np", 1, "sh", "-c", SLEEP, env={"LD_LIBRARY_PATH": ""})
        for _ in range(2):
            usage = self.once()
            self.assertNotIn("gpus", usage["hosts"][0])
            self.assertFalse([key for key in usage["ranks"][0] if key.startswith("gpu")])
            self.assertEqual(self.helpers(job), [])
        self.assertNotIn("gpu", self.ask("top", "--once").stdout)
        self.end(job)

    def test_only_when_somebody_asks(self):
        """Nothing is loaded before. A helper that was killed does no harm."""
        self.gpus(BUSY)
        job, name = self.begin("-np", 1, "sh", "-c", SLEEP, env=self.environment())
        self.assertEqual(self.helpers(job), [])
        self.assertIn("gpus", self.once(name)["hosts"][0])
        helper, = self.helpers(job)
        os.kill(helper, signal.SIGKILL)
        wait_until(lambda: not self.helpers(job), "the agent has seen it", patient(30))
        self.assertEqual(len(self.once(name)["ranks"]), 1)
        self.end(job)

    def test_agents_of_other_hosts(self):
        """hvdrun-agent is its own helper."""
        self.gpus(BUSY)
        job, name = self.begin("-np", 2, "-H", "a:1,b:1", "--transport", "local", "sh", "-c", SLEEP, count=2,
                               env=self.environment())
        usage = self.once(name)
        self.assertEqual([[gpu["uuid"] for gpu in host["gpus"]] for host in usage["hosts"]], [["GPU-aaaa"]] * 2)
        self.assertEqual(len(self.helpers(job)), 2)
        self.end(job)


class Metrics(Gpus):

    def test_metrics(self):
        self.gpus(BUSY)
        job, name, (first, _) = self.run_with("--metrics", 0)
        self.gpus(BUSY, processes=[(0, first, 300 * MIB)])
        url = json.loads(self.ask("status", name, "--json").stdout)["metrics"]

        def scrape():
            found = samples(fetch(url)[1])
            return found if "hvdrun_rank_gpu_use_ratio" in found else None

        found = wait_until(scrape, "values that are new", patient(30))
        rank = {"job_id": name, "rank": "0", "host": "localhost"}
        for metric, value in (("use_ratio", 0.98), ("power_watts", 690.5), ("memory_bytes", 300 * MIB),
                              ("energy_joules_total", 5000)):
            self.assertEqual(found[f"hvdrun_rank_gpu_{metric}"], [(rank, value)])
        gpu = {"job_id": name, "host": "localhost", "gpu": "0", "uuid": "GPU-aaaa"}
        for metric, value in (("use_ratio", 0.98), ("power_watts", 690.5), ("memory_bytes", 1000 * MIB),
                              ("memory_used_bytes", 400 * MIB), ("energy_joules_total", 5000), ("failed", 0)):
            self.assertEqual(found[f"hvdrun_host_gpu_{metric}"], [(gpu, value)])
        self.end(job)

    def test_no_gpu(self):
        job, name = self.begin("--metrics", 0, "-np", 1, "sh", "-c", SLEEP, env={"LD_LIBRARY_PATH": ""})
        url = json.loads(self.ask("status", name, "--json").stdout)["metrics"]
        self.assertFalse(re.search(r"(?m)^hvdrun_\w*gpu", fetch(url)[1]))
        self.end(job)


if __name__ == "__main__":
    main()
