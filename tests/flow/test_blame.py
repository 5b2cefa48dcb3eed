# SPDX-License-Identifier: Apache-2.0
"""What is named when several things fail at once, and the driver hears of them late or in the wrong order."""
# ctest waits
# ctest warm

import json
import os
import re
import signal
import sys

from rig import Flow, main, process, state, wait_until

# All ranks are connected with rank 2. A rank ends as its argument "RANK:HOW" says, once the file "go" is there.
# HOW is "crash", "exit-N", or "leave-N": it closes its connections, and exits when its peers have done so.
# The others end when a connection does, and write what a library would write (argument 1).
PEERS = """
import os, signal, socket, sys, time

rank, size, text = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1]
how = dict(word.split(":") for word in sys.argv[2:]).get(str(rank), "")
middle = socket.socket(socket.AF_UNIX)
if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
    sys.exit(0)
if rank == 2:
    middle.bind("middle.new")
    middle.listen(size)
    os.rename("middle.new", "middle")
    peers = [middle.accept()[0] for _ in range(size - 1)]
    pids = [int(peer.recv(20)) for peer in peers]
else:
    while not os.path.exists("middle"):
        time.sleep(0.01)
    middle.connect("middle")
    middle.send(str(os.getpid()).encode())
    peers = [middle]
print("ready", os.getpid(), flush=True)
if how:
    while not os.path.exists("go"):
        time.sleep(0.01)
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    word, _, code = how.partition("-")
    for peer in peers:
        peer.close()
    for pid in pids if word == "leave" else []:
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)
    os._exit(int(code))
peers[0].recv(1)
if text:
    print(text, file=sys.stderr, flush=True)
os._exit(1)
"""

CLOSED = "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.1]:33502"
LIBHVD = "the connection to rank 3 ended"
NAMED = "horovod.common.exceptions.HorovodInternalError: rank 2 has shut the library down"
HOROVOD = "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception"
LOST = "node b was lost: its agent was killed by SIGKILL"


