#!/usr/bin/env python3
"""Images or tokens per second of a pass in PyTorch (eager) on a GPU: the peer of scripts/gpu-check.

usage: bench/peers/gpu_pass.py [--device cuda] [--passes N]

The models and batches of tests/kernels/cuda/pass_bench.cpp that say so there: samples sent from the
host, forward, the summed loss, backward. Gradients stay on the device, where Troupe's come back to
the host. In f32 (TF32 off) and under autocast to bf16, whose layers are not all those that Troupe
rounds. Prints the median, least and most milliseconds of the passes.
"""
import argparse
import pathlib
import statistics
import sys
import time

import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import gpt  # noqa: E402
import torch_step  # noqa: E402


def resnet50(device):
    model = torch_step.make("resnet50", 3, 1000, False).to(device)
    images = torch.randn(64, 3, 224, 224).pin_memory()
    labels = torch.randint(10, (64,), device=device)
    return "resnet50", "images/s", 64, model, images, labels, lambda out: out


def decoder(device):
    batch, context, vocabulary = 4, 1024, 50257
    model = gpt.Gpt(12, 12, 768, context, vocabulary).to(device)
    ids = torch.randint(vocabulary, (batch, context)).pin_memory()
    labels = torch.randint(10, (batch * context,), device=device)
    return "gpt", "tokens/s", batch * context, model, ids, labels, lambda out: out.flatten(0, 1)


def measure(case, device, precision, passes):
    name, unit, items, model, samples, labels, logits = case
    seconds = []
    for _ in range(passes + 3):
        torch.cuda.synchronize(device)
        start = time.perf_counter()
        model.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            out = logits(model(samples.to(device, non_blocking=True)))
            loss = functional.cross_entropy(out.float(), labels, reduction="sum")
        loss.backward()
        torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    if not torch.isfinite(loss):
        sys.exit(f"gpu_pass.py: {name} in {precision}: the loss is {loss.item()}")
    kept = [1e3 * s for s in seconds[3:]]
    median = statistics.median(kept)
    print(f"{name:<10} {precision:<5} {1e3 * items / median:12.1f} {unit:<9} {median:10.2f} "
          f"{min(kept):10.2f} {max(kept):10.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--passes", type=int, default=15)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu_pass.py: PyTorch sees no GPU here")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    device = torch.device(args.device)
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    print(f"{'model':<10} {'':<5} {'median':>12} {'':<9} {'median ms':>10} {'least ms':>10} "
          f"{'most ms':>10}")
    for make in (resnet50, decoder):
        case = make(device)
        for precision in ("f32", "bf16"):
            measure(case, device, precision, args.passes)


if __name__ == "__main__":
    main()
