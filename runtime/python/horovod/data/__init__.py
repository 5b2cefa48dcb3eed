# SPDX-License-Identifier: Apache-2.0
"""Data loaders that read ahead."""
from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader  # noqa: F401