class Blame(Flow):

    def job(self, text, *how, args=("-H", "a:2,b:2")):
        script = self.write("peers.py", PEERS)
        for name in ("go", "middle"):
            if os.path.exists(self.box.path(name)):
                os.unlink(self.box.path(name))
        job = self.start("--transport", "local", "--grace", "1", *args, sys.executable, "-B", script, text, *how)
        job.wait_output("ready", count=4)
        self.pids = {int(rank): int(pid) for rank, pid in re.findall(r"\[(\d)\]<stdout>:ready (\d+)", job.output())}
        return job

    def behind_the_driver(self, job, *acts):
        """The driver is stopped meanwhile, as on a busy machine. Each of `acts` waits for what it has done."""
        agents = {one.read("cmdline").rstrip(b" \0")[-1:]: one.pid for one in job.agents()}
        job.signal(signal.SIGSTOP)
        wait_until(lambda: state(job.pid) == "T", "the driver stands still")
        for act in acts:
            act(agents)
        job.signal(signal.SIGCONT)
        return job.wait()

    def kill_agent_of_b(self, agents):
        os.kill(agents[b"b"], signal.SIGKILL)
        self.wait_reaped(0, 1)

    def wait_reaped(self, *ranks):
        """Their agent has seen their ends."""
        wait_until(lambda: not any(state(self.pids[rank]) for rank in ranks), f"the end of {ranks}")

    def let_go(self, *ranks):
        def act(agents):
            self.write("go", "")
            self.wait_reaped(*ranks)
        return act

    def test_peers_notice_a_lost_host_before_the_driver(self):
        for text in (LIBHVD, CLOSED):
            with self.subTest(text=text):
                report = self.box.path("report")
                result = self.behind_the_driver(self.job(text, args=("-H", "a:2,b:2", "--report", report)), self.kill_agent_of_b)
                self.expect(result, 121)
                self.expect_said(result, f"{LOST}; 2 of its 2 ranks were running\nhvdrun: 2 ranks failed because of that")
                self.expect_not_said(result, "at about the same time|on its own|terminated")
                with open(report, encoding="utf-8") as file:
                    ranks = json.load(file)["ranks"]
                self.assertEqual([rank["role"] for rank in ranks], ["consequence", "consequence", "lost", "lost"])

    def test_peers_that_say_nothing(self):
        result = self.behind_the_driver(self.job(""), self.kill_agent_of_b)
        self.expect(result, 121)
        self.expect_said(result, LOST + r"; 2 of its 2 ranks were running; rank [01] exited with code 1 at about the same time")

    def test_the_evidence_of_a_lost_host(self):
        """What explain says agrees with the verdict."""
        for first in ("the loss", "an exit"):
            with self.subTest(first=first):
                folder, events = self.box.path("evidence " + first), self.box.path("events")
                job = self.job(LIBHVD, args=("-H", "a:2,b:2", "--evidence", folder, "--events", events))
                if first == "an exit":
                    self.expect(self.lose_b_slowly(job, events), 121)
                else:
                    self.expect(self.behind_the_driver(job, self.kill_agent_of_b), 121)
                told = self.expect(self.start("explain", os.path.join(folder, os.listdir(folder)[0])).wait(), 0).stdout
                self.assertRegex(told, r"what happened first:\n    (node b was lost|lost b): its agent was killed")
                self.assertIn("2 ranks ended because of that", told)

    def lose_b_slowly(self, job, events):
        """Its agent cannot report that its ranks have ended, and is killed when the driver has heard of their peers."""
        agent = process(self.pids[2]).ppid
        os.kill(agent, signal.SIGSTOP)
        for rank in (2, 3):
            os.kill(self.pids[rank], signal.SIGKILL)

        def heard():
            with open(events, encoding="utf-8") as file:
                return "worker_exit" in file.read()
        wait_until(heard, "the driver has heard of an exit")
        os.kill(agent, signal.SIGKILL)
        return job.wait()

    def test_a_lost_host_of_an_elastic_job(self):
        """It is not one of the crashes that --max-restarts counts."""
        events, report = self.box.path("events"), self.box.path("report")
        elastic = ("-H", "a:2,b:2", "-np", "4", "--min-np", "2", "--on-failure", "restart", "--max-restarts", "1",
                   "--elastic-timeout", "5", "--events", events, "--report", report)
        result = self.expect(self.lose_b_slowly(self.job(LIBHVD, args=elastic), events), 0)
        self.expect_said(result, r"rank [01] on a exited with code 1; all workers restart\n"
                                 r".*lost b: .*SIGKILL.*, before rank [01] on a exited with code 1")
        with open(report, encoding="utf-8") as file:
            totals = json.load(file)["elastic"]
        self.assertEqual((totals["crashes"], totals["hosts_lost"]), (0, 1))

    def test_a_crash_before_its_host_is_lost(self):
        """On a busy machine, the peers may even exit before it."""
        for how, text in (("3:crash", "was killed by SIGSEGV"), ("3:exit-7", "exited with code 7")):
            with self.subTest(how=how):
                job = self.job(LIBHVD, how)
                result = self.behind_the_driver(job, self.let_go(3), self.kill_agent_of_b)
                self.expect(result, 139 if how == "3:crash" else 7)
                self.expect_said(result, f"hvdrun: rank 3 ({text}|is most likely the cause)")
                self.expect_not_said(result, "node b was lost: ")

    def leaves(self, text, how, status, *said):
        result = self.job(text, f"2:{how}", args=("-np", "4", "-H", "a:4"))
        self.write("go", "")
        result = self.expect(result.wait(), status)
        for words in said:
            self.expect_said(result, words)

    def test_a_rank_that_leaves_its_peers_before_it_exits(self):
        """As sys.exit() does: it shuts the library down first."""
        likely = "rank 2 is most likely the cause: "
        left = likely + "it had shut its library down and exited with code"
        first = r"; rank \d exited with code 1"
        self.leaves(NAMED, "leave-3", 3, left + " 3" + first, "rank 2: .*exit code 3")
        self.leaves(NAMED, "leave-0", 1, left + " 0" + first)
        self.leaves(HOROVOD, "leave-3", 3, left + " 3" + first)
        self.leaves(HOROVOD, "leave-0", 1, left + " 0" + first)
        self.leaves(CLOSED, "leave-3", 3, likely + "it exited with code 3, and only it blames no peer" + first)
        self.leaves(CLOSED, "leave-0", 1, r"rank \d exited with code 1; its error is about another rank, "
                                          "and hvdrun cannot tell what failed first")


if __name__ == "__main__":
    main()
