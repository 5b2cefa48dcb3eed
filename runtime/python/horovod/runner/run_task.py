# SPDX-License-Identifier: Apache-2.0
"""What each worker of horovod.run() runs: python -m horovod.runner.run_task"""
import os
import pickle

from horovod.runner.desk import cloudpickle, reach


def main():
    with reach(os.environ) as desk:
        function, args, kwargs = pickle.loads(desk.recv_bytes())
        result = cloudpickle.dumps(function(*args, **kwargs))
        desk.send_bytes(os.environ["HOROVOD_RANK"].encode())
        desk.send_bytes(result)
        desk.recv_bytes()


if __name__ == "__main__":
    main()
