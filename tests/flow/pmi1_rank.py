# SPDX-License-Identifier: Apache-2.0
"""A rank that speaks PMI-1 itself, as MPICH does; Debian's MPICH (over UCX) cannot spawn.

pmi1_rank.py talk N [KEY=VALUE...]: rank 0 spawns N children, with these info keys.
pmi1_rank.py many N M: N children of one program and M of another, in one world.
pmi1_rank.py again N TIMES: rank 0 spawns N children, several times, each time after the end of the last ones.
pmi1_rank.py nest N DEPTH: N children, whose rank 0 spawns N children, and so on.
pmi1_rank.py try PROGRAM N: rank 0 asks for N of PROGRAM, says what came of it, and asks for one child.
pmi1_rank.py fail N STATUS: N children, whose rank 0 exits with STATUS.
pmi1_rank.py hold N: N children, and all sleep for a long time.
pmi1_rank.py say TEXT: rank 0 sends these lines, with ; between them, and says what it hears.
pmi1_rank.py cut TEXT: rank 0 sends them and exits with 3.
pmi1_rank.py both: ranks 0 and 1 spawn a child each at the same time.
pmi1_rank.py leave: rank 0 has a child; rank 1 asks for another, for which no slot is free, and exits; then rank 0 does.
pmi1_rank.py long: rank 0 asks for a program with more arguments than Linux passes on, and then for one child.
"""

import os
import socket
import sys
import time


class Rank:

    def __init__(self):
        self.link = socket.socket(fileno=int(os.environ["PMI_FD"]))
        self.file = self.link.makefile()
        self.number, self.size = (int(os.environ[name]) for name in ("PMI_RANK", "PMI_SIZE"))
        self.ask("cmd=init pmi_version=1 pmi_subversion=1")
        self.space = self.ask("cmd=get_my_kvsname").partition("kvsname=")[2]

    def say(self, *lines):
        self.link.sendall("".join(line + "\n" for line in lines).encode())

    def ask(self, *lines):
        self.say(*lines)
        return self.file.readline().rstrip("\n")

    def get(self, key):
        return self.ask(f"cmd=get kvsname={self.space} key={key}").partition(" value=")[2]

    def find(self, service):
        """The port of another rank, as soon as it is published."""
        while True:
            answer = self.ask(f"cmd=lookup_name service={service}")
            if "info=ok" in answer:
                return answer.partition(" port=")[2]
            time.sleep(0.02)

    def spawn(self, *programs):
        return self.ask(*self.blocks(*programs)) == "cmd=spawn_result rc=0"

    def blocks(self, *programs):
        """Each is a number of ranks, the words of its command, and info keys."""
        lines = []
        for number, (count, words, info) in enumerate(programs, 1):
            lines += ["mcmd=spawn", f"nprocs={count}", f"execname={words[0]}", f"totspawns={len(programs)}", f"spawnssofar={number}"]
            lines += [f"argcnt={len(words) - 1}"] + [f"arg{i}={word}" for i, word in enumerate(words) if i > 0]
            lines += ["preput_num=1", "preput_key_0=PARENT_ROOT_PORT_NAME", f"preput_val_0=port of {self.space} #{self.number}$"]
            lines += [f"info_num={len(info)}"]
            for i, (key, value) in enumerate(info.items()):
                lines += [f"info_key_{i}={key}", f"info_val_{i}={value}"]
            lines += ["endcmd"]
        return lines


def me(*words):
    return [sys.executable, os.path.abspath(__file__), *words]


def exchange(rank):
    """All ranks of a world give each other a number."""
    rank.ask(f"cmd=put kvsname={rank.space} key=number-{rank.number} value={100 + rank.number}")
    rank.ask("cmd=barrier_in")
    return sum(int(rank.get(f"number-{other}")) for other in range(rank.size))


def work(rank, words):
    port, program, universe = rank.get("PARENT_ROOT_PORT_NAME"), rank.ask("cmd=get_appnum"), rank.ask("cmd=get_universe_size")
    print(f"child {rank.number} of {rank.size} ({program[-1]}, {universe.partition('size=')[2]}) got {exchange(rank)}", flush=True)
    print("it knows", port, "and is in", os.getcwd(), flush=True)
    if words[:1] == ["fail"] and rank.number == 0:
        os._exit(int(words[2]))
    if words[:1] == ["hold"]:
        print("holding", flush=True)
        time.sleep(600)
    if words[:1] == ["stay"]:
        rank.find("end")
    if words[:1] == ["nest"] and rank.number == 0 and int(words[2]) > 0:
        rank.spawn((int(words[1]), me("nest", words[1], str(int(words[2]) - 1)), {}))
    if words[:1] == ["again"] and rank.number == 0:
        rank.ask(f"cmd=publish_name service=world {words[1]} port=port {words[1]}$")


def lead(rank, words):
    task, count = words[0], int(words[1]) if words[1:] and words[1].isdigit() else 0
    if task in ("talk", "fail", "hold", "nest"):
        info = dict(word.split("=") for word in words[2:] if "=" in word)
        print("spawned:", rank.spawn((count, me(*words), info)), flush=True)
    elif task == "many":
        print("spawned:", rank.spawn((count, me("one"), {}), (int(words[2]), me("two", "words here"), {})), flush=True)
    elif task == "try":
        for number, program in ((int(words[2]), [words[1]]), (1, me("one"))):
            print(f"spawn of {number}:", rank.spawn((number, program, {})), flush=True)
    elif task == "again":
        for number in range(int(words[2])):
            print("spawned:", rank.spawn((count, me("again", str(number)), {})), flush=True)
            print("found", rank.find(f"world {number}"), flush=True)
    elif task == "both":
        print("spawned:", rank.spawn((1, me("one"), {})), flush=True)
    elif task == "leave" and rank.number == 1:
        rank.find("begun")
        rank.say(*rank.blocks((1, me("stray"), {})))
        os._exit(0)
    elif task == "leave":
        print("spawned:", rank.spawn((1, me("stay"), {})), flush=True)
        rank.ask("cmd=publish_name service=begun port=1")
        while not rank.spawn((1, me("one"), {})):
            pass
        rank.ask("cmd=publish_name service=end port=1")
    elif task == "long":
        for words in (["true", *["x" * 120_000] * 62], me("one")):
            print("spawned:", rank.spawn((1, words, {})), flush=True)
    elif task == "cut":
        rank.say(*words[1].split(";"))
        os._exit(3)
    elif task == "say":
        for lines in words[1:]:
            print("heard", rank.ask(*lines.split(";")), flush=True)
    if task == "hold":
        time.sleep(600)


def start():
    rank = Rank()
    if os.environ.get("PMI_SPAWNED") == "1":
        work(rank, sys.argv[1:])
    else:
        exchange(rank)
        if rank.number == 0 or sys.argv[1] in ("both", "leave"):
            lead(rank, sys.argv[1:])
        if sys.argv[1] != "leave":
            rank.ask("cmd=barrier_in")
    rank.ask("cmd=finalize")
    print(f"rank {rank.number} of {rank.size} done", flush=True)


start()
