# SPDX-License-Identifier: Apache-2.0
"""`hvdrun check --gpu` with the fake library of NVIDIA in tests/gpu/fake, and a fake Python (docs/check.md)."""
# ctest waits

import os
import re
import signal
from subprocess import run

from procfs import descendants
from rig import main, patient, wait_until
from test_check import NUMBER, OPTIONAL, TEXT, Checks
from test_gpus import MIB, OLD_LIBRARY, Gpus

GPU = {"uuid": "GPU-a", "pci": "00000000:3B:00.0", "name": "NVIDIA_H100", "temperature": 41, "reasons": 5, "ecc_1_0": 0,
       "ecc_1_1": 4, "remapped": "0,1,0,0", "total": 80000 * MIB, "used": 600 * MIB, "links": 18}
COUNT = (int, type(None))
SPEED = (*NUMBER, type(None))
PROCESS = {"pid": int, "name": OPTIONAL, "user": OPTIONAL, "memory_bytes": COUNT}
FORM = {"index": int, "uuid": OPTIONAL, "pci": OPTIONAL, "name": OPTIONAL, "trouble": OPTIONAL,
        "temperature_celsius": COUNT, "uncorrected_ecc_errors": COUNT, "memory_bytes": COUNT, "memory_used_bytes": COUNT,
        "nvlinks": int, "nvlinks_up": int, "processes": list, "bf16_tflop_per_s": SPEED, "memory_gb_per_s": SPEED,
        "host_gb_per_s": SPEED}


# A PyTorch with one GPU. It says on which processors the program is when the block of host memory is made.
TORCH = """
import builtins, io, os
from types import SimpleNamespace as Names
CPU, PLACE, opened = max(os.sched_getaffinity(0)), "/sys/bus/pci/devices/0000:3b:00.0/local_cpulist", builtins.open
builtins.open = lambda path, *args, **more: io.StringIO(f"{CPU},900-901") if path == PLACE else opened(path, *args, **more)
class Tensor:
    def copy_(self, other, non_blocking=False): pass
class Event:
    def __init__(self, enable_timing): pass
    def record(self): pass
    def elapsed_time(self, last): return 1000
def empty(size, pin_memory=False, **more):
    if pin_memory: opened("pinned", "a").write(f"{sorted(os.sched_getaffinity(0)) == [CPU]}\\n")
    return Tensor()
__version__, bfloat16, uint8, _C = "9.0", 0, 0, object()
version, randn, empty_like, mm = Names(cuda="13"), lambda *a, **k: Tensor(), lambda a: Tensor(), lambda a, b, out: None
cuda = Names(is_available=lambda: True, device_count=lambda: 1, mem_get_info=lambda device: (70 << 30, 80 << 30), Event=Event,
             get_device_properties=lambda device: Names(uuid="a", pci_domain_id=0, pci_bus_id=0x3b, pci_device_id=0),
             set_device=lambda device: None, synchronize=lambda device: None, empty_cache=lambda: None,
             get_device_name=lambda device: "H100")
"""


