#!/usr/bin/env python3
"""Samples per second of a training step, or a prediction, in PyTorch, in one process on the CPU.

usage: bench/peers/torch_step.py --model lenet5|resnet18|resnet34|resnet50|resnet101|vgg16|vgg16_bn
       --batch B [--input C H W] [--classes N] [--small-images] [--threads T] [--layout contiguous|channels_last]
       [--compile] [--predict] [--windows N] [--window-seconds S]

The step is that of model_bench: random u8 images in memory, normalised in the step; forward, softmax
cross entropy, backward, SGD with momentum; with --predict forward alone, in eval mode and
torch.inference_mode(). Prints one line of JSON.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class LeNet5(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))))


class Block(nn.Module):
    """A residual block of two 3x3 convolutions, or of a bottleneck of 1x1, 3x3, 1x1."""

    def __init__(self, before, width, stride, bottleneck):
        super().__init__()
        after = 4 * width if bottleneck else width
        sizes = ([(before, width, 1, 1), (width, width, 3, stride), (width, after, 1, 1)]
                 if bottleneck else [(before, width, 3, stride), (width, after, 3, 1)])
        for i, (a, b, kernel, step) in enumerate(sizes, 1):
            setattr(self, f"conv{i}", nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(b))
        self.count = len(sizes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                            nn.BatchNorm2d(after))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = self.relu(y)
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """Names, shapes and order as torchvision's, whose width is 64."""

    def __init__(self, blocks, bottleneck, channels, classes, small, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3 if small else 7, 1 if small else 2,
                               1 if small else 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.small = small
        before = width
        for stage, count in enumerate(blocks, 1):
            layers = []
            for i in range(count):
                layers.append(Block(before, width, 2 if stage > 1 and i == 0 else 1, bottleneck))
                before = 4 * width if bottleneck else width
            setattr(self, f"layer{stage}", nn.Sequential(*layers))
            width *= 2
        self.fc = nn.Linear(before, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        if not self.small:
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Vgg(nn.Module):
    """VGG-16. Names, shapes and order as torchvision's, whose width is 64."""

    def __init__(self, normalized, channels, classes, width=64):
        super().__init__()
        layers = []
        for count, factor in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
            for _ in range(count):
                layers.append(nn.Conv2d(channels, factor * width, 3, padding=1))
                if normalized:
                    layers.append(nn.BatchNorm2d(factor * width))
                layers.append(nn.ReLU(inplace=True))
                channels = factor * width
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(channels * 49, 64 * width), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(64 * width, 64 * width), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(64 * width, classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


SIZES = {"resnet18": ((2, 2, 2, 2), False), "resnet34": ((3, 4, 6, 3), False),
         "resnet50": ((3, 4, 6, 3), True), "resnet101": ((3, 4, 23, 3), True)}


def make(name, channels, classes, small):
    if name == "lenet5":
        return LeNet5(channels, classes)
    if name in ("vgg16", "vgg16_bn"):
        return Vgg(name == "vgg16_bn", channels, classes)
    return ResNet(*SIZES[name], channels, classes, small)


def peak_mib():
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, choices=["lenet5", "vgg16", "vgg16_bn", *SIZES])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--input", type=int, nargs=3, default=[1, 28, 28])
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--small-images", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layout", choices=["contiguous", "channels_last"], default="contiguous")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--windows", type=int, default=9)
    parser.add_argument("--window-seconds", type=float, default=0.5)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    form = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
    model = make(args.model, args.input[0], args.classes, args.small_images).to(memory_format=form)
    model.train(not args.predict)
    run = torch.compile(model) if args.compile else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randint(0, 256, (args.batch, *args.input), dtype=torch.uint8)
    labels = torch.randint(0, 10, (args.batch,))

    def inputs():
        return ((images.float() / 255 - 0.1307) / 0.3081).contiguous(memory_format=form)

    @torch.inference_mode()
    def predict():
        run(inputs())

    def step():
        x = inputs()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(run(x), labels).backward()
        optimizer.step()

    def steps(count):
        start = time.perf_counter()
        for _ in range(count):
            predict() if args.predict else step()
        return time.perf_counter() - start

    steps(2)
    count = max(1, int(args.window_seconds / (steps(2) / 2)))
    rates = sorted(args.batch * count / steps(count) for _ in range(args.windows))
    print(json.dumps({"program": "torch_step", "model": args.model, "torch": torch.__version__,
                      "layout": args.layout, "compile": args.compile, "predict": args.predict,
                      "threads": args.threads, "batch": args.batch, "samples_per_second": statistics.median(rates),
                      "slowest": rates[0], "fastest": rates[-1], "peak_mib": peak_mib()}))


if __name__ == "__main__":
    main()
