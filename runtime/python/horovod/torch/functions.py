# SPDX-License-Identifier: Apache-2.0
"""Parameters, the state of optimizers, and any Python objects, sent from one rank to the others."""
import collections
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


def _options(state_dict):
    """The options of the groups."""
    found = collections.OrderedDict()
    for i, group in enumerate(state_dict["param_groups"]):
        for option, value in group.items():
            if option != "params":
                found[f"{option}.{i}"] = (i, option, value)
    return found


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """Options and state of a torch.optim optimizer, wrapped or not. `model`: needed if SGD has sparse
    gradients of embeddings."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "broadcast_optimizer_state: LBFGS is not supported; use broadcast_object(optimizer.state_dict())"
        )
    state_dict = optimizer.state_dict()
    if not state_dict["state"]:  # it may still be empty then
        _make_state(optimizer, model)
        state_dict = optimizer.state_dict()
    tensors, values, counts = [], {}, collections.Counter()
    for group in state_dict["param_groups"]:
        for number in group["params"]:
            for name, value in sorted(state_dict["state"].get(number, {}).items()):
                key = f"{name}.{counts[name]}"
                counts[name] += 1
                if torch.is_tensor(value) and value.layout == torch.strided:
                    tensors.append((key, value))
                else:
                    values[key] = (number, name, value)
    broadcast_parameters(tensors, root_rank)
    _assign(optimizer, state_dict, broadcast_object((_options(state_dict), values), root_rank))


def _assign(optimizer, state_dict, received):
    options, values = received
    for index, option, value in options.values():
        optimizer.param_groups[index][option] = value
    parameters = {}  # numbers as in the state_dict
    for group, saved in zip(optimizer.param_groups, state_dict["param_groups"]):
        parameters.update(zip(saved["params"], group["params"]))
    for number, name, value in values.values():
        optimizer.state[parameters[number]][name] = value


def _to_tensor(obj):
    buffer = io.BytesIO()
    pickle.dump(obj, buffer)
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def _from_tensor(tensor):
    return pickle.loads(tensor.numpy().tobytes())


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Any object that cloudpickle can send. Returns that of `root_rank`."""
    name = OBJECT_NAME if name is None else name
    own = basics.rank() == root_rank
    content = _to_tensor(obj) if own else None
    length = torch.tensor([content.numel() if own else 0])
    synchronize(broadcast_async_(length, root_rank, f"{name}.sz", process_set))
    if not own:
        content = torch.empty(int(length), dtype=torch.uint8)
    synchronize(broadcast_async_(content, root_rank, f"{name}.t", process_set))
    return obj if own else _from_tensor(content)


def allgather_object(obj, name=None, process_set=global_process_set):
    """A list of the objects of all ranks."""
    name = OBJECT_NAME if name is None else name
    content = _to_tensor(obj)
    lengths = allgather_async(torch.tensor([content.numel()]), f"{name}.sz", process_set)
    everything = allgather_async(content, f"{name}.t", process_set)
    parts = torch.split(synchronize(everything), synchronize(lengths).tolist())
    return [_from_tensor(part) for part in parts]
