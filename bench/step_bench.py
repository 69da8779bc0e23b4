#!/usr/bin/env python3
"""A training step on the CPU: Troupe's kernels against PyTorch, model by model.

usage: bench/step_bench.py [--python PYTHON] [--bench build/release/bench/model_bench] [--threads T]
       [--runs N] [--compile] [--only NAME ...] [--json]

Both take the same step (forward, softmax cross entropy, backward, SGD with momentum) of the same
model, batch, f32 and number of threads, in turn, N times. PyTorch runs once with its default layout
and once with channels_last (with --compile, torch.compile, too); what counts is the faster. Printed
are medians over the runs of samples/s, their ratio, and the most memory that each process had
resident. PyTorch is optional: --python names an interpreter that has it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CASES = {
    "lenet5": ["--model", "lenet5", "--batch", "64"],
    "resnet18": ["--model", "resnet18", "--batch", "128", "--input", "3", "32", "32",
                 "--small-images"],
    "resnet50": ["--model", "resnet50", "--batch", "16", "--input", "3", "224", "224", "--classes",
                 "1000"],
}


def measure(command):
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    return result[0] if isinstance(result, list) else result


def variants(args):
    yield "contiguous", ["--layout", "contiguous"]
    yield "channels_last", ["--layout", "channels_last"]
    if args.compile:
        yield "compiled", ["--layout", "channels_last", "--compile"]


def run_case(name, args, torch):
    common = CASES[name] + ["--threads", str(args.threads), "--windows", "3", "--window-seconds", "1"]
    rows = {}
    for _ in range(args.runs):
        rows.setdefault("troupe", []).append(measure([args.bench, "--json", *common]))
        if not torch:
            continue
        for variant, options in variants(args):
            rows.setdefault(variant, []).append(
                measure([args.python, str(HERE / "peers/torch_step.py"), *common, *options]))
    return {key: {"rate": statistics.median(x["samples_per_second"] for x in runs),
                  "least": min(x["samples_per_second"] for x in runs),
                  "most": max(x["samples_per_second"] for x in runs),
                  "peak_mib": statistics.median(x["peak_mib"] for x in runs)}
            for key, runs in rows.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default="build/release/bench/model_bench")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="measure torch.compile, too")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch = subprocess.run([args.python, "-c", "import torch"], capture_output=True).returncode == 0
    results = {name: run_case(name, args, torch) for name in args.only}
    if args.json:
        print(json.dumps(results))
        return
    print(f"training step, f32, {args.threads} thread(s), median of {args.runs} runs")
    print(f"{'':24} {'samples/s':>10} {'min':>10} {'max':>10} {'peak MiB':>9} {'ratio':>7}")
    for name, rows in results.items():
        for variant, row in rows.items():
            ratio = "" if variant == "troupe" else f"{rows['troupe']['rate'] / row['rate']:7.2f}"
            print(f"{name + ' ' + variant:24} {row['rate']:10.1f} {row['least']:10.1f} "
                  f"{row['most']:10.1f} {row['peak_mib']:9.0f} {ratio}")
    if not torch:
        print(f"PyTorch not measured: {args.python} has none (--python)")


if __name__ == "__main__":
    main()
