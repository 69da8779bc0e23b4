#!/usr/bin/env python3
"""Tokens per second of a training step, or a prediction, of a GPT-2-style decoder in PyTorch on the CPU.

usage: bench/peers/gpt.py [--layers N] [--heads N] [--width N] [--context N] [--vocabulary N]
       [--batch N] [--threads N] [--passes N] [--compile] [--predict]
       [--json]

The same step as gpt_bench: random token ids, the same sizes, the mean's loss of every token, forward,
backward, AdamW; with --predict forward alone, in eval mode and torch.inference_mode(). Prints the median, slowest and fastest of the passes and the most memory that the
process had resident.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2)
                   for part in self.c_attn(x).split(c, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(n, t, c))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width, heads), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Names and shapes as in Troupe's files of the layout "linear"."""

    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                # On the way back to the residual stream weights start smaller.
                down = (2 * layers) ** 0.5 if name.endswith("c_proj.weight") else 1
                nn.init.normal_(parameter, std=0.02 / down)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        return functional.linear(self.ln_f(self.h(x)), self.wte.weight)


def peak_mib():
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 6), ("heads", 6), ("width", 384), ("context", 256),
                        ("vocabulary", 256), ("batch", 8), ("threads", 2), ("passes", 9)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Gpt(args.layers, args.heads, args.width, args.context, args.vocabulary)
    model.train(not args.predict)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1)
    run = torch.compile(model) if args.compile else model
    ids, labels = torch.randint(args.vocabulary, (2, args.batch, args.context))

    def loss_of(logits):
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    @torch.inference_mode()
    def predict():
        return run(ids)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(run(ids))
        loss.backward()
        optimizer.step()
        return loss

    seconds = []
    for _ in range(args.passes + 2):
        start = time.perf_counter()
        result = predict() if args.predict else step()
        seconds.append(time.perf_counter() - start)
    loss = loss_of(result) if args.predict else result
    rates = [args.batch * args.context / s for s in seconds[2:]]
    row = {"program": "peers/gpt.py", "torch": torch.__version__, "compile": args.compile,
           "predict": args.predict, "threads": args.threads, "batch": args.batch, "vocabulary": args.vocabulary,
           "tokens_per_second": statistics.median(rates), "slowest": min(rates),
           "fastest": max(rates), "loss": loss.item(), "peak_mib": peak_mib()}
    if args.json:
        print(json.dumps(row))
        return
    print(f"vocabulary {args.vocabulary}, {args.threads} threads: {row['tokens_per_second']:.0f} "
          f"tokens/s ({min(rates):.0f} to {max(rates):.0f}), {row['peak_mib']:.0f} MiB, "
          f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
