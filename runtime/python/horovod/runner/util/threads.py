# SPDX-License-Identifier: Apache-2.0
"""Starts a function in a thread, as Horovod's helpers for tests do."""
import threading


def in_thread(target, args=(), name=None, daemon=True, silent=False):
    """The started thread. With `silent`, an exception of the function ends the thread without a word."""
    if not isinstance(args, tuple):
        raise ValueError(f"args is a {type(args).__name__}; use a tuple, such as (value,)")

    def quiet(*values):
        try:
            target(*values)
        except Exception:
            pass

    thread = threading.Thread(target=quiet if silent else target, args=args, name=name, daemon=daemon)
    thread.start()
    return thread
