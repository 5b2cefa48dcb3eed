# SPDX-License-Identifier: Apache-2.0
"""libhvd with tensors on GPUs: tests/hvd with the fake CUDA and NCCL of tests/gpu/fake.

tests/gpu/nccl.sh runs the same programs with real ones."""
# ctest long
# ctest each HOROVOD_ENABLE_ASYNC_COMPLETION: 0 1

import os
import signal

from rig import BUILD, Flow, main, nightly

FAKE = os.path.join(BUILD, "tests/gpu/fake")
ASYNC = os.environ.get("HOROVOD_ENABLE_ASYNC_COMPLETION", "0")
ENGINE_ERROR, TIMEOUT, PEER_LOST = 14, 11, 10  # the numbers of hvd.h, without their sign


class HvdGpu(Flow):

    def setUp(self):
        super().setUp()
        if not os.path.exists(os.path.join(BUILD, "lib/hvd/hvd-gloo.so")):
            self.skipTest("the engine gloo was not built")

    def run_gpu(self, size, *argv, launcher=(), **env):
        folders = [FAKE] + [folder for folder in [os.environ.get("LD_LIBRARY_PATH")] if folder]
        env = {"LD_LIBRARY_PATH": ":".join(folders), **env}
        env["HOROVOD_ENABLE_ASYNC_COMPLETION"] = ASYNC
        program = os.path.join(BUILD, "tests/hvd/hvd_test_" + argv[0])
        return self.run_job("--controller", "gloo", "-np", size, *launcher, program, *argv[1:], env=env)

    def every(self, size, *argv, **env):
        result = self.expect(self.run_gpu(size, *argv, **env), 0)
        for rank in range(size):
            self.assertIn(f"rank {rank} of {size}: all right", result.stdout, result.describe())
        return result

    def test_collectives(self):
        for size in (1, 3) if ASYNC == "1" else (2, 4):
            with self.subTest(size=size):
                self.every(size, "collectives", "gpu")

    def test_adasum(self):
        for size in (1, 3) if ASYNC == "1" else (2, 4):
            with self.subTest(size=size):
                self.every(size, "adasum", "gpu")

    def test_rules(self):
        for size in (1, 2, 3):
            with self.subTest(size=size):
                self.every(size, "gpu", "rules")

    def test_an_operation_waits_for_the_stream_of_its_input(self):
        self.every(2, "gpu", "streams")

    def test_a_rank_that_has_joined_gives_zeros(self):
        self.every(3, "gpu", "join")

    def test_a_rank_that_joins_before_its_first_tensor(self):
        for size in (1, 3):
            self.every(size, "gpu", "early")

    def test_process_sets_that_share_a_rank(self):
        self.every(3, "gpu", "sets")

    def test_a_rank_without_nccl(self):
        """Its operation fails on all ranks, and the set stays usable."""
        self.every(3, "gpu", "refused", FAKE_GPU_FAIL="1:ncclGetVersion:1")

    def test_a_call_fails(self):
        for fault in ("ncclAllReduce:7", "ncclGroupEnd:3", "ncclCommInitRank:1", "ncclCommGetAsyncError:1",
                      "cuEventQuery:5", "cuStreamWaitEvent:3", "cuLaunchHostFunc:3", "cuStreamCreateWithPriority:2"):
            with self.subTest(fault=fault):
                env = {"FAKE_GPU_FAIL": "1:" + fault, "HOROVOD_GLOO_TIMEOUT_SECONDS": "10"}
                if fault.startswith("ncclCommGetAsyncError"):  # it is asked once a second
                    env["FAKE_GPU_STALL"] = "1:ncclKernel:9"
                self.every(3, "gpu", "broken", ENGINE_ERROR, **env)

    def test_adasum_fails(self):
        for fault in ("cuMemcpyDtoHAsync_v2:1", "cuMemcpyHtoDAsync_v2:2"):
            with self.subTest(fault=fault):
                self.every(3, "gpu", "staged", ENGINE_ERROR, FAKE_GPU_FAIL="1:" + fault,
                           HOROVOD_GLOO_TIMEOUT_SECONDS="10")

    def test_an_operation_hangs_on_the_gpu(self):
        result = self.every(3, "gpu", "broken", TIMEOUT, FAKE_GPU_STALL="1:ncclKernel:9",
                            HOROVOD_STALL_CHECK_TIME_SECONDS="1", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="2")
        self.assertIn(f"the step with the fault: status -{TIMEOUT}\n", result.stdout, result.describe())

    def test_a_rank_does_not_come_to_the_communicator(self):
        self.every(3, "gpu", "broken", PEER_LOST, FAKE_GPU_ABSENT="1:ncclCommInitRank:1",
                   HOROVOD_GLOO_TIMEOUT_SECONDS="3")

    def kill(self, number):
        with self.subTest(number=number):
            result = self.expect(self.run_gpu(4, "gpu", "killed", number), 128 + signal.SIGKILL)
            self.assertEqual(result.stdout.count("all right"), 3, result.describe())

    def test_a_rank_is_killed(self):
        for number in range(4):
            self.kill(number)

    @nightly("the first 4 run always")
    def test_a_rank_is_killed_200_times(self):
        for number in range(4, 204):
            self.kill(number)

    def test_elastic(self):
        launcher = ("--min-np", 2, "--max-np", 3, "-H", "localhost:3")
        result = self.run_gpu(3, "gpu", "elastic", 30, launcher=launcher, HVD_TEST_ONCE=self.box.path("once"))
        self.expect(result, 0)
        self.assertIn("rank 1 on localhost was killed by SIGKILL", result.stderr, result.describe())
        self.assertIn("rank 0 of", result.stdout, result.describe())


if __name__ == "__main__":
    main()
