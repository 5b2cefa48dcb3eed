# SPDX-License-Identifier: Apache-2.0
"""What the environment says of this process, for scripts that ask before hvd.init()."""
import os

_NAMES = (
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def get_env_rank_and_size():
    """(rank, size), from the first launcher that has set both; (0, 1) without a launcher."""
    for names in _NAMES:
        values = [os.environ.get(name) for name in names]
        if None not in values:
            return int(values[0]), int(values[1])
        if values != [None, None]:
            raise RuntimeError(f"only one of {names[0]} and {names[1]} is set; set both, or none of them")
    return 0, 1
