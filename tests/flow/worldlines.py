# SPDX-License-Identifier: Apache-2.0
"""The lines in which the workers of an elastic job say where they are: "rank 1 of 4, pid 7, ...", with more behind it."""

import re

from ground import wait_until

IN = re.compile(r"^\[\d+\]<stdout>:(?:in )?rank (\d+)(?:/| of )(\d+),? pid (\d+),?(.*)$", re.M)


def places(output):
    """[(rank, size, pid, what comes behind)] of all such lines, in order."""
    return [(int(rank), int(size), int(pid), more.strip()) for rank, size, pid, more in IN.findall(output)]


def _last_world(output, size, but):
    last = {rank: pid for rank, of, pid, _ in places(output) if of == size}
    pids = set(last.values())
    return last if len(pids) == size == len(last) and not pids & set(but) else None


def wait_members(job, size, but=(), timeout=20):
    """{rank: pid} of the last world of this size that has none of the processes in `but`."""
    try:
        return wait_until(lambda: _last_world(job.output(), size, but), f"a world of {size}", timeout)
    except AssertionError as error:
        raise AssertionError(f"{error}{job.describe()}") from None


def wait_world(job, size, after=0, timeout=90):
    """The same on many hosts, where pids may be equal: waits until all ranks of a world of this size have said so behind
    the first `after` bytes of output. Returns the length of the output."""
    def there():
        ranks = {rank for rank, of, _, _ in places(job.output()[after:]) if of == size}
        return len(ranks) == size or None
    try:
        wait_until(there, f"a world of {size}", timeout)
    except AssertionError as error:
        raise AssertionError(f"{error}{job.describe()}") from None
    return len(job.output())
