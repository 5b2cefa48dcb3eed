# SPDX-License-Identifier: Apache-2.0
import threading

import pytest
from horovod.data import AsyncDataLoaderMixin, BaseDataLoader


class Numbers(BaseDataLoader):
    def __init__(self, count, bad=None):
        self.count, self.bad = count, bad

    def __len__(self):
        return self.count

    def _iterate(self):
        for i in range(self.count):
            if i == self.bad:
                raise KeyError(i)
            yield i

    def _process_batch(self, batch):
        return 2 * batch


class AsyncNumbers(AsyncDataLoaderMixin, Numbers):
    pass


@pytest.mark.parametrize("queue_size", [0, 1, 64])
def test_all_epochs_are_whole(queue_size):
    loader = AsyncNumbers(queue_size, count=10)
    for _ in range(3):
        assert list(loader) == list(range(0, 20, 2))
    assert len(loader) == 10


def test_an_exception_reaches_the_program():
    seen = []
    with pytest.raises(KeyError):
        for number in AsyncNumbers(count=10, bad=3):
            seen.append(number)
    assert seen == [0, 2, 4]


def test_closing_in_an_epoch_ends_the_thread():
    before = threading.active_count()
    loader = AsyncNumbers(1, count=1000)
    assert next(iter(loader)) == 0
    loader.close_async_loader()
    loader.close_async_loader()
    assert threading.active_count() == before
    assert list(loader)[-1] == 1998
