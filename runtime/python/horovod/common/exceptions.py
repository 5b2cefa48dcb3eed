# SPDX-License-Identifier: Apache-2.0
"""The exceptions that scripts catch."""


class HorovodInternalError(RuntimeError):
    """A collective operation failed: ranks were lost or have shut down, or they submitted different
    tensors. hvd.elastic.run goes back to the last commit."""

    status = None  # the hvd_status of libhvd; None: someone else raised it


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts have joined or left an elastic job. `skip_sync`: no rank needs the state of rank 0."""

    def __init__(self, skip_sync=False):
        super().__init__("hosts have joined or left the job")
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    """Horovod was compiled for another version of a framework. This package is not compiled, so only scripts
    raise it; they may also catch it."""

    def __init__(self, name, version, installed_version):
        super().__init__(f"Horovod was made for {name} {installed_version}, and this is {version}", name=name)
        self.version, self.installed_version = version, installed_version
