# SPDX-License-Identifier: Apache-2.0
"""Hosts without a slot count have as many slots as GPUs, which only their agents know."""

from ground import worker
from hosts import Hosts, main

GPUS = """set -e
mkdir /run/gpu /run/dev
mount -t tmpfs tmpfs /run/gpu && mount -t tmpfs tmpfs /run/dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/fd /run/dev
mkdir /run/dev/shm /run/dev/pts
mount --bind /dev/shm /run/dev/shm && mount --bind /dev/pts /run/dev/pts
i=0
while [ $i -lt $1 ]; do
    mkdir -p /run/gpu/nvidia/gpus/0000:0$i:00.0
    printf 'Model: \\t\\t Made up\\nBus Location: \\t 0000:0%d:00.0\\nDevice Minor: \\t %d\\n' $i $i \\
        >/run/gpu/nvidia/gpus/0000:0$i:00.0/information
    mknod -m 666 /run/dev/nvidia$i c 1 3
    i=$((i + 1))
done
mount --bind /run/gpu /proc/driver && mount --bind /run/dev /dev
"""


class Gpus(Hosts):
    def setUp(self):
        super().setUp()
        for number, count in ((1, 3), (2, 2)):
            self.host(number).run("sh", "-c", GPUS, "gpus", str(count))
            self.addCleanup(self.host(number).crash)  # it is booted anew for the next test

    def ranks(self, *args, status=0):
        result = self.ssh_job(*args, "sh", "-c", "echo $RANK $LOCAL_RANK/$LOCAL_WORLD_SIZE $(hostname)")
        self.expect(result, status)
        return sorted(line.split(":", 1)[1] for line in result.lines if line.startswith("["))

    def test_a_rank_for_each_gpu(self):
        self.assertEqual(self.ranks("-H", "node1,node2"),
                         ["0 0/3 node1", "1 1/3 node1", "2 2/3 node1", "3 0/2 node2", "4 1/2 node2"])

    def test_a_host_without_gpus_has_one_slot(self):
        self.assertEqual(self.ranks("-H", "node3,node2"), ["0 0/1 node3", "1 0/2 node2", "2 1/2 node2"])

    def test_a_line_of_torchrun_counts_them(self):
        line = ["torchrun", "--nproc-per-node", "gpu", "--no-python"]
        self.assertEqual(self.ranks("-H", "node1:1,node2", *line), ["0 0/1 node1", "1 0/2 node2", "2 1/2 node2"])
        result = self.ssh_job("-H", "node2", "torchrun", "--nproc-per-node", 2, "--virtual-local-rank", "--no-python",
                              "sh", "-c", "echo $RANK $LOCAL_RANK $HVDRUN_LOCAL_RANK $CUDA_VISIBLE_DEVICES")
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:0 0 0 0", "[1]<stdout>:1 0 1 1"])

    def test_np_may_use_them(self):
        self.assertEqual(self.ranks("-np", "4", "-H", "node1,node2"),
                         ["0 0/3 node1", "1 1/3 node1", "2 2/3 node1", "3 0/1 node2"])

    def test_a_number_that_is_given_counts(self):
        self.assertEqual(self.ranks("-H", "node1:1,node2"), ["0 0/1 node1", "1 0/2 node2", "2 1/2 node2"])

    def test_a_host_that_gets_no_rank_is_left(self):
        self.assertEqual(self.ranks("-np", "3", "-H", "node1,node2"), ["0 0/3 node1", "1 1/3 node1", "2 2/3 node1"])
        self.check_hosts()

    def test_more_ranks_than_gpus(self):
        result = self.ssh_job("-np", "6", "-H", "node1,node2", worker("hello"))
        self.expect(result, 123)
        self.assertIn("6 ranks wanted, 5 slots found (node1: 3, node2: 2)", result.stderr)

    def test_a_rank_that_is_not_there(self):
        result = self.ssh_job("--stdin", "5", "-H", "node1,node2", worker("hello"))
        self.expect(result, 2)
        self.assertIn("--stdin: rank 5 does not exist; the job has ranks 0 to 4", result.stderr)

    def test_stdin_reaches_a_rank_of_the_late_plan(self):
        result = self.ssh_job("--stdin", "4", "-H", "node1,node2", "cat", stdin=b"to the last\n")
        self.assertEqual(self.expect(result, 0).lines, ["[4]<stdout>:to the last"])

    def test_mpi(self):
        result = self.ssh_job("-H", "node1,node2", worker("mpi_ring.openmpi"))
        self.expect(result, 0)

    def test_a_round_of_mpi_is_open_at_the_end(self):
        """The others wait in MPI_Init for a rank that dies: their round outlives the plan's users."""
        result = self.ssh_job("--grace", "2", "-H", "node1,node2", worker("mpi_die.openmpi"), "in", "4", "6")
        self.expect(result, 6)


if __name__ == "__main__":
    main()
