# SPDX-License-Identifier: Apache-2.0
"""--gpu-free: a restart waits until the memory of the GPUs is free, with the fake library of NVIDIA in tests/gpu/fake."""
# ctest waits

import os
import time

from rig import main, patient
from test_gpus import MIB, Gpus

GPU = {"uuid": "GPU-a", "name": "NVIDIA_H100", "total": 1000 * MIB, "used": 50 * MIB}
FULL = dict(GPU, uuid="GPU-b", used=400 * MIB)
CRASHES = 'echo "in epoch $HVDRUN_EPOCH"; [ "$HVDRUN_EPOCH" = 1 ] || exit 0; exit 3'


class GpuFree(Gpus):

    def begin_crash(self, free, *args):
        return self.start("--transport", "local", "-np", 1, "-H", "a", "--max-restarts", 1, "--gpu-free", free, *args,
                          "sh", "-c", CRASHES, env=self.environment())

    def test_waits_until_it_is_free(self):
        self.gpus(GPU, FULL, processes=[(1, os.getpid(), 350 * MIB)])
        job = self.begin_crash("90%:10m")
        job.wait_output("all workers restart", "stderr", timeout=patient(40))
        time.sleep(1)  # it should wait now
        self.assertNotIn("in epoch 2", job.output())
        self.gpus(GPU, dict(FULL, used=100 * MIB))
        result = self.expect(job.wait(patient(60)), 0)
        self.assertIn("in epoch 2", result.stdout)
        self.expect_not_said(result, "although")

    def test_not_longer_than_that(self):
        self.gpus(GPU, FULL, processes=[(1, os.getpid(), 350 * MIB)])
        result = self.expect(self.begin_crash("61%:100ms").wait(patient(60)), 0)
        self.expect_said(result, r"the workers restart after [\d.]+ s of --gpu-free, although GPU 1 of a has only 60 % of its "
                                 rf"memory free: python[\d.]* \(pid {os.getpid()}, user \S+\) holds 350 MiB\n")
        self.assertIn("in epoch 2", result.stdout)

    def test_free_memory_and_no_gpus(self):
        self.gpus(GPU, FULL)
        for env in (self.environment(), {"LD_LIBRARY_PATH": ""}):
            result = self.run_job("--transport", "local", "-np", 1, "-H", "a", "--max-restarts", 1, "--gpu-free", "60%", "sh",
                                  "-c", CRASHES, env=env)
            self.expect_not_said(self.expect(result, 0), "--gpu-free")

    def test_ctrl_c_meanwhile(self):
        self.gpus(FULL)
        job = self.begin_crash("90%:10m")
        job.wait_output("all workers restart", "stderr", timeout=patient(40))
        job.signal(2)
        self.expect(job.wait(patient(40)), 130)

    def test_wrong_values(self):
        for value in ("90", "%", "0%", "101%", "90%:", "90%:x", "90%:2h", "90%:60s:1"):
            with self.subTest(value=value):
                result = self.expect(self.run_job("--gpu-free", value, "-np", 1, "true"), 2)
                self.assertRegex(result.stderr, r"^hvdrun: --gpu-free: '[^']*' is not a share of GPU memory; expected 1% to 100%, "
                                                r"with the longest time to wait for it, as in 90%:60s \(at most 1h\)\n$")


del Gpus  # not its tests here

if __name__ == "__main__":
    main()
