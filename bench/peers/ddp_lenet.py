#!/usr/bin/env python3
"""Images per second of LeNet-5 trained with PyTorch DistributedDataParallel over Gloo.

usage: bench/peers/ddp_lenet.py [--processes W] [--threads T] [--batch B] [--windows N] [--json]

Runs W processes on this machine, each with T threads and B images per step: forward, backward
(with the all-reduce that DDP overlaps with it) and SGD with momentum. The images are random u8 in
memory and are normalised in the step. Prints images per second over all processes: the median of
N windows after a warm-up, with the slowest and fastest window. The same model, batch and
optimizer as model_bench.

--layout and --compile pick PyTorch's own variants, so that its fastest can be compared with.
"""
import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn


class LeNet5(nn.Module):
    """28x28 grey images: conv 6@5x5 (padding 2), pool, conv 16@5x5, pool, 120, 84, 10."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def train(rank, args, rendezvous):
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    distributed = args.processes > 1
    if distributed:
        dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank,
                                world_size=args.processes)
    model = LeNet5()
    memory_format = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
    model = model.to(memory_format=memory_format)
    if distributed:
        model = nn.parallel.DistributedDataParallel(model)
    if args.compile:
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0)
    images = torch.randint(0, 256, (args.batch, 1, 28, 28), dtype=torch.uint8)
    labels = torch.randint(0, 10, (args.batch,))

    def step():
        x = images.to(torch.float32, memory_format=memory_format)
        x = (x / 255 - 0.1307) / 0.3081
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), labels).backward()
        optimizer.step()

    for _ in range(args.warmup):
        step()
    rates = []
    for _ in range(args.windows):
        if distributed:
            dist.barrier()
        start = time.perf_counter()
        for _ in range(args.steps):
            step()
        if distributed:
            dist.barrier()
        elapsed = time.perf_counter() - start
        rates.append(args.processes * args.batch * args.steps / elapsed)
    if distributed:
        dist.destroy_process_group()
    if rank == 0:
        report(args, rates)


def report(args, rates):
    result = {
        "program": "ddp_lenet",
        "torch": torch.__version__,
        "processes": args.processes,
        "threads": args.threads,
        "batch_per_process": args.batch,
        "images_per_second": statistics.median(rates),
        "slowest": min(rates),
        "fastest": max(rates),
        "windows": len(rates),
    }
    if args.json:
        print(json.dumps(result))
    else:
        print(f"torch {result['torch']}: {args.processes} processes x {args.threads} threads, "
              f"batch {args.batch}: {result['images_per_second']:.0f} images/s "
              f"({result['slowest']:.0f} .. {result['fastest']:.0f}, {len(rates)} windows)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="per process")
    parser.add_argument("--batch", type=int, default=64, help="images per process and step")
    parser.add_argument("--warmup", type=int, default=30, help="steps before measuring")
    parser.add_argument("--steps", type=int, default=100, help="steps of a window")
    parser.add_argument("--windows", type=int, default=7)
    parser.add_argument("--layout", choices=["contiguous", "channels_last"], default="contiguous")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in ("processes", "threads", "batch", "steps", "windows"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1, not {getattr(args, name)}")
    if args.processes == 1:
        train(0, args, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(args, os.path.join(folder, "rendezvous")), nprocs=args.processes)


if __name__ == "__main__":
    main()
