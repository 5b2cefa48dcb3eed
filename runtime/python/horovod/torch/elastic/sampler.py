# SPDX-License-Identifier: Apache-2.0
"""A sampler whose progress outlives a change of the ranks."""
import math
import random

import torch

from horovod.torch.mpi_ops import rank, size


class ElasticSampler(torch.utils.data.Sampler):
    """Divides what is not yet processed of a data set among the present ranks. Call record_batch() after
    each batch, and set_epoch() at the end of each epoch."""

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0
        self.reset()

    def reset(self):
        """The ranks, or what is processed, have changed."""
        self.num_replicas, self.rank = size(), rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def set_epoch(self, epoch):
        """Begins an epoch, with all samples."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """All ranks have processed a batch."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self):
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict):
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def __iter__(self):
        indices = self.remaining_indices
        missing = self.total_size - len(indices)
        if missing > 0:  # again from the beginning, more than once if there are more ranks than samples
            indices = indices + (indices * math.ceil(missing / len(indices)))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples
