#!/usr/bin/env python3
"""One worker of a LeNet-5 job that torchrun starts again when a worker dies.

usage: torchrun --nnodes=1 --nproc-per-node=4 --max-restarts=N bench/peers/torchrun_elastic.py
           --data FOLDER --events FIFO --snapshot FILE --steps N [--snapshot-steps N] [--batch B]

The model of ddp_lenet.py on MNIST in FOLDER (unpacked IDX files), with PyTorch
DistributedDataParallel over Gloo, one thread and B / workers images per step and worker. It follows
PyTorch's tutorial on fault tolerance with torchrun: rank 0 saves a snapshot of weights, optimizer and
step to local disk now and then, and each worker loads it when it starts. Which images a worker
gets is a function of seed, step and rank alone, so a job that was started again trains on the same.

Each worker writes a line to FIFO when it has finished a step: time (monotonic, in ns), process,
rank, restart, step. The last line of rank 0 is a hash of the weights.
"""
import argparse
import datetime
import hashlib
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from ddp_lenet import LeNet5

IMAGES = 60000


def read_idx(path, header, size):
    """The bytes after the header, mapped: nothing is copied when a worker starts."""
    return torch.from_file(path, size=header + size, dtype=torch.uint8)[header:]


def samples(step, args, rank, workers):
    """Indices of this worker's images: each epoch is shuffled anew, a step takes the next batch."""
    per_epoch = IMAGES // args.batch
    epoch, index = divmod(step, per_epoch)
    if samples.epoch != epoch:
        samples.order = torch.randperm(IMAGES, generator=torch.Generator().manual_seed(1 + epoch))
        samples.epoch = epoch
    first = index * args.batch + rank * (args.batch // workers)
    return samples.order[first:first + args.batch // workers]


samples.epoch = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--events", required=True, help="a FIFO")
    parser.add_argument("--snapshot", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--snapshot-steps", type=int, default=20, help="steps between snapshots")
    parser.add_argument("--batch", type=int, default=128, help="images of a step, over all workers")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
    rank, workers = dist.get_rank(), dist.get_world_size()
    restart = os.environ["TORCHELASTIC_RESTART_COUNT"]
    events = os.open(args.events, os.O_WRONLY)

    images = read_idx(f"{args.data}/train-images-idx3-ubyte", 16, IMAGES * 784)
    images = images.view(IMAGES, 1, 28, 28)
    labels = read_idx(f"{args.data}/train-labels-idx1-ubyte", 8, IMAGES)
    model = LeNet5()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0)
    first = 0
    if os.path.exists(args.snapshot):
        snapshot = torch.load(args.snapshot)
        model.load_state_dict(snapshot["model"])
        optimizer.load_state_dict(snapshot["optimizer"])
        first = snapshot["steps"]
    parallel = nn.parallel.DistributedDataParallel(model)

    for step in range(first, args.steps):
        chosen = samples(step, args, rank, workers)
        x = (images[chosen].to(torch.float32) / 255 - 0.1307) / 0.3081
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(parallel(x), labels[chosen].to(torch.int64)).backward()
        optimizer.step()
        os.write(events, f"{time.monotonic_ns()} {os.getpid()} {rank} {restart} {step}\n".encode())
        if rank == 0 and (step + 1) % args.snapshot_steps == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "steps": step + 1}, args.snapshot + ".new")
            os.replace(args.snapshot + ".new", args.snapshot)
    if rank == 0:
        weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        os.write(events, f"weights {hashlib.sha256(weights).hexdigest()}\n".encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
