# SPDX-License-Identifier: Apache-2.0
"""Flow tests of --warm."""

import json
import os
import re
import time

from asked import Asked

# All that a program can see of its own start, but what must differ.
PROBE = r"""
import json, os, resource, signal, sys
def names(folder):
    return sorted((int(n), os.path.realpath(f"{folder}/{n}").split(":")[0]) for n in os.listdir(folder)
                  if os.path.exists(f"{folder}/{n}") and int(n) > 2)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
policies = set(line.split()[1] for line in open("/proc/self/numa_maps")) if os.path.exists("/proc/self/numa_maps") else ()
streams = [(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.fileno(), s.isatty())
           for s in (sys.stdin, sys.stdout, sys.stderr)]
seen = dict(
    argv=sys.argv, orig=sys.orig_argv, path=sys.path, flags=repr(sys.flags), executable=sys.executable, streams=streams,
    command=open("/proc/self/cmdline").read(), name=status["Name"].strip(), threads=status["Threads"].strip(),
    signals=[status[f"Sig{kind}"].strip() for kind in ("Blk", "Ign", "Cgt")], files=names("/proc/self/fd"),
    leads=os.getsid(0) == os.getpid() == os.getpgrp(), cwd=os.getcwd(), cpus=sorted(os.sched_getaffinity(0)),
    limits=[resource.getrlimit(n) for n in range(15)], nice=os.nice(0), umask=os.umask(0), main=__name__,
    file=globals().get("__file__"), spec=__spec__ and (__spec__.name, __spec__.origin), same=sys.modules["__main__"].__dict__ is globals(),
    environment={n: v for n, v in os.environ.items() if not n.startswith(("HVDRUN_", "OMPI_", "PMIX_", "TORCHELASTIC_"))},
    shown=set(os.environ) <= {p.split("=")[0] for p in open("/proc/self/environ").read().split("\0")},
    stdin=sys.stdin.readline(), cgroup=open("/proc/self/cgroup").read(), policy=sorted(policies),
    rest=[open("/proc/self/" + name).read() for name in ("oom_score_adj", "coredump_filter", "personality", "timerslack_ns")],
    rights=[status.get(name) for name in ("NoNewPrivs", "Seccomp", "CapEff", "CapBnd", "Mems_allowed", "Groups")],
    scheduling=(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)))
for name in ("MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "HOROVOD_GLOO_RENDEZVOUS_PORT", "KUBEFLOW_TRAINER_SERVER_URL",
             "KUBEFLOW_TRAINER_SERVER_TOKEN", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"):
    seen["environment"].pop(name, None)
seen["environment"].pop("NCCL_RAS_ADDR", None)
pmi = int(seen["environment"].pop("PMI_FD", -1))
seen["pmi"] = [os.path.basename(what) for number, what in seen["files"] if number == pmi]
seen["files"] = [file for file in seen["files"] if file[0] != pmi]
print("SEEN", json.dumps(seen, default=str), flush=True)
"""


class WarmFlow(Asked):

    def warm(self, *args, **options):
        return self.run_job("-v", "--warm", *args, **options)

    def is_warm(self, result, count=1):
        self.assertRegex(result.stderr, rf"{count} ranks? forked", result.describe())

    def outside(self, name, text):
        """A module that is not in the folder of the script."""
        folder = self.box.path("outside")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
            file.write(text)
        return {"PYTHONPATH": folder}

    def seen(self, result, count):
        self.expect(result, 0)
        lines = re.findall(r"SEEN (.*)$", result.stdout, re.M)
        self.assertEqual(len(lines), count, result.describe())
        return sorted((json.loads(line) for line in lines), key=lambda seen: seen["environment"]["RANK"])

    def both_ways(self, *args, count=1, **options):
        cold = self.run_job(*args, **options)
        warm = self.warm(*args, **options)
        self.is_warm(warm, count)
        self.maxDiff = None
        for a, b in zip(self.seen(cold, count), self.seen(warm, count)):
            self.assertEqual(a, b)

    def mother_of(self, job):
        def find():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        words = file.read()
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        marked = self.box.path("mark").encode() in file.read()
                except OSError:
                    continue
                if b"<hvdrun --warm>" in words and marked:
                    return int(pid)
            return None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            pid = find()
            if pid is not None:
                return pid
            time.sleep(0.02)
        self.fail("no mother: " + job.describe())
