# SPDX-License-Identifier: Apache-2.0
"""libhvd through ctypes: where it is, its structs and functions (hvd.h), its errors as exceptions."""
import ctypes
import os
from ctypes import POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p

from horovod.common.exceptions import HorovodInternalError

SONAME = "libhvd.so.0"

OK, IN_PROGRESS = 0, 1
ERR_NOT_INITIALIZED, ERR_ARGUMENT, ERR_DUPLICATE_NAME, ERR_UNKNOWN_SET, ERR_NOT_MEMBER = -1, -2, -3, -4, -5
ERR_SET_EXISTS, ERR_UNKNOWN_HANDLE, ERR_MISMATCH, ERR_SHUT_DOWN, ERR_PEER_LOST = -6, -7, -8, -9, -10
ERR_TIMEOUT, ERR_UNSUPPORTED, ERR_MEMORY, ERR_ENGINE, ERR_BUSY = -11, -12, -13, -14, -15
ERR_HOSTS_CHANGED, ERR_REMOVED = -16, -17

VALUE_ERRORS = {ERR_ARGUMENT, ERR_DUPLICATE_NAME, ERR_UNKNOWN_SET, ERR_NOT_MEMBER, ERR_SET_EXISTS}


class Sized(Structure):
    """A struct of hvd.h that begins with its own size."""

    def __init__(self, *values):
        super().__init__(ctypes.sizeof(self), *values)


class Tensor(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("shape", POINTER(c_int64)),
        ("dims", c_int32),
        ("type", c_int32),
        ("input", c_void_p),
        ("output", c_void_p),
        ("stream", c_void_p),
        ("device", c_int32),
    ]


class Options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("set", c_int32),
        ("op", c_int32),
        ("prescale", c_double),
        ("postscale", c_double),
        ("callback", c_void_p),
        ("context", c_void_p),
    ]


class Result(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("data", c_void_p),
        ("rows", c_int64),
        ("splits", POINTER(c_int64)),
        ("split_count", c_int32),
        ("last_joined", c_int32),
    ]


ELASTIC_FUNCTION = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)

_TENSOR, _OPTIONS, _RESULT, _HANDLE = POINTER(Tensor), POINTER(Options), POINTER(Result), POINTER(c_int64)
_PROTOTYPES = {
    "hvd_error_text": (c_char_p,),
    "hvd_init": (c_int, c_void_p),
    "hvd_shutdown": (c_int,),
    "hvd_is_initialized": (c_bool,),
    "hvd_rank": (c_int,),
    "hvd_size": (c_int,),
    "hvd_local_rank": (c_int,),
    "hvd_local_size": (c_int,),
    "hvd_cross_rank": (c_int,),
    "hvd_cross_size": (c_int,),
    "hvd_is_homogeneous": (c_bool,),
    "hvd_engine_built": (c_bool, c_char_p),
    "hvd_engine": (c_char_p,),
    "hvd_nccl_version": (c_int,),
    "hvd_failure": (c_int,),
    "hvd_result_free": (None, _RESULT),
    "hvd_result_move": (c_int, _RESULT, c_void_p, c_size_t, c_void_p),
    "hvd_poll": (c_int, c_int64),
    "hvd_wait": (c_int, c_int64, c_int64, _RESULT),
    "hvd_allreduce_async": (c_int, _TENSOR, _OPTIONS, _HANDLE),
    "hvd_grouped_allreduce_async": (c_int, _TENSOR, c_size_t, _OPTIONS, _HANDLE),
    "hvd_allgather_async": (c_int, _TENSOR, _OPTIONS, _HANDLE),
    "hvd_broadcast_async": (c_int, _TENSOR, c_int, _OPTIONS, _HANDLE),
    "hvd_alltoall_async": (c_int, _TENSOR, POINTER(c_int64), _OPTIONS, _HANDLE),
    "hvd_reducescatter_async": (c_int, _TENSOR, _OPTIONS, _HANDLE),
    "hvd_barrier_async": (c_int, _OPTIONS, _HANDLE),
    "hvd_join_async": (c_int, _OPTIONS, _HANDLE),
    "hvd_use_gpu": (c_int, c_int32, c_int32),
    "hvd_add_process_set": (c_int, POINTER(c_int32), c_int32, POINTER(c_int32)),
    "hvd_remove_process_set": (c_int, c_int32),
    "hvd_process_set_ranks": (c_int, c_int32, POINTER(c_int32), c_int32),
    "hvd_process_set_ids": (c_int, POINTER(c_int32), c_int32),
    "hvd_timeline_start": (c_int, c_char_p, c_bool),
    "hvd_timeline_stop": (c_int,),
    "hvd_state_create": (c_int, POINTER(c_void_p)),
    "hvd_state_destroy": (None, c_void_p),
    "hvd_hosts_changed": (c_bool, c_void_p),
    "hvd_elastic_run": (c_int, c_void_p, ELASTIC_FUNCTION, c_void_p),
}


def _candidates():
    """The library of the same installation (LIBDIR/hvdrun/python/horovod), of the same wheel, and the
    one that the loader knows."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in ("../../..", "../hvdrun/lib"):
        yield os.path.normpath(os.path.join(package, folder, SONAME))
    yield SONAME


def _open():
    for path in _candidates():
        if path == SONAME or os.path.exists(path):
            try:
                return ctypes.CDLL(path)
            except OSError as error:
                raise ImportError(f"horovod: cannot load {SONAME}: {error}. Install libhvd with hvdrun") from None
    raise AssertionError  # the last candidate either loads or raises


def load():
    """The library with its prototypes. ImportError: it is missing, or older than this package."""
    library = _open()
    for name, (result, *arguments) in _PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(
                f"horovod: {library._name} does not have {name}(), so it is older than this package. "
                "Install libhvd and the package from the same hvdrun"
            ) from None
        function.restype, function.argtypes = result, arguments
    return library


hvd = load()

_owner = 0  # the process that has initialized the library last; 0: none


def own():
    """This process has initialized the library."""
    global _owner
    _owner = os.getpid()


def is_foreign():
    """This process was forked from one that had initialized the library."""
    return _owner not in (0, os.getpid())


def failure(status, text=None):
    """The exception for a status. `text`: what the call reported; None: it was this thread's last one."""
    text = (text or hvd.hvd_error_text()).decode("utf-8", "replace")
    if status == ERR_NOT_INITIALIZED and is_foreign():
        text = (
            "a forked process cannot use the Horovod of its parent; use it only in the process that called hvd.init()"
        )
    elif status == ERR_NOT_INITIALIZED:
        text = "Horovod has not been initialized; use hvd.init()"
    if status in VALUE_ERRORS:
        return ValueError(text)
    if status == ERR_UNSUPPORTED:
        return NotImplementedError(text)
    error = HorovodInternalError(text)
    error.status = status
    return error


def check(status):
    if status < 0:
        raise failure(status)
    return status
