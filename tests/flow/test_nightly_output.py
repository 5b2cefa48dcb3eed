# SPDX-License-Identifier: Apache-2.0
"""Output at its worst: many ranks that write as fast as they can, lines without end."""

import os
import re
import subprocess
import threading

from rig import Flow, main, sanitized, worker


MEMORY_KB = (400 if sanitized() else 110) * 1024  # the budget of 64 MiB, the queue, and the launcher itself


class Storm(Flow):

    def verified(self, ranks, lines, *words, length=100):
        """Runs spew into lines_verify; returns the most memory that driver or agent had meanwhile."""
        read, write = os.pipe()
        reader = self.helper(worker("lines_verify"), "--ranks", ranks, "--lines", lines, stdin=read,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(read)
        job = self.start("-np", ranks, worker("spew"), "--lines", lines, "--length", length, *words, stdout=write)
        os.close(write)
        most, end = 0, threading.Event()

        def watch():
            nonlocal most
            while not end.wait(0.05):
                most = max(most, job.memory_kb())

        watcher = threading.Thread(target=watch)
        watcher.start()
        result = job.wait(600)
        end.set()
        watcher.join()
        said = reader.communicate()[0].decode()
        self.assertEqual(reader.popen.returncode, 0, said)
        self.expect(result, 0)
        return most

    def test_64_ranks_as_fast_as_they_can(self):
        # 64 x 100,000 lines: what 64 ranks say in a second when each says 100,000 lines
        self.assertLess(self.verified(64, 5000 if sanitized() else 100000, "--chunk", 4099), MEMORY_KB)

    def test_64_ranks_that_write_each_line_alone(self):
        self.verified(64, 500 if sanitized() else 5000, "--chunk", 100)

    def test_lines_of_10_mib_beside_others(self):
        # cut where somebody else speaks, but every byte is there, in its order, and every line of the others whole
        script = self.write("long", "#!/bin/sh\nif [ $RANK = 0 ]; then head -c 10485760 /dev/zero | tr '\\0' z; echo; "
                            "else for i in $(seq 2000); do echo \"line $i of $RANK\"; done; fi\n", 0o755)
        result = self.expect(self.run_job("-np", 3, script), 0)
        lines = result.stdout.split("\n")
        own = [line for line in lines if line.startswith("[0]<stdout>:")]
        self.assertEqual(sum(line.count("z") for line in own), 10485760)
        self.assertEqual([line for line in own if not re.fullmatch(r"\[0\]<stdout>:(\.\.\.)?z*", line)], [])
        for rank in (1, 2):
            self.assertEqual([line for line in lines if line.startswith(f"[{rank}]")],
                             [f"[{rank}]<stdout>:line {i} of {rank}" for i in range(1, 2001)])

    def test_a_prompt_beside_a_rank_that_never_stops(self):
        script = self.write("prompt", f"#!/bin/sh\n[ $RANK = 1 ] && exec {worker('spew')} --rank all --for-ever\n"
                            "printf 'Name: '; exec sleep 600\n", 0o755)
        read, write = os.pipe()
        reader = self.helper("grep", "-a", "-m", 1, "Name:", stdin=read, stdout=subprocess.PIPE)
        os.close(read)
        job = self.start("-np", 2, script, stdout=write)
        os.close(write)
        self.assertEqual(reader.communicate()[0], b"[0]<stdout>:Name: \n")
        self.expect(job.wait(60), 141)  # grep has gone


if __name__ == "__main__":
    main()
