# SPDX-License-Identifier: Apache-2.0
"""What each worker of horovod.run() runs: python -m horovod.runner.run_task"""
import contextlib
import json
import os
import pickle
import socket
import time
import traceback
from multiprocessing import AuthenticationError

from horovod.runner.addresses import resolve
from horovod.runner.session import introduce
from horovod.runner.task_server import ADDRESS, KEY, cloudpickle

ANSWER_S = 10  # a worker tries the next address if nobody there has the key by then
REACH_S = 30  # and begins again: strangers may have kept the program busy
AGAIN_S = 0.2
LINE_MAX = 500


def _dial(found):
    """A connection to the first of these addresses that takes one."""
    for number, (family, kind, protocol, _, address) in enumerate(found, 1):
        plain = socket.socket(family, kind, protocol)
        try:
            plain.settimeout(ANSWER_S)
            plain.connect(address)
            return plain
        except OSError:
            plain.close()
            if number == len(found):
                raise


def _connect(name, port, key):
    """A stranger at the address may take the connection and say nothing."""
    deadline = time.monotonic() + ANSWER_S
    plain = _dial(resolve(name, port))
    try:
        return introduce(plain, key, deadline)
    except BaseException:
        plain.close()
        raise


def reach(environment):
    """The session with the program that called horovod.run(). Its machine has several addresses, and not all of them
    need be reachable from here."""
    *names, port = environment[ADDRESS].split(",")
    until = time.monotonic() + REACH_S
    while True:
        problems = []
        for name in names:
            try:
                return _connect(name, int(port), environment[KEY].encode())
            except (OSError, AuthenticationError, EOFError) as error:
                problems.append(f"{name}: {error}")
        if time.monotonic() > until:
            why = "; ".join(problems)
            raise ConnectionError(f"horovod.run(): cannot reach the program that called it, port {port}: {why}")
        time.sleep(AGAIN_S)


def _leave(session, content, raised=None):
    # each worker of hvdrun leads a session of its own, so this is the number that hvdrun knows it by
    who = {"rank": int(os.environ["HOROVOD_RANK"]), "pid": os.getsid(0), "raised": raised}
    session.send(json.dumps(who).encode())
    session.send(content)
    session.receive()


def main():
    with reach(os.environ) as session:
        os.environ.pop(KEY, None)  # what the function starts needs no key
        function, args, kwargs = pickle.loads(session.receive())
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            with contextlib.suppress(Exception):  # the first one matters
                raised = f"{type(error).__name__}: {' '.join(str(error).split())}"
                _leave(session, traceback.format_exc().encode(), raised[:LINE_MAX])
            raise
        _leave(session, cloudpickle.dumps(result))


if __name__ == "__main__":
    main()
