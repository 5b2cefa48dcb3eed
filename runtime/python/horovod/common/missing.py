# SPDX-License-Identifier: Apache-2.0
"""The modules of Horovod that this package does not have."""

OTHERS = "it has only horovod.torch. Install Horovod in this Python, and use hvdrun without the option --horovod"


def refuse(name, instead=OTHERS):
    raise ImportError(f"{name} is not in hvdrun's package horovod: {instead}", name=name)
