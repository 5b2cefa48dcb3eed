# SPDX-License-Identifier: Apache-2.0
"""What the kinds of DistributedOptimizer have in common: the names of parameters, the hooks that tell when a
gradient is complete, and the passes that are counted until a parameter is sent."""
import torch


def _named(named_parameters, param_groups):
    """[(name, parameter)] of all parameters of the optimizer."""
    if named_parameters is None:
        return [
            (f"allreduce.noname.{i}.{j}", parameter)
            for i, group in enumerate(param_groups)
            for j, parameter in enumerate(group["params"])
        ]
    named = list(named_parameters)
    if any(not isinstance(one, tuple) or len(one) != 2 for one in named):
        raise ValueError("named_parameters must be pairs of name and parameter, as of model.named_parameters()")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"named_parameters has names that are not unique: {', '.join(twice)}")
    known = {parameter for _, parameter in named}
    missing = sum(parameter not in known for group in param_groups for parameter in group["params"])
    if missing:
        raise ValueError(f"named_parameters lacks {missing} parameters of the optimizer; give all of them")
    return named


class Wrapper(torch.optim.Optimizer):
    """wrap() makes a class of the methods of a subclass for each class of optimizer. A subclass has _send(), which
    submits a parameter and puts what it waits for into _handles."""

    _base = torch.optim.Optimizer

    def _prepare(self, params, named_parameters, compression, passes):
        self._base.__init__(self, params)
        named = _named(named_parameters, self.param_groups)
        self._parameter_names = {parameter: name for name, parameter in named}
        self._compression = compression
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._parameter_names, passes)
        self._handles = {}  # parameter: what _send() has begun
        self._begun = False  # a pass was counted since the last step
        self._requires_update = set()
        self._hooks = []  # what keeps the hooks alive

    def _register_hooks(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    continue
                self._requires_update.add(parameter)
                if hasattr(parameter, "register_post_accumulate_grad_hook"):
                    self._hooks.append(parameter.register_post_accumulate_grad_hook(self._gradient_is_complete))
                else:  # before torch 2.1: a hook of the node that accumulates the gradient
                    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                    node.register_hook(lambda *_, parameter=parameter: self._gradient_is_complete(parameter))
                    self._hooks.append(node)

    def _gradient_is_complete(self, parameter):
        """Autograd's threads call it."""
        if self._passes_left[parameter] <= 0:
            raise AssertionError(
                "gradients were computed more than backward_passes_per_step times before optimizer.step(); "
                "increase backward_passes_per_step"
            )
        assert not parameter.grad.requires_grad, "DistributedOptimizer does not support gradients of gradients"
        self._begun = True
        self._passes_left[parameter] -= 1
        if self._passes_left[parameter] == 0:
            self._send(parameter)

    def _in_order(self, parameters):
        """In the order of the optimizer, which is the same on all ranks."""
        return [p for group in self.param_groups for p in group["params"] if p in parameters]

    def _send_missing(self):
        """Every rank sends every parameter, also those that it did not use or that lack passes."""
        for parameter in self._in_order(self._requires_update - self._handles.keys()):
            self._send(parameter)

    def _forget(self):
        self._handles.clear()
        self._passes_left = dict.fromkeys(self._passes_left, self.backward_passes_per_step)
        self._begun = False

    # what scripts call

    def local_step(self, closure=None):
        """A step of this rank alone."""
        return self._base.step(self, closure)

    def zero_grad(self, *args, **kwargs):
        if self._begun or self._handles:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                "optimizer.synchronize(); gradients are in use"
            )
        return self._base.zero_grad(self, *args, **kwargs)

    def set_backward_passes_per_step(self, passes):
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._passes_left, passes)

    def load_state_dict(self, *args, **kwargs):
        self._forget()
        return self._base.load_state_dict(self, *args, **kwargs)


def wrap(kind, optimizer, *arguments):
    """An optimizer of the same class and with the same groups as `optimizer`, with the methods of `kind`, a subclass
    of Wrapper. Its class is no subclass of `kind`, so that isinstance() says of it what it says in Horovod."""
    body = {}
    for part in reversed(kind.__mro__[: kind.__mro__.index(torch.optim.Optimizer)]):
        body.update({name: value for name, value in vars(part).items() if name not in ("__dict__", "__weakref__")})
    body["_base"], body["__module__"] = type(optimizer), "horovod.torch.optimizer"  # by which scripts know it
    made = type(type(optimizer).__name__, (type(optimizer),), body)
    return made(optimizer.param_groups, *arguments)
