# SPDX-License-Identifier: Apache-2.0
"""--pty RANK: a terminal for one rank. --pty all: the stdout of each rank is one, by default that of MPI programs."""

import os
import re
import subprocess
import sys
import time

from ground import wait_until
from hostile import Hostile
from rig import Flow, main, mpi_worker, sanitized, worker

QUICK = ("--grace", "200ms", "--drain-timeout", "100ms")
# What the C library does with stdout decides when the lines of tr come.
WAITS = '(echo first; while [ ! -e "$0" ]; do sleep 0.05; done; echo last) | tr a-z A-Z'
KINDS_OF_STREAM = 'for i in 0 1 2; do test -t $i && t="$t 1" || t="$t 0"; done; echo tty$t'


class Pty(Flow):

    def test_only_that_rank_has_a_terminal(self):
        job = self.terminal("-np", 3, "--pty", 1, worker("winch"), rows=33, columns=101)
        job.wait_output("tty 1 1 1")
        job.wait_output("size 33 101")
        job.type("done\n")
        job.wait_output("typed done")
        self.assertEqual(job.wait(), 0, job.describe())
        text = job.output()
        self.assertEqual(text.count("tty 1 1 1"), 1, job.describe())
        self.assertEqual(len(re.findall(r"\[[02]\]<stdout>:tty 0 0 0", text)), 2, job.describe())

    def test_window_size_changes_reach_it(self):
        job = self.terminal("-np", 1, "--pty", 0, worker("winch"), rows=24, columns=80)
        job.wait_output("size 24 80")
        for rows, columns in ((40, 120), (10, 30)):
            job.resize(rows, columns)
            job.wait_output(f"size {rows} {columns}")
        job.type("\n")
        self.assertEqual(job.wait(), 0, job.describe())

    def test_ctrl_c_is_the_programs(self):
        job = self.terminal("-np", 1, "--pty", 0, worker("winch"))
        job.wait_output("size ")
        job.type("\x03")
        job.wait_output("got SIGINT")
        time.sleep(0.3)
        job.type("still here\n")
        job.wait_output("typed still here")
        self.assertEqual(job.wait(), 0, job.describe())

    def test_the_terminal_is_as_it_was(self):
        for args, status in ((["-np", 1, "--pty", 0, "true"], 0), (["-np", 1, "--pty", 0, worker("exit_with"), "0:3"], 3)):
            with self.subTest(status=status):
                job = self.terminal(*args)
                self.assertEqual(job.wait(), status, job.describe())
                self.assertEqual(job.modes, job.modes_after)

    def test_the_terminal_is_as_it_was_after_term(self):
        job = self.terminal("-np", 1, "--grace", 1, "--pty", 0, worker("winch"))
        job.wait_output("size ")
        os.kill(job.pid, 15)
        self.assertIn(job.wait(), (143, -15))
        self.assertEqual(job.modes, job.modes_after)

    def test_input_is_echoed_once(self):
        job = self.terminal("-np", 1, "--pty", 0, "sh", "-c", "echo ready; read x; echo got $x")
        job.wait_output("ready")  # hvdrun's own terminal, which does not echo any more then
        job.type("abc\n")
        job.wait_output("got abc")
        self.assertEqual(job.wait(), 0, job.describe())
        self.assertEqual(len(re.findall(r"(?m)^abc$", job.output())), 1, job.describe())

    def test_without_a_terminal_of_our_own(self):
        result = self.expect(self.run_job("-np", 2, "--pty", 0, "sh", "-c", "test -t 0 && test -t 1 && echo terminal || echo none",
                                          stdin=b""), 0)
        self.assertEqual(result.stdout.replace("\r", "").count("terminal"), 1, result.describe())
        self.assertIn("[1]<stdout>:none", result.lines, result.describe())

    def test_a_rank_that_does_not_exist(self):
        self.expect_said(self.expect(self.run_job("-np", 2, "--pty", 4, "true"), 2), "pty.*4")


