# SPDX-License-Identifier: Apache-2.0
"""Small things that scripts and frameworks import from horovod.common.util."""
import contextlib
import functools
import importlib
import os

EXTENSIONS = ("torch",)


@contextlib.contextmanager
def env(**variables):
    """Sets environment variables; None removes one."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables):
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def get_extension_full_path(pkg_path, *args):
    raise NotImplementedError("hvdrun's horovod has no compiled extension; it uses libhvd")


_cache = functools.lru_cache(maxsize=None)


@_cache
def extension_available(ext_base_name, verbose=False):
    """Whether `horovod.NAME` can be imported."""
    if ext_base_name not in EXTENSIONS:
        return False
    try:
        importlib.import_module(f"horovod.{ext_base_name}")
    except ImportError as error:
        if verbose:
            print(f"horovod.{ext_base_name}: {error}")
        return False
    return True


def check_extension(ext_name, ext_env_var, pkg_path, *args):
    name = ext_name.rsplit(".", 1)[-1]
    if not extension_available(name):
        raise ImportError(f"horovod.{name} is not available in hvdrun's horovod; it has {', '.join(EXTENSIONS)}")


def gpu_available(ext_base_name, verbose=False):
    """Whether PyTorch sees a GPU."""
    if not extension_available(ext_base_name, verbose):
        return False
    return importlib.import_module(f"horovod.{ext_base_name}")._check_has_gpu()


def _built(name):
    def built(verbose=False):
        from horovod.common.basics import basics

        return bool(getattr(basics, name)())

    built.__name__ = name
    return built


mpi_built, gloo_built, nccl_built, cuda_built = map(_built, ("mpi_built", "gloo_built", "nccl_built", "cuda_built"))
ddl_built, ccl_built, rocm_built = map(_built, ("ddl_built", "ccl_built", "rocm_built"))


def split_list(items, parts):
    """`parts` lists, nearly equally long."""
    size, more = divmod(len(items), parts)
    ends = [(i + 1) * size + min(i + 1, more) for i in range(parts)]
    return [items[begin:end] for begin, end in zip([0] + ends, ends)]


def num_rank_is_power_2(num_rank):
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_iterable(value):
    try:
        iter(value)
    except TypeError:
        return False
    return True