class CheckGpus(Checks, Gpus):

    def python(self, *lines, end="exit 0"):
        """A Python that prints these lines, whatever its program says."""
        text = "".join(f"echo '{line}'\n" for line in lines)
        return self.write("python", f"#!/bin/sh\ncat >/dev/null\n{text}{end}\n", 0o755)

    def look(self, *args, status=0, python=None, env=None):
        report = self.report("--gpu", "--python", python or self.python("none it has no PyTorch"), *args, status=status,
                             env=env or self.environment())
        return report, [one["text"] for one in report["findings"] if "GPU" in one["text"]]

    def test_a_healthy_host(self):
        """No finding, and all that is known in the JSON."""
        self.gpus(GPU, dict(GPU, uuid="GPU-b"))
        speeds = ("torch 2.11.0", "nccl 2.28.9", "speed GPU-b 690.5 3100.5 55.25", "speed GPU-a 680 3000 54", "reduce 2 301.5")
        report, texts = self.look(python=self.python(*speeds))
        self.assertEqual(texts, [])
        check = report["hosts"][0]["gpu_check"]
        for gpu in check["gpus"]:
            self.expect_form(gpu, FORM)
        self.assertEqual({key: value for key, value in check.items() if key != "gpus"}, {
            "pytorch": "2.11.0", "nccl": "2.28.9", "no_test": None, "all_reduce_gb_per_s": 301.5,
            "between_hosts_gb_per_s": None})
        self.assertEqual(check["gpus"][1], {
            "index": 1, "uuid": "GPU-b", "pci": "00000000:3B:00.0", "name": "NVIDIA_H100", "trouble": None,
            "temperature_celsius": 41, "uncorrected_ecc_errors": 0, "memory_bytes": 80000 * MIB,
            "memory_used_bytes": 600 * MIB, "nvlinks": 18, "nvlinks_up": 18, "processes": [], "bf16_tflop_per_s": 690.5,
            "memory_gb_per_s": 3100.5, "host_gb_per_s": 55.25})
        shown = self.check("--gpu", "--python=" + self.python(*speeds), env=self.environment()).stdout
        self.assertIn("\nGPUs: 2 checked, 41 degrees Celsius\n"
                      "GPU test: 2 tested, 680 to 690 TFLOP/s in bf16, 3000 to 3100 GB/s in memory, "
                      "54 to 55 GB/s from the host, 302 GB/s in all-reduces\n", shown)

    def test_faults(self):
        self.gpus(GPU, dict(GPU, uuid="GPU-b", ecc_1_0=2, links_up=17, reasons=64), dict(GPU, uuid="GPU-c"),
                  processes=[(0, os.getpid(), 4000 * MIB)])
        report, texts = self.look(python=self.python("speed GPU-a 690 3000 55", "speed GPU-b 300 3000 55",
                                                     "speed GPU-c 680 3000 55"))
        self.assertEqual(len(texts), 5, texts)
        self.assertRegex(texts[0], rf"^GPU 0: python[\d.]* \(pid {os.getpid()}, user \S+\) holds 4000 MiB of its memory")
        self.assertIn("GPU 1 has had 2 uncorrected ECC errors since its driver was loaded (median 0): ", texts[1])
        self.assertIn("GPU 1 has lower clocks, at 41 degrees Celsius (median 41): hardware thermal slowdown: ", texts[2])
        self.assertIn("GPU 1 has 17 NVLinks up (median 18): ", texts[3])
        self.assertIn("GPU 1 is slow: 300 TFLOP/s in bf16 (median 680): ", texts[4])
        process, = report["hosts"][0]["gpu_check"]["gpus"][0]["processes"]
        self.expect_form(process, PROCESS)
        self.assertEqual(process["memory_bytes"], 4000 * MIB)

    def test_a_lost_gpu(self):
        self.gpus(GPU, faults=[("fail", "nvmlDeviceGetTemperature", 15)])
        report, texts = self.look(status=125)
        self.assertIn("GPU 0 is lost: ", texts[0])
        self.assertEqual(report["hosts"][0]["state"], "problem")

    def test_an_older_driver(self):
        """What it does not say is not known, and no fault."""
        self.gpus(GPU)
        report, texts = self.look(env=self.environment(OLD_LIBRARY))
        self.assertEqual(texts, [])
        self.assertEqual(report["hosts"][0]["gpu_check"]["gpus"][0]["name"], "NVIDIA_H100")

    def test_no_gpu_anywhere(self):
        result = self.check("-q", "--gpu", status=125, env={"LD_LIBRARY_PATH": ""})
        self.assertIn("problem: no host has a GPU of NVIDIA: use other hosts, or install NVIDIA's driver there\n", result.stdout)

    def test_hosts_that_are_one_machine(self):
        """One of them is asked."""
        self.gpus(GPU)
        report, texts = self.look("-H", "a,b", "--transport", "local")
        self.assertEqual(texts, [])
        self.assertEqual([len(host["gpu_check"]["gpus"]) for host in report["hosts"]], [1, 0])

    def test_no_test(self):
        self.gpus(GPU)
        for python, reason in ((self.python("none it has no PyTorch"), "it has no PyTorch"),
                               ("/no/such/python", "there is no /no/such/python")):
            report, texts = self.look(python=python)
            self.assertEqual((report["hosts"][0]["gpu_check"]["no_test"], texts), (reason, []))
            shown = self.check("--gpu", "--python", python, env=self.environment()).stdout
            self.assertIn(f"\nGPU test: none: {reason}\n", shown)

    def test_a_test_that_fails(self):
        """What it has said before is kept."""
        self.gpus(GPU)
        report, texts = self.look(python=self.python("speed GPU-a 690 3000 55", end="echo CUDA is ill >&2; exit 1"))
        self.assertRegex(texts[0], r"the test of its GPUs failed: .*CUDA is ill")
        self.assertEqual(report["hosts"][0]["gpu_check"]["gpus"][0]["bf16_tflop_per_s"], 690)

    def test_the_program_itself(self):
        """A Python without PyTorch says so."""
        self.gpus(GPU)
        self.write("torch.py", "raise ImportError\n")
        python = self.write("python", f"#!/bin/sh\nPYTHONPATH={self.box.path('')} exec python3 \"$@\"\n", 0o755)
        report, texts = self.look(python=python)
        self.assertEqual((report["hosts"][0]["gpu_check"]["no_test"], texts), ("this Python has no PyTorch", []))

    def leave_out(self, *args, lines=("none it has no PyTorch",), status=0, reach=("--transport", "local")):
        """A job of two names of this machine, of which the check looks at the GPUs of the first."""
        os.rename(self.python(*lines), self.box.path("python3"))
        env = dict(self.environment(), PATH=self.box.path("") + ":" + os.environ["PATH"])
        return self.expect(self.run_job(*reach, "--leave-out-bad", *args, "sh", "-c",
                                        "echo on $HVDRUN_HOSTNAME", env=env, timeout=patient(60)), status)

    def test_a_job_without_bad_hosts(self):
        self.gpus(GPU, dict(GPU, uuid="GPU-b"), dict(GPU, uuid="GPU-c"))
        home = self.box.path("away")
        os.mkdir(home)
        slow = ("speed GPU-a 690 3000 55", "speed GPU-b 300 3000 55", "speed GPU-c 690 3000 55")
        result = self.leave_out("--bad-hosts", "bad", "--report", "report", "-np", 2, "-H", "a:2,b:2", lines=slow,
                                reach=("--launch-agent", f"env -u XDG_RUNTIME_DIR TMPDIR={home} HOME={home} HOST=%h"))
        self.assertEqual(result.stdout.count("on b\n"), 2, result.describe())
        self.expect_said(result, r"a is bad: GPU 1 is slow: 300 TFLOP/s in bf16 \(median 690\)[^\n]*; bad remembers it for 168 h")
        self.expect_said(result, r"--leave-out-bad leaves out a \(GPU 1 is slow: 300 TFLOP/s in bf16 \(median 690\): ")
        with open(self.box.path("bad"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^a since=\S+ until=\S+ job=\S+ GPU 1 is slow: 300 TFLOP/s")
        self.assertEqual(len(self.read_json(self.box.path("report"))["ranks"]), 2)

    def test_too_few_hosts_are_well(self):
        self.gpus(GPU, faults=[("fail", "nvmlDeviceGetTemperature", 15)])
        for args in (["-np", 2, "-H", "a:1,b:1"], ["-H", "a"], ["-np", 2, "--min-np", 2, "-H", "a,b"]):
            result = self.leave_out(*args, status=123)
            self.expect_said(result, r"^hvdrun: not enough slots: [^\n]*--leave-out-bad leaves out a \(GPU 0 is lost: [^\n]*\n$")
        result = self.leave_out("--bad-hosts", "bad", "-np", 2, "-H", "a:1,b:1", status=123)
        self.expect_said(result, "; mend these hosts")  # there is no line to delete

    def test_a_job_on_good_hosts(self):
        self.gpus(GPU)
        result = self.leave_out("-H", "a,b", lines=["speed GPU-a 690 3000 55"])
        self.assertEqual(sorted(re.findall(r"on (\w)", result.stdout)), ["a", "b"])
        self.assertEqual(result.stderr, "")
        result = self.leave_out("--host-discovery-script", "true", "-np", 1, status=2)
        self.expect_said(result, "--leave-out-bad: hvdrun learns the hosts of this job only when the job runs")
        result = self.expect(self.run_job("--transport", "dial", "--leave-out-bad", "-H", "a", "true"), 2)
        self.expect_said(result, "--leave-out-bad: an agent that dials in does so once, for the job and not for a check before it")

    def test_ctrl_c_before_the_job(self):
        """It ends the check, and the job does not start."""
        self.gpus(GPU)
        python = self.python(end="echo $$ >$0.pid; exec sleep 600")
        os.rename(python, self.box.path("python3"))
        env = dict(self.environment(), PATH=self.box.path("") + ":" + os.environ["PATH"])
        job = self.start("--transport", "local", "--leave-out-bad", "-H", "a", "echo", "started", env=env)
        pid = self.box.path("python3") + ".pid"
        wait_until(lambda: os.path.exists(pid) and os.path.getsize(pid), "the test runs", patient(40))
        job.signal(signal.SIGINT)
        result = job.wait(patient(40))
        self.assertIn(result.status, (130, -signal.SIGINT), result.describe())
        self.assertEqual(result.stdout, "")

    def between(self, python):
        report, _ = self.look("-H", "a,b,c", "--transport", "local", python=python)
        texts = [one["text"] for one in report["findings"] if "all-reduce" in one["text"]]
        return texts, [host["gpu_check"]["between_hosts_gb_per_s"] for host in report["hosts"]]

    def test_between_hosts(self):
        """Each host but the first and the last is in two pairs."""
        self.gpus(GPU)
        python = self.write("python", """#!/bin/sh
cat > /dev/null
[ "$3" = between ] || exec echo torch 2.11.0
echo "$4 $5 $7" >> pairs
echo between 1.5
""", 0o755)
        self.assertEqual(self.between(python), ([], [1.5, 1.5, 1.5]))
        with open(self.box.path("pairs"), encoding="ascii") as file:
            self.assertEqual(sorted(file.read().splitlines()), ["0 127.0.0.1 lo"] * 2 + ["1 127.0.0.1 lo"] * 2)
        shown = self.check("--gpu", "--python", python, "-H", "a,b,c", "--transport", "local", env=self.environment()).stdout
        self.assertIn("\nall-reduces between hosts: 3 hosts tested, 1.50 to 1.50 GB/s\n", shown)

    def test_between_hosts_that_fail(self):
        self.gpus(GPU)
        python = self.write("python", """#!/bin/sh
cat > /dev/null
[ "$3" = between ] || exec echo torch 2.11.0
[ "$4" = 0 ] || exec echo between rubbish
echo "Connection refused" >&2
exit 1
""", 0o755)
        texts, figures = self.between(python)
        self.assertEqual(figures, [None] * 3)
        self.assertEqual(len(texts), 2, texts)  # of the ranks that are 0
        for text in texts:
            self.assertRegex(text, r"^an all-reduce with [abc] failed: .*Connection refused.*: check the network and firewalls "
                                   r"between them$")

    def test_a_host_that_is_lost_between_hosts(self):
        """It would be in a second pair: its partner there does not wait for it."""
        self.gpus(GPU)
        python = self.write("python", """#!/bin/sh
cat > /dev/null
[ "$3" = between ] || exec echo torch 2.11.0
echo "$4" >> pairs
[ "$4" = 0 ] || kill -KILL $PPID
echo between 1.5
""", 0o755)
        report, _ = self.look("-H", "a,b,c", "--transport", "local", python=python, status=125)
        self.assertEqual([host["gpu_check"]["between_hosts_gb_per_s"] for host in report["hosts"]], [1.5, None, None])
        with open(self.box.path("pairs"), encoding="ascii") as file:
            self.assertEqual(sorted(file.read().split()), ["0", "1"])

    def test_between_hosts_with_pytorch(self):
        if run(["/usr/bin/python3", "-c", "import torch.distributed"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no PyTorch in /usr/bin/python3")
        self.gpus(GPU)
        texts, figures = self.between("/usr/bin/python3")
        self.assertEqual(texts, [])
        for figure in figures:
            self.assertGreater(figure, 0)

    def test_the_program_with_a_gpu(self):
        """The memory of the host that it copies from is near the GPU."""
        self.gpus(GPU)
        self.write("torch.py", TORCH)
        python = self.write("python", f"#!/bin/sh\nPYTHONPATH={self.box.path('')} exec python3 \"$@\"\n", 0o755)
        report, texts = self.look(python=python)
        self.assertEqual(texts, [])
        check = report["hosts"][0]["gpu_check"]
        self.assertEqual((check["pytorch"], check["gpus"][0]["memory_gb_per_s"]), ("9.0", 21.5))
        with open(self.box.path("pinned"), encoding="ascii") as file:
            self.assertEqual(file.read(), "True\n")

    def begin_test(self):
        self.gpus(GPU)
        python = self.python(end="echo $$ >$0.pid; exec sleep 600")
        job = self.start("check", "--gpu", "--python", python, env=self.environment())
        wait_until(lambda: os.path.exists(python + ".pid") and os.path.getsize(python + ".pid"), "the test runs")
        return job

    def test_ctrl_c_ends_the_test(self):
        job = self.begin_test()
        self.assertTrue([one for one in descendants(job.pid) if one.read("cmdline").startswith(b"sleep")])
        job.signal(signal.SIGINT)
        self.assertEqual(job.wait(patient(60)).status, 130)

    def test_an_agent_that_is_killed_meanwhile(self):
        job = self.begin_test()
        for agent in job.agents():
            os.kill(agent.pid, signal.SIGKILL)
        result = self.expect(job.wait(patient(60)), 125)
        self.assertRegex(result.stdout, r"problem: localhost: lost: ")


if __name__ == "__main__":
    main()
