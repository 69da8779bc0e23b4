#!/usr/bin/env python3
"""Trains a decoder on a file of bytes in PyTorch (eager, CPU), as a job of Troupe's does.

usage: bench/peers/gpt_train.py --save-initial FILE --layers N --heads N --width N --context N
       bench/peers/gpt_train.py --initial FILE --train FILE --test FILE --layers N ... --batch N
       --epochs N --lr X --weight-decay X --beta2 X --clip-norm X --warmup-steps N --final-lr X
       --seed N [--threads N]

The first form only writes initial weights (safetensors). The second starts from those and prints a line
of JSON for each epoch: mean loss over the test file, and seconds. AdamW, clipping by norm, warm-up and
cosine as docs/job-file.md has them; samples come in the order in which Troupe draws them for the seed.
"""
import argparse
import json
import math
import time

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from gpt import Gpt

VOCABULARY = 256


class Philox:
    """Philox 4x32-10 as kernels/philox.hpp has it: a key for each (seed, stream)."""
    MASK = 0xFFFFFFFF

    def __init__(self, seed, stream):
        self.key = (seed & self.MASK, seed >> 32)
        for part in stream:
            self.key = self.block((part & self.MASK, part >> 32, 1, 0))[:2]
        self.at, self.words = 0, []

    def block(self, counter):
        key = self.key
        for _ in range(10):
            a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            counter = ((b >> 32) ^ counter[1] ^ key[0], b & self.MASK,
                       (a >> 32) ^ counter[3] ^ key[1], a & self.MASK)
            key = ((key[0] + 0x9E3779B9) & self.MASK, (key[1] + 0xBB67AE85) & self.MASK)
        return counter

    def next64(self):
        if not self.words:
            self.words = list(self.block((self.at & self.MASK, self.at >> 32, 0, 0)))
            self.at += 1
        low, high = self.words[:2]
        self.words = self.words[2:]
        return low | high << 32

    def below(self, bound):
        while True:
            draw = self.next64()
            if draw >= (1 << 64) % bound:
                return draw % bound


def permutation(count, seed, epoch):
    random = Philox(seed, (0x7065726D75746174, epoch))
    order = list(range(count))
    for i in range(count, 1, -1):
        j = random.below(i)
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def samples(file, context):
    """[n, context + 1]: each sample's tokens and the one that comes next."""
    with open(file, "rb") as source:
        data = torch.frombuffer(bytearray(source.read()), dtype=torch.uint8).long()
    return data.unfold(0, context + 1, context)


def learning_rate(args, step, steps):
    if step < args.warmup_steps:
        return args.lr * (step + 1) / args.warmup_steps
    done = (step - args.warmup_steps) / (steps - args.warmup_steps)
    return args.final_lr + (args.lr - args.final_lr) * 0.5 * (1 + math.cos(math.pi * done))


def loss_of(model, some, reduction="mean"):
    logits = model(some[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), some[:, 1:].flatten(),
                                    reduction=reduction)


@torch.no_grad()
def test_loss(model, test):
    total = sum(loss_of(model, test[i:i + 64], "sum").item() for i in range(0, len(test), 64))
    return total / (len(test) * (test.shape[1] - 1))


def train(args, model):
    data, test = samples(args.train, args.context), samples(args.test, args.context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, args.beta2), eps=1e-8,
                                  weight_decay=args.weight_decay)
    steps_per_epoch = len(data) // args.batch
    begun = time.perf_counter()
    for epoch in range(args.epochs):
        order = permutation(len(data), args.seed, epoch)
        for step in range(steps_per_epoch):
            some = data[order[step * args.batch:(step + 1) * args.batch]]
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(args, epoch * steps_per_epoch + step,
                                            args.epochs * steps_per_epoch)
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, some).backward()
            if args.clip_norm > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
        print(json.dumps({"epoch": epoch, "test_loss": test_loss(model, test),
                          "seconds": time.perf_counter() - begun}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("save-initial", "initial", "train", "test"):
        parser.add_argument(f"--{name}")
    for name in ("layers", "heads", "width", "context"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name, value in (("batch", 32), ("epochs", 1), ("warmup-steps", 0), ("seed", 1),
                        ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in (("lr", 1e-3), ("weight-decay", 0.0), ("beta2", 0.999), ("clip-norm", 0.0),
                        ("final-lr", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=value)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = Gpt(args.layers, args.heads, args.width, args.context, VOCABULARY)
    if args.save_initial:
        save_file(model.state_dict(), args.save_initial)
        return
    model.load_state_dict(load_file(args.initial), strict=True)
    train(args, model)


if __name__ == "__main__":
    main()
