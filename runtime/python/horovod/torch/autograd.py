# SPDX-License-Identifier: Apache-2.0
"""The operations that wait, as functions that PyTorch can differentiate. A gradient is made of such functions, too, so
that it can be differentiated again."""
import torch

from horovod.torch import memory, submit
from horovod.torch.handles import handles
from horovod.torch.submit import Average, Sum


def _average(gradient, process_set):
    return Allreduce.apply(gradient, None, Average, 1.0, 1.0, process_set)


def _own_slice(gradient, rows, process_set):
    """This rank's part of the average of a gradient of what was gathered."""
    average = _average(gradient, process_set)
    own = process_set.rank()
    return average.narrow(0, sum(rows[:own]), rows[own])


def _gathered(gradient, op, process_set, scale):
    """The gradient of a reducescatter."""
    output = Allgather.apply(gradient, None, process_set)
    if op == Sum:
        scale = scale * process_set.size()
    return output if scale == 1.0 else output * scale


class Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale_factor, postscale_factor, process_set):
        ctx.options = (op, prescale_factor, postscale_factor, process_set)
        output = memory.output_like(tensor, "allreduce")
        return handles.synchronize(submit.reduce_to(tensor, output, name, *ctx.options))

    @staticmethod
    def backward(ctx, gradient):
        return Allreduce.apply(gradient, None, *ctx.options), None, None, None, None, None


class GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale_factor, postscale_factor, process_set, *tensors):
        ctx.options = (op, prescale_factor, postscale_factor, process_set)
        outputs = [memory.output_like(tensor, "grouped_allreduce") for tensor in tensors]
        return handles.synchronize(submit.grouped_reduce_to(tensors, outputs, name, *ctx.options))

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, None, None, None, *GroupedAllreduce.apply(None, *ctx.options, *gradients))


class Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.process_set = process_set
        output, ctx.rows = handles.synchronize(submit.gather(tensor, name, process_set))
        return output

    @staticmethod
    def backward(ctx, gradient):
        return _own_slice(gradient, ctx.rows, ctx.process_set), None, None


class GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.process_set = process_set
        names = submit.group_names(tensors, name, "grouped_allgather", process_set)
        group = handles.group([submit.gather(*one, process_set) for one in zip(tensors, names)])
        outputs, ctx.rows = zip(*handles.synchronize(group))
        return outputs

    @staticmethod
    def backward(ctx, *gradients):
        slices = [_own_slice(*one, ctx.process_set) for one in zip(gradients, ctx.rows)]
        return (None, None, *slices)


class Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        output = memory.output_like(tensor, "broadcast")
        return handles.synchronize(submit.broadcast_to(tensor, output, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = _average(gradient, ctx.process_set)
        if submit.basics.rank() != ctx.root_rank:  # a new tensor of zeros would not need the other ranks any more
            average = average.masked_fill(torch.ones((), dtype=torch.bool, device=average.device), 0)
        return average, None, None, None


class Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        ctx.process_set, ctx.rows = process_set, tensor.shape[0] if torch.is_tensor(tensor) and tensor.dim() else 0
        output, ctx.received = handles.synchronize(submit.exchange(tensor, splits, name, process_set))
        ctx.mark_non_differentiable(ctx.received)
        return output, ctx.received

    @staticmethod
    def backward(ctx, gradient, _):
        back, _ = Alltoall.apply(gradient, ctx.received, None, ctx.process_set)
        if back.shape[0] < ctx.rows:  # rows that were not sent
            back = torch.cat([back, back.new_zeros((ctx.rows - back.shape[0], *back.shape[1:]))])
        return back, None, None, None


class Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale_factor, postscale_factor):
        ctx.options = (op, process_set, prescale_factor * postscale_factor)
        return handles.synchronize(submit.scatter(tensor, name, op, process_set, prescale_factor, postscale_factor))

    @staticmethod
    def backward(ctx, gradient):
        return _gathered(gradient, *ctx.options), None, None, None, None, None


class GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale_factor, postscale_factor, *tensors):
        ctx.options = (op, process_set, prescale_factor * postscale_factor)
        names = submit.group_names(tensors, name, "grouped_reducescatter", process_set)
        more = (op, process_set, prescale_factor, postscale_factor)
        return handles.synchronize(handles.group([submit.scatter(*one, *more) for one in zip(tensors, names)]))

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, None, None, None, *[_gathered(one, *ctx.options) for one in gradients])
