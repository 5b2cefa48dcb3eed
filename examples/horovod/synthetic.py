# SPDX-License-Identifier: Apache-2.0
"""Images that a program makes, and a small residual network that learns to tell them apart."""
import torch
from torch import nn
from torch.nn.functional import relu

CLASSES, SIDE = 8, 12


def make_images(count, seed=1):
    """Each class has a pattern of its own, under noise."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(CLASSES, 3, SIDE, SIDE, generator=generator)
    generator.manual_seed(seed)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    images = patterns[labels] + 2 * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    return torch.utils.data.TensorDataset(images, labels)


class Block(nn.Module):
    def __init__(self, channels, stride=1):
        super().__init__()
        before = channels // stride
        self.first = nn.Conv2d(before, channels, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.shortcut = nn.Conv2d(before, channels, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, images):
        inner = relu(self.first_norm(self.first(images)))
        return relu(self.second_norm(self.second(inner)) + self.shortcut(images))


def make_network(channels=8):
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        Block(channels),
        Block(2 * channels, stride=2),
        Block(4 * channels, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * channels, CLASSES),
    )
