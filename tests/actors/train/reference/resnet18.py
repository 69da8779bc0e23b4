#!/usr/bin/env python3
"""Writes what PyTorch gives for pytorch_weights_test.cpp: a ResNet-18 of width 4, and its logits.

usage: tests/actors/train/reference/resnet18.py [DIRECTORY]

resnet18_weights.safetensors is the model's state_dict as safetensors.torch.save_file writes it, after
some batches in training mode: statistics, scales and biases are none of a fresh model.
resnet18_logits.safetensors has "inputs" [2, 3, 32, 32], "logits" in evaluation mode and, computed in
double, "exact". Both are checked in: run this again only to change the model. Needs torch and
safetensors.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "bench/peers"))
from torch_step import ResNet  # noqa: E402


def stir(model, shape):
    """Makes each parameter and statistic one that matters."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
        model.train()
        for _ in range(20):
            model(torch.randn(shape) * 1.5 + 0.3)
    return model.eval()


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    torch.manual_seed(18)
    torch.set_num_threads(1)
    model = stir(ResNet((2, 2, 2, 2), False, channels=3, classes=10, small=True, width=4),
                 (16, 3, 32, 32))
    save_file({key: value.contiguous() for key, value in model.state_dict().items()},
              folder / "resnet18_weights.safetensors")
    inputs = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        logits = model(inputs)
        exact = model.double()(inputs.double()).float()
    save_file({"inputs": inputs, "logits": logits, "exact": exact},
              folder / "resnet18_logits.safetensors")
    print(f"logits {logits.min():.3f} to {logits.max():.3f}")


if __name__ == "__main__":
    main()