class All(Hostile, Flow):

    def all(self, *args, **options):
        return self.run_job("--pty", "all", *args, **options)

    def seen(self, *args, **options):
        """What `args` make of the three streams."""
        result = self.expect(self.all("--no-label", *args, "sh", "-c", KINDS_OF_STREAM, **options), 0)
        return sorted(result.lines)

    def test_only_stdout_is_a_terminal(self):
        self.assertEqual(self.seen("-np", 3), ["tty 0 1 0"] * 3)
        self.assertEqual(self.seen("-np", 2, "--merge-stderr"), ["tty 0 1 1"] * 2)
        self.assertEqual(self.seen("-H", "a:1,b:1", "--transport", "local"), ["tty 0 1 0"] * 2)

    def test_programs_of_one_job(self):
        result = self.expect(self.all("-np", 1, "sh", "-c", KINDS_OF_STREAM, ":", "-np", 2, "sh", "-c", KINDS_OF_STREAM), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:tty 0 1 0" for rank in range(3)])

    def test_elastic(self):
        self.assertEqual(self.seen("-np", 2, "--min-np", 2, "-H", "a:2", "--transport", "local"), ["tty 0 1 0"] * 2)

    def test_warm(self):
        script = self.write("tty.py", "import sys\nprint('tty', sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), "
                            "sys.stdout.line_buffering)\n")
        for way in ((), ("--warm",)):
            result = self.expect(self.all(*way, "-np", 2, "--oversubscribe", sys.executable, script,
                                          env={"PYTHONUNBUFFERED": ""}), 0)
            self.assertEqual(result.stdout.count("tty False True False True"), 2, result.describe())

    def test_the_last_one_on_the_line_counts(self):
        self.assertEqual(self.seen("-np", 2, "--pty", 0, "--pty", "all"), ["tty 0 1 0"] * 2)

    def test_lines_come_at_once(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, "--pty", "all", "sh", "-c", WAITS, gate)
        job.wait_output("FIRST", count=2)
        let_go()
        self.expect_lines(self.expect(job.wait(), 0), [f"[{rank}]<stdout>:{word}" for rank in (0, 1) for word in ("FIRST", "LAST")])

    def test_bytes_are_unchanged(self):
        everything = bytes(range(256)) * 2
        path = self.box.path("everything")
        with open(path, "wb") as file:
            file.write(everything)
        self.expect(self.all("-np", 1, "--output-filename", self.box.path("out"), "cat", path), 0)
        with open(self.box.path("out/rank.0/stdout"), "rb") as file:
            self.assertEqual(file.read(), everything)

    def test_streams_stay_apart(self):
        result = self.expect(self.all("-np", 2, "sh", "-c", "echo out; echo err >&2"), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:out" for rank in (0, 1)])
        self.assertEqual(result.stderr.count(">:err\n"), 2, result.describe())

    def test_collapse(self):
        self.expect_lines(self.expect(self.all("-np", 4, "--collapse", "echo", "same"), 0), ["[0-3]: same"])

    def test_stdin_is_as_without(self):
        self.expect_lines(self.expect(self.all("-np", 2, "cat", stdin=b"typed\n"), 0), ["[0]<stdout>:typed"])
        result = self.expect(self.all("-np", 2, "--stdin", "all", "cat", stdin=b"typed\n"), 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:typed" for rank in (0, 1)])

    def test_size_and_kind(self):
        asks = 'stty size <&1; echo "TERM $TERM"'
        result = self.expect(self.all("-np", 1, "--no-label", "sh", "-c", asks, env={"TERM": None}), 0)
        self.assertEqual(result.lines, ["24 80", "TERM dumb"], result.describe())
        job = self.terminal("--pty", "all", "-np", 2, "sh", "-c", asks, rows=33, columns=101)
        self.assertEqual(job.wait(), 0, job.describe())
        self.assertEqual(len(re.findall(r"\[[01]\]<stdout>:33 101", job.output())), 2, job.describe())

    def test_pagers(self):
        """They ask /dev/tty for keys, which does not exist. Your own are not replaced."""
        script = 'test -t 1 && seq 1 3 | eval "${PAGER:-cat < /dev/tty}"; echo "git $GIT_PAGER"'
        result = self.expect(self.all("-np", 1, "--no-label", "sh", "-c", script, env={"PAGER": None, "GIT_PAGER": None}), 0)
        self.assertEqual(result.lines, ["1", "2", "3", "git cat"], result.describe())
        result = self.expect(self.all("-np", 1, "--no-label", "sh", "-c", script, env={"PAGER": "tr 1-3 a-c", "GIT_PAGER": "own"}), 0)
        self.assertEqual(result.lines, ["a", "b", "c", "git own"], result.describe())
        result = self.expect(self.run_job("-np", 1, "--no-label", "sh", "-c", 'echo "${PAGER-none} ${GIT_PAGER-none}"',
                                          env={"PAGER": None, "GIT_PAGER": None}), 0)
        self.assertEqual(result.lines, ["none none"], result.describe())

    def test_it_is_nobodys_controlling_terminal(self):
        """So no signal comes from it, whoever opens it once more for writing."""
        script = 'echo more > /dev/stdout; (: < /dev/tty) 2> /dev/null && echo controlling; echo end'
        result = self.expect(self.all("-np", 2, "--no-label", "sh", "-c", script), 0)
        self.assertEqual(sorted(result.lines), ["end", "end", "more", "more"], result.describe())

    def test_it_cannot_be_opened_for_reading(self):
        """It would be the controlling terminal of a rank that does, but root may do so."""
        script = '(sh -c ": <> /dev/stdout" 2> /dev/null && echo opened); command : 3<> /dev/stdout; ' \
                 '(: < /dev/tty) 2> /dev/null && echo controlling; echo end'
        start = self.start if os.getuid() != 0 else self.start_as_stranger
        result = self.expect(start("-np", 1, "--pty", "all", "--no-label", "sh", "-c", script).wait(), 0)
        self.assertEqual(result.lines, ["end"], result.describe())

    def test_a_read_fails(self):
        result = self.expect(self.all("-np", 1, "sh", "-c", "read line <&1 && echo $line || echo nothing"), 0)
        self.expect_lines(result, ["[0]<stdout>:nothing"])

    # to the last byte

    def spewed(self, *args, lines):
        read, write = os.pipe()
        reader = self.helper(worker("lines_verify"), "--ranks", 4, "--lines", lines, stdin=read,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(read)
        job = self.start("-np", 4, "--pty", "all", *args, worker("spew"), "--lines", lines, stdout=write)
        os.close(write)
        result = job.wait(120)
        said = reader.communicate()[0].decode()
        self.assertEqual(reader.popen.returncode, 0, said + result.describe())
        self.expect(result, 0)

    def test_every_line_arrives(self):
        self.spewed(lines=1000 if sanitized() else 10000)

    def test_every_line_arrives_with_simulated_hosts(self):
        self.spewed("-H", "a:2,b:2", "--transport", "local", lines=1000 if sanitized() else 10000)

    def test_what_a_killed_rank_has_written(self):
        result = self.expect(self.all("-np", 1, "--no-label", "sh", "-c", "seq 1 3000; kill -9 $$"), 137)
        self.assertEqual(result.lines, [str(number) for number in range(1, 3001)])

    def test_what_the_others_have_written(self):
        """Their lines do not wait in buffers when the job ends."""
        gate, let_go = self.box.gate()
        script = '[ "$RANK" = 1 ] || exec sh -c "$2" "$1"; while [ ! -e "$1" ]; do sleep 0.05; done; exit 3'
        endless = '(echo first; sleep 600) | tr a-z A-Z'
        job = self.start("-np", 3, *QUICK, "--pty", "all", "sh", "-c", script, "sh", gate, endless)
        job.wait_output("FIRST", count=2)
        let_go()
        self.expect_blame(self.expect(job.wait(), 3), 1, code=3)

    def test_one_that_goes_on_writing_after_its_rank(self):
        result = self.expect(self.all("-np", 2, *QUICK, worker("afterword")), 0)
        for rank in (0, 1):
            numbers = [int(n) for n in re.findall(rf"(?m)^\[{rank}\]<stdout>:spew r={rank} s=1 n=(\d+) \w+ c=\w+$",
                                                  result.stdout)]
            self.assertEqual(numbers, list(range(len(numbers))), result.describe())
            self.assertGreater(len(numbers), 10)

    def test_one_that_keeps_the_terminal_open(self):
        script = "(trap '' HUP TERM; exec sleep 600) & seq 1 2000"
        result = self.expect(self.all("-np", 2, *QUICK, "--no-label", "sh", "-c", script), 0)
        self.assertEqual(sorted(map(int, result.lines)), sorted(2 * list(range(1, 2001))))

    @staticmethod
    def has_ended(path):
        if not os.path.exists(path):
            return False
        with open(path, encoding="utf-8") as events:
            return '"worker_exit"' in events.read()

    def test_a_child_that_outlives_its_rank_is_no_more_ended_than_with_a_pipe(self):
        script = '(while [ ! -e "$0" ]; do sleep 0.05; done; echo late) & echo early'
        for way in ((), ("--pty", "all")):
            gate, let_go = self.box.gate("gate" + "".join(way))
            events = self.box.path("events" + "".join(way))
            job = self.start("-np", 1, "--drain-timeout", "60s", *way, "--no-label", "--events", events, "sh", "-c", script, gate)
            wait_until(lambda path=events: self.has_ended(path), "the rank's end", 60)
            let_go()
            self.assertEqual(self.expect(job.wait(), 0).lines, ["early", "late"])

    def test_a_reader_that_waits(self):
        job = self.start("-np", 2, "--grace", 1, "--pty", "all", worker("spew"), "--for-ever", stdout="hold")
        job.wait_workers(2)
        job.signal(15)
        job.release()
        self.expect(job.wait(), 143)

    # limits

    def test_more_ranks_than_terminals(self):
        few = self.write("max", "3\n")
        none = self.write("nr", "1\n")
        script = f"mount --bind '{few}' /proc/sys/kernel/pty/max && mount --bind '{none}' /proc/sys/kernel/pty/nr"
        result = self.expect(self.in_place(script, "-np", 3, "--pty", "all", "echo", "started"), 125)
        self.expect_said(result, "3 ranks need a terminal each, but this host allows only 2 more; raise kernel.pty.max")
        self.assertNotIn("started", result.stdout)
        self.expect(self.in_place(script, "-np", 2, "--pty", "all", "echo", "started"), 0)

    def test_others_have_taken_the_terminals(self):
        script = "mount -t devpts -o newinstance,max=2,ptmxmode=666 none /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx"
        result = self.expect(self.in_place(script, "-np", 4, "--grace", 1, "--pty", "all", "sleep", 600), 125)
        self.expect_said(result, r"cannot create the terminal of rank \d: this host allows no more terminals; "
                                 r"raise kernel.pty.max or max= of /dev/pts, or use --pty for one rank only")

    def test_no_terminal_for_one_rank(self):
        script = "mount -t devpts -o newinstance,max=1,ptmxmode=666 none /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx" \
                 " && exec 9<>/dev/ptmx"  # which hvdrun keeps
        result = self.expect(self.in_place(script, "-np", 2, "--grace", 1, "--pty", 1, "sleep", 600), 125)
        self.expect_said(result, r"cannot create the terminal of rank 1: this host allows no more terminals; "
                                 r"raise kernel.pty.max or max= of /dev/pts\n")

    def test_no_terminals_here(self):
        result = self.expect(self.in_place("mount --bind /dev/null /dev/ptmx", "-np", 2, "--pty", "all", "true"), 125)
        self.expect_said(result, r"cannot create the pipes or terminal of rank \d: ")


class Auto(Hostile, Flow):
    """Without --pty, MPI programs have what --pty all gives. mpi_exec is one, and then another program."""

    KINDS = ("openmpi", "mpich")
    FEW = "mount -t devpts -o newinstance,max=2,ptmxmode=666 none /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx"
    NONE = {"no device": "mount --bind /dev/null /dev/ptmx", "no file system": "mount -t tmpfs none /dev/pts"}

    def words(self, *script, kind="openmpi"):
        return (mpi_worker("mpi_exec", kind), *(script or ("sh", "-c", KINDS_OF_STREAM)))

    def seen(self, *args, **options):
        """What the ranks say of their three streams; hvdrun itself says nothing."""
        result = self.expect(self.run_job("--no-label", *args, **options), 0)
        self.assertEqual(result.stderr, "", result.describe())
        return sorted(result.lines)

    def test_stdout_is_a_terminal(self):
        for kind in self.KINDS:
            for args in ((), ("--pty", "none", "--pty", "auto"), ("--mpi=none", "--quiet"), ("-H", "a:1,b:1", "--transport", "local"),
                         ("-H", "a:2", "--transport", "local", "--min-np", 2)):
                with self.subTest(kind=kind, args=args):
                    self.assertEqual(self.seen("-np", 2, *args, *self.words(kind=kind)), ["tty 0 1 0"] * 2)

    def test_none_gives_pipes(self):
        for kind in self.KINDS:
            for args in (("--pty", "none"), ("--pty", "all", "--pty", "none")):
                with self.subTest(kind=kind, args=args):
                    self.assertEqual(self.seen("-np", 2, *args, *self.words(kind=kind)), ["tty 0 0 0"] * 2)

    def test_other_programs_have_pipes(self):
        self.assertEqual(self.seen("-np", 2, "sh", "-c", KINDS_OF_STREAM), ["tty 0 0 0"] * 2)
        self.assertEqual(self.seen("-np", 2, "--mpi=pmix", "sh", "-c", KINDS_OF_STREAM), ["tty 0 0 0"] * 2)
        self.assertEqual(self.seen("-np", 2, "env", *self.words()), ["tty 0 0 0"] * 2)
        tty = "import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stdout.write_through)"
        self.assertEqual(self.seen("-np", 2, sys.executable, "-c", tty), ["False False True"] * 2)

    def test_each_program_of_the_line(self):
        result = self.run_job("-np", 1, "sh", "-c", KINDS_OF_STREAM, ":", "-np", 2, *self.words(), ":", "-np", 1, "env", *self.words())
        self.expect_lines(self.expect(result, 0), [f"[{rank}]<stdout>:tty 0 {int(rank in (1, 2))} 0" for rank in range(4)])

    def test_bytes_are_unchanged(self):
        """Each value, line ends, and more than a terminal takes as one line of input."""
        everything = bytes(range(256)) * 2 + b"\r\n\n\r" + b"x" * 100000 + b"\x04\x03\x1a\xff\xff"
        path = self.box.path("everything")
        with open(path, "wb") as file:
            file.write(everything)
        result = self.expect(self.run_job("-np", 1, "--no-label", "--output-filename", self.box.path("out"), *self.words("cat", path)), 0)
        self.assertEqual(result.out, everything)
        with open(self.box.path("out/rank.0/stdout"), "rb") as file:
            self.assertEqual(file.read(), everything)

    def test_stdin_and_collapse(self):
        result = self.expect(self.run_job("-np", 2, "--stdin", "all", "--collapse", *self.words("cat"), stdin=b"typed\n"), 0)
        self.expect_lines(result, ["[0-1]: typed"])

    def test_output_that_goes_elsewhere(self):
        self.assertEqual(self.seen("-np", 1, *self.words("sh", "-c", 'exec > "$0"; seq 1 3000', self.box.path("own"))), [])
        with open(self.box.path("own"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), [str(number) for number in range(1, 3001)])

    def test_terminals_of_a_rank(self):
        """One in a session of its own opens another terminal."""
        code = "import os, pty\nif os.fork() == 0:\n    os.setsid()\n    os._exit(pty.spawn(['sh', '-c', 'echo inner > /dev/tty']) >> 8)\n" \
               "print('outer', os.waitpid(-1, 0)[1], flush=True)\n"
        lines = [line.strip() for line in self.seen("-np", 1, *self.words(sys.executable, "-c", code))]
        self.assertEqual(lines, ["inner", "outer 0"])

    def test_one_that_is_left_behind(self):
        """It gets no signal when the terminal goes, and does not keep the job."""
        said = self.box.path("said")
        script = "(trap 'echo hup > \"$0\"' HUP; trap '' TERM; while :; do sleep 0.05; done) & (setsid sleep 600) & seq 1 2000"
        result = self.expect(self.run_job("-np", 2, *QUICK, "--no-label", *self.words("sh", "-c", script, said)), 0)
        self.assertEqual(sorted(map(int, result.lines)), sorted(2 * list(range(1, 2001))))
        self.assertFalse(os.path.exists(said))

    # a host without terminals

    def in_few(self, script, *args):
        result = self.expect(self.in_place(script, "--no-label", *args, *self.words()), 0)
        self.assertEqual(result.stderr, "", result.describe())
        return sorted(result.lines)

    def together(self, count):
        """A rank that has ended frees its terminal, so each of them waits until all have said what they have."""
        self.folders = getattr(self, "folders", 0) + 1
        folder = self.box.path(f"said{self.folders}")
        os.mkdir(folder)
        ranks = " ".join(map(str, range(count)))
        return self.words("sh", "-c", f'{KINDS_OF_STREAM}; : > "$0/$RANK"; '
                          f'for r in {ranks}; do while [ ! -e "$0/$r" ]; do sleep 0.05; done; done', folder)

    def test_some_get_the_last_terminals(self):
        result = self.expect(self.in_place(self.FEW, "--no-label", "-np", 4, *self.together(4)), 0)
        self.assertEqual((sorted(result.lines), result.stderr), (["tty 0 0 0"] * 2 + ["tty 0 1 0"] * 2, ""))

    def test_verbose_says_how_many_have_pipes(self):
        most, none = self.write("max", "66\n"), self.write("nr", "1\n")
        left = f"mount --bind '{most}' /proc/sys/kernel/pty/max && mount --bind '{none}' /proc/sys/kernel/pty/nr"
        few = "too few terminals are free"
        for script, count, why in ((self.FEW, 2, few), (left, 4, few), *((script, 4, "[A-Z].*") for script in self.NONE.values())):
            with self.subTest(script=script):
                words = ("-np", 4, *self.together(4), ":", "-np", 1, "true")
                result = self.expect(self.in_place(script, "-v", *words), 0)
                self.assertEqual(len(re.findall(f": {count} of 5 ranks got no terminal, but a pipe: {why}\n", result.stderr)), 1,
                                 result.describe())

    def test_verbose_says_nothing_of_pipes_that_were_meant(self):
        for words in (("-np", 2, "true"), ("-np", 2, "--pty", "none", *self.words("true")), ("-np", 2, *self.words("true"))):
            with self.subTest(words=words):
                result = self.expect(self.in_place("true", "-v", *words), 0)
                self.assertNotIn("got no terminal", result.stderr)

    def test_a_host_without_terminals(self):
        for name, script in self.NONE.items():
            with self.subTest(place=name):
                self.assertEqual(self.in_few(script, "-np", 2), ["tty 0 0 0"] * 2)

    def test_some_are_left_for_others(self):
        for most, sees in ((66, "tty 0 0 0"), (67, "tty 0 1 0")):
            few, none = self.write("max", f"{most}\n"), self.write("nr", "1\n")
            script = f"mount --bind '{few}' /proc/sys/kernel/pty/max && mount --bind '{none}' /proc/sys/kernel/pty/nr"
            with self.subTest(most=most):
                self.assertEqual(self.in_few(script, "-np", 2), [sees] * 2)


if __name__ == "__main__":
    main()
