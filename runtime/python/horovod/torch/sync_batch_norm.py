# SPDX-License-Identifier: Apache-2.0
"""Batch normalization over the batches of all ranks."""
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from horovod.torch.mpi_ops import Sum, allreduce, size


class SyncBatchNorm(_BatchNorm):
    """Like torch.nn.BatchNorm, with the mean and the variance of the batches of all ranks. With one rank, or with
    running statistics that it only reads, it is torch's own. It works on CPUs too."""

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm: the input has {input.dim()} dimensions; it needs at least 2")

    def forward(self, input):
        self._check_input_dim(input)
        if size() == 1 or (self.track_running_stats and not self.training):
            return super().forward(input)
        mean, variance, count = _statistics(input)
        if self.track_running_stats:
            self._track(mean.detach(), variance.detach(), count)
        shape = [1, -1] + [1] * (input.dim() - 2)
        scale = torch.rsqrt(variance + self.eps)
        output = (input - mean.to(input.dtype).view(shape)) * scale.to(input.dtype).view(shape)
        if self.affine:
            output = output * self.weight.view(shape) + self.bias.view(shape)
        return output

    def _track(self, mean, variance, count):
        self.num_batches_tracked.add_(1)
        momentum = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        unbiased = variance * (count / max(count - 1, 1))
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)


def _statistics(input):
    """Mean and variance of each channel over all ranks, which can be differentiated, and the number of
    values. Sums are in float64, because the difference of the squares is small."""
    dims = [0, *range(2, input.dim())]
    count = input.numel() // input.shape[1]
    variance, mean = torch.var_mean(input.double(), dims, unbiased=False)
    own = torch.cat([mean * count, (variance + mean * mean) * count, mean.new_full((1,), count)])
    total = allreduce(own, op=Sum, name="sync_batch_norm")
    all_count = total[-1].item()
    sums, squares = total[:-1].chunk(2)
    mean = sums / all_count
    return mean, (squares / all_count - mean * mean).clamp(min=0), all_count
