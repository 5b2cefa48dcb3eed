# SPDX-License-Identifier: Apache-2.0
"""Every rank of a job runs these tests, as `hvdrun -np N python3 -m pytest tests/python`. Each test begins
with hvd.init() and ends with hvd.shutdown(), as in Horovod's own tests."""
import horovod.torch as hvd
import pytest


@pytest.fixture(autouse=True)
def job():
    hvd.init()
    yield
    if hvd.is_initialized():
        hvd.shutdown()


@pytest.fixture
def rank(job):
    return hvd.rank()


@pytest.fixture
def size(job):
    return hvd.size()
