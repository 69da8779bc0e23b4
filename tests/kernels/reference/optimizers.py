#!/usr/bin/env python3
"""Writes optimizers.json: what PyTorch's optimizers, and the papers' LAMB and LARS, make of some
weights and gradients in double.

usage: tests/kernels/reference/optimizers.py > tests/kernels/reference/optimizers.json

Wants PyTorch and numpy. A weight [3, 4] and a bias [3] go through six updates at changing rates.
"""
import json
import sys

import numpy as np
import torch

RATES = [0.01, 0.02, 0.03, 0.03, 0.02, 0.01]
SHAPES = [(3, 4), (3,)]

# name, options as kernels::OptimizerOptions has them, clip norm (0: off)
CASES = [
    ("sgd", {}, 0),
    ("sgd", {"weight_decay": 0.1}, 0),
    ("sgd", {"momentum": 0.9, "weight_decay": 0.1}, 0),
    ("sgd", {"momentum": 0.9, "nesterov": True}, 0),
    ("sgd", {"momentum": 0.9, "weight_decay": 0.1, "decay_vectors": False}, 0),
    ("sgd", {"momentum": 0.9}, 1.5),
    ("sgd", {"momentum": 0.9}, 1e3),
    ("adam", {}, 0),
    ("adam", {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3, "weight_decay": 0.1}, 0),
    ("adam", {"weight_decay": 0.1, "decay_vectors": False}, 0),
    ("adamw", {"weight_decay": 0.1}, 0),
    ("adamw", {"weight_decay": 0.1, "decay_vectors": False}, 1.5),
    ("lamb", {"epsilon": 1e-6}, 0),
    ("lamb", {"epsilon": 1e-6, "weight_decay": 0.1}, 0),
    ("lamb", {"epsilon": 1e-6, "weight_decay": 0.1, "decay_vectors": False}, 1.5),
    ("lars", {"momentum": 0.9}, 0),
    ("lars", {"momentum": 0.9, "weight_decay": 0.1, "trust_coefficient": 0.5}, 0),
    ("lars", {"momentum": 0.9, "weight_decay": 0.1, "decay_vectors": False}, 1.5),
]


class Lamb:
    """You et al. 2019, algorithm 2, phi the identity; the moments' bias is corrected."""

    def __init__(self, weights, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0,
                 decay_vectors=True):
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.weight_decay, self.decay_vectors = weight_decay, decay_vectors
        self.m = [np.zeros_like(w) for w in weights]
        self.v = [np.zeros_like(w) for w in weights]
        self.t = 0

    def step(self, weights, gradients, rate):
        self.t += 1
        for w, g, m, v in zip(weights, gradients, self.m, self.v):
            m += (1 - self.beta1) * (g - m)
            v += (1 - self.beta2) * (g * g - v)
            u = m / (1 - self.beta1**self.t)
            u = u / (np.sqrt(v / (1 - self.beta2**self.t)) + self.epsilon)
            adapts = self.decay_vectors or w.ndim > 1
            if adapts:
                u = u + self.weight_decay * w
            ratio = np.linalg.norm(w) / np.linalg.norm(u) if adapts else 1.0
            w -= rate * ratio * u


class Lars:
    """You, Gitman, Ginsburg 2017, algorithm 1."""

    def __init__(self, weights, momentum=0.0, trust_coefficient=0.001, weight_decay=0.0,
                 decay_vectors=True):
        self.momentum, self.trust_coefficient = momentum, trust_coefficient
        self.weight_decay, self.decay_vectors = weight_decay, decay_vectors
        self.buf = [np.zeros_like(w) for w in weights]

    def step(self, weights, gradients, rate):
        for w, g, buf in zip(weights, gradients, self.buf):
            ratio, decay = 1.0, 0.0
            if self.decay_vectors or w.ndim > 1:
                decay = self.weight_decay
                ratio = self.trust_coefficient * np.linalg.norm(w)
                ratio /= np.linalg.norm(g) + decay * np.linalg.norm(w)
            buf *= self.momentum
            buf += rate * ratio * (g + decay * w)
            w -= buf


class Torch:
    def __init__(self, kind, weights, decay_vectors=True, weight_decay=0.0, beta1=0.9, beta2=0.999,
                 epsilon=1e-8, **options):
        self.parameters = [torch.nn.Parameter(torch.from_numpy(w.copy())) for w in weights]
        if kind is not torch.optim.SGD:
            options |= {"betas": (beta1, beta2), "eps": epsilon}
        groups = [{"params": [p],
                   "weight_decay": weight_decay if decay_vectors or p.ndim > 1 else 0.0}
                  for p in self.parameters]
        self.optimizer = kind(groups, lr=1.0, **options)

    def step(self, weights, gradients, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        for p, g in zip(self.parameters, gradients):
            p.grad = torch.from_numpy(g.copy())
        self.optimizer.step()
        for w, p in zip(weights, self.parameters):
            w[...] = p.detach().numpy()


def make(name, options, weights):
    if name == "lamb":
        return Lamb(weights, **options)
    if name == "lars":
        return Lars(weights, **options)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    return Torch(kind, weights, **options)


def clipped(gradients, most):
    tensors = [torch.nn.Parameter(torch.zeros(g.shape, dtype=torch.float64)) for g in gradients]
    for t, g in zip(tensors, gradients):
        t.grad = torch.from_numpy(g.copy())
    torch.nn.utils.clip_grad_norm_(tensors, most)
    return [t.grad.numpy() for t in tensors]


def flat(arrays):
    return [float(x) for a in arrays for x in a.ravel()]


def main():
    random = np.random.default_rng(1)
    # Exact in float, so that both sides begin with the same.
    draw = lambda: [random.normal(size=s).astype(np.float32).astype(np.float64) for s in SHAPES]
    first, gradients = draw(), [draw() for _ in RATES]
    cases = []
    for name, options, clip_norm in CASES:
        weights = [w.copy() for w in first]
        optimizer = make(name, options, weights)
        after = {}
        for update, (rate, g) in enumerate(zip(RATES, gradients), start=1):
            optimizer.step(weights, clipped(g, clip_norm) if clip_norm else g, rate)
            if update in (1, 3, 6):
                after[update] = [float(f"{x:.10g}") for x in flat(weights)]
        cases.append({"options": {"name": name, **options}, "clip_norm": clip_norm, "after": after})
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    data = {"rates": RATES, "weights": flat(first), "gradients": [flat(g) for g in gradients]}
    sys.stdout.write(json.dumps(data)[:-1] + ',\n "cases": [\n' + lines + "\n ]}\n")


if __name__ == "__main__":
    main()
