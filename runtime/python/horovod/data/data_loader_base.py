# SPDX-License-Identifier: Apache-2.0
"""A data loader, and a mixin that reads the next batches in a thread while the program computes."""
import queue
import threading


class BaseDataLoader:
    """Subclasses have __len__() and _iterate(), and may have _process_batch()."""

    def __len__(self):
        raise NotImplementedError("a data loader needs a method __len__()")

    def _iterate(self):
        raise NotImplementedError("a data loader needs a method _iterate()")

    def _process_batch(self, batch):
        return batch

    def __iter__(self):
        for batch in self._iterate():
            yield self._process_batch(batch)


class _End:
    """The last thing in the queue: the epoch is over, or the exception that ended it."""

    def __init__(self, error=None):
        self.error = error


class AsyncDataLoaderMixin:
    """Goes in front of a BaseDataLoader: class Loader(AsyncDataLoaderMixin, MyLoader)."""

    def __init__(self, async_loader_queue_size=64, debug_data_loader=False, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.async_loader_queue_size, self.debug_data_loader = async_loader_queue_size, debug_data_loader
        self._reader = self._stop = None

    def close_async_loader(self):
        """Ends the thread. The rest of the epoch is dropped."""
        if self._reader is not None:
            self._stop.set()
            self._reader.join()
            self._reader = None

    def _read(self, batches, stop):
        def put(item):
            while not stop.is_set():
                try:
                    return batches.put(item, timeout=0.1)
                except queue.Full:
                    pass
            return None

        try:
            for batch in super().__iter__():
                put(batch)
                if stop.is_set():
                    return
            put(_End())
        except Exception as error:
            put(_End(error))

    def __iter__(self):
        if self.async_loader_queue_size <= 0:
            yield from super().__iter__()
            return
        self.close_async_loader()
        batches, self._stop = queue.Queue(self.async_loader_queue_size), threading.Event()
        self._reader = threading.Thread(target=self._read, args=(batches, self._stop), daemon=True)
        self._reader.start()
        while True:
            item = batches.get()
            if isinstance(item, _End):
                self.close_async_loader()
                if item.error is not None:
                    raise item.error
                return
            yield item
