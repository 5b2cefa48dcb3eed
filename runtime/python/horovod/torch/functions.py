# SPDX-License-Identifier: Apache-2.0
"""Parameters, the state of optimizers, and any Python objects, sent from one rank to the others."""
import io

import torch

from horovod.common.basics import basics
from horovod.common.process_sets import global_process_set
from horovod.torch.mpi_ops import allgather_async, broadcast_async_, synchronize

try:
    import cloudpickle as pickle
except ImportError:  # without it, functions and classes of __main__ do not travel
    import pickle

OBJECT_NAME = "object"
HEAD_BYTES = 1024  # the length of an object, and its beginning


def broadcast_parameters(params, root_rank):
    """`params`: a state_dict(), or a list of tensors or of (name, tensor). They are overwritten."""
    if isinstance(params, dict):
        params = sorted(params.items())
    elif isinstance(params, list):
        params = [one if isinstance(one, tuple) else (None, one) for one in params]
    else:
        raise ValueError(f"broadcast_parameters: {type(params).__name__} is neither a dict nor a list; use list(...)")
    pending = [broadcast_async_(tensor, root_rank, name) for name, tensor in params]
    for handle in pending:
        synchronize(handle)


def _sparse_parameters(optimizer, model):
    """The parameters whose gradients must be sparse for the first step."""
    if isinstance(optimizer, torch.optim.SparseAdam):
        return {p for group in optimizer.param_groups for p in group["params"]}
    if model is None:
        return set()
    return {
        m.weight for m in model.modules() if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and m.sparse
    }


def _make_state(optimizer, model):
    """A step with gradients of zero makes the state that the optimizer has after its first step."""
    sparse = _sparse_parameters(optimizer, model)
    kept = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad:
                kept.append((parameter, parameter.detach().clone()))
                zeros = torch.zeros_like(parameter)
                parameter.grad = zeros.to_sparse() if parameter in sparse else zeros
    local_step = getattr(type(optimizer), "local_step", None) or type(optimizer).step
    local_step(optimizer)
    with torch.no_grad():
        for parameter, before in kept:  # weight decay has changed it
            parameter.copy_(before)


def _parameters(optimizer):
    """In the order of the groups, which is the same on all ranks."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _is_sent(value):
    """As a tensor, and not as an object."""
    return torch.is_tensor(value) and value.layout == torch.strided


def _describe(optimizer):
    """The options of each group, and for each parameter the state: values, or shapes and types of tensors."""
    options = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    states = [
        {k: _Outline(v) if _is_sent(v) else v for k, v in optimizer.state.get(parameter, {}).items()}
        for parameter in _parameters(optimizer)
    ]
    return options, states


class _Outline:
    """What a tensor is without its content."""

    def __init__(self, tensor):
        self.shape, self.dtype, self.on_cpu = tensor.shape, tensor.dtype, tensor.device.type == "cpu"

    def fits(self, value):
        return _is_sent(value) and value.shape == self.shape and value.dtype == self.dtype

    def make(self, parameter):
        return torch.empty(self.shape, dtype=self.dtype, device="cpu" if self.on_cpu else parameter.device)


def _adopt(optimizer, options, states):
    """Takes over what the root has described. Its tensors come later."""
    for group, values in zip(optimizer.param_groups, options):
        group.update(values)
    for parameter, wanted in zip(_parameters(optimizer), states):
        if not wanted and parameter not in optimizer.state:
            continue
        state = optimizer.state[parameter]
        for name in [name for name in state if name not in wanted]:
            del state[name]
        for name, value in wanted.items():
            if not isinstance(value, _Outline):
                state[name] = value
            elif not value.fits(state.get(name)):
                state[name] = value.make(parameter)


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """Options and state of a torch.optim optimizer, wrapped or not. `model`: needed if SGD has sparse
    gradients of embeddings. First the root describes its state, so the states may differ before."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "broadcast_optimizer_state: LBFGS is not supported; use broadcast_object(optimizer.state_dict())"
        )
    if not optimizer.state_dict()["state"]:
        _make_state(optimizer, model)
    description = broadcast_object(_describe(optimizer), root_rank, name="optimizer")
    if basics.rank() != root_rank:
        _adopt(optimizer, *description)
    tensors = [
        (f"{name}.{number}", optimizer.state[parameter][name])
        for number, (parameter, state) in enumerate(zip(_parameters(optimizer), description[1]))
        for name, value in state.items()
        if isinstance(value, _Outline)
    ]
    broadcast_parameters(tensors, root_rank)


# Tensors of objects are on the CPU, also if the program makes its own ones on a GPU by default.


def _to_tensor(obj):
    buffer = io.BytesIO()
    pickle.dump(obj, buffer)
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def _from_tensor(tensor):
    return pickle.loads(tensor.numpy().tobytes())


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Any object that cloudpickle can send. Returns that of `root_rank`. A small one goes with its length."""
    name = OBJECT_NAME if name is None else name
    own = basics.rank() == root_rank
    content = _to_tensor(obj) if own else None
    head = torch.zeros(HEAD_BYTES, dtype=torch.uint8, device="cpu")
    length, begin = head[:8].view(torch.int64), head[8:]
    if own:
        length.fill_(content.numel())
        begin[: content.numel()] = content[: begin.numel()]
    synchronize(broadcast_async_(head, root_rank, f"{name}.sz", process_set))
    if length.item() > begin.numel():
        if not own:
            content = torch.empty(length.item(), dtype=torch.uint8, device="cpu")
        synchronize(broadcast_async_(content, root_rank, f"{name}.t", process_set))
    elif not own:
        content = begin[: length.item()]
    return obj if own else _from_tensor(content)


def allgather_object(obj, name=None, process_set=global_process_set):
    """A list of the objects of all ranks."""
    name = OBJECT_NAME if name is None else name
    content = _to_tensor(obj)
    lengths = allgather_async(torch.tensor([content.numel()], device="cpu"), f"{name}.sz", process_set)
    everything = allgather_async(content, f"{name}.t", process_set)
    parts = torch.split(synchronize(everything), synchronize(lengths).tolist())
    return [_from_tensor(part) for part in parts]
