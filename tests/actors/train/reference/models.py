#!/usr/bin/env python3
"""Writes what PyTorch gives for pytorch_weights_test.cpp: models of few channels, and their logits.

usage: tests/actors/train/reference/models.py [--only NAME ...] [DIRECTORY]

NAME_weights.safetensors is the model's state_dict as safetensors.torch.save_file writes it, after 20
batches in training mode: statistics, scales and biases are none of a fresh model. NAME_logits.safetensors
has "inputs", "logits" in evaluation mode and, computed in double, "exact". All are checked in: run this
again only to change a model. Needs torch and safetensors.
"""
import argparse
import pathlib
import sys

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "peers"))
from torch_models import resnet18, stir, vgg16  # noqa: E402

# The model, and the shape of an image.
MODELS = {"resnet18": (lambda: resnet18(10, small=True, width=4), (3, 32, 32)),
          "vgg16_bn": (lambda: vgg16(10, normalized=True, width=1), (3, 64, 32))}


def write(name, folder):
    make, shape = MODELS[name]
    torch.manual_seed(18)
    model = stir(make(), (16, *shape), batches=20, bias=0.5).eval()
    save_file({key: value.contiguous() for key, value in model.state_dict().items()},
              folder / f"{name}_weights.safetensors")
    inputs = torch.randn(2, *shape)
    with torch.no_grad():
        logits = model(inputs)
        exact = model.double()(inputs.double()).float()
    save_file({"inputs": inputs, "logits": logits, "exact": exact},
              folder / f"{name}_logits.safetensors")
    print(f"{name}: logits {logits.min():.3f} to {logits.max():.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("directory", nargs="?", type=pathlib.Path, default=HERE)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.only:
        write(name, args.directory)


if __name__ == "__main__":
    main()
