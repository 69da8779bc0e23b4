#!/usr/bin/env python3
"""Tokens per second of a GPT-2-style decoder in PyTorch (eager, CPU): forward and backward.

usage: bench/peers/gpt.py [--vocabulary N] [--threads N] [--batch N] [--passes N]

The same pass as gpt_bench: random token ids, the same sizes, the mean's loss of every token.
"""
import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2)
                   for part in self.c_attn(self.ln_1(x)).split(c, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(n, t, c))
        y = functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")
        return x + self.mlp_proj(y)


class Gpt(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.wte = nn.Embedding(args.vocabulary, args.width)
        self.wpe = nn.Embedding(args.context, args.width)
        self.h = nn.Sequential(*(Block(args.width, args.heads) for _ in range(args.layers)))
        self.ln_f = nn.LayerNorm(args.width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        return functional.linear(self.ln_f(self.h(x)), self.wte.weight)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("layers", 6), ("heads", 6), ("width", 384), ("context", 256),
                        ("vocabulary", 256), ("batch", 8), ("threads", 2), ("passes", 9)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Gpt(args)
    ids, labels = torch.randint(args.vocabulary, (2, args.batch, args.context))
    seconds = []
    for _ in range(args.passes + 2):
        start = time.perf_counter()
        model.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        loss.backward()
        seconds.append(time.perf_counter() - start)
    rates = [args.batch * args.context / s for s in seconds[2:]]
    print(f"vocabulary {args.vocabulary}, {args.threads} threads: {statistics.median(rates):.0f} "
          f"tokens/s ({min(rates):.0f} to {max(rates):.0f}), loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
