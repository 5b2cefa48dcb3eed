# SPDX-License-Identifier: Apache-2.0
"""Gradients are sent in a smaller type, and come back in their own."""
import torch


class Compressor:
    """compress() returns what is sent, and what decompress() needs to make the tensor of it again."""

    @staticmethod
    def compress(tensor):
        raise NotImplementedError("a Compressor needs a method compress()")

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError("a Compressor needs a method decompress()")


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


class _Narrow(Compressor):
    """Sends tensors of floating point in `wire`."""

    wire = None

    @classmethod
    def compress(cls, tensor):
        if not tensor.dtype.is_floating_point:
            return tensor, None
        return tensor.to(cls.wire), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_Narrow):
    wire = torch.float16


class BF16Compressor(_Narrow):
    wire = torch.bfloat16


class Compression:
    """The compressors to choose from. Horovod does not have bf16."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
