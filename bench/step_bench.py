#!/usr/bin/env python3
"""A training step, or a prediction, on the CPU: Troupe's kernels against PyTorch, model by model.

usage: bench/step_bench.py [--python PYTHON] [--build build/release/bench] [--threads T] [--runs N]
       [--predict] [--compile] [--only NAME ...] [--quick] [--json]

Both take the same step of the same model, batch, f32 and number of threads, in turn, N times: forward,
softmax cross entropy, backward, and SGD with momentum (models of images) or AdamW (decoders). With
--predict: forward alone, by the running statistics, PyTorch in torch.inference_mode(). PyTorch runs models of images once with its default layout and once with channels_last, and with --compile all
models with torch.compile, too; what counts is the faster. Printed are medians over the runs of samples/s
(decoders: tokens/s), the slowest and fastest run, the most memory that each process had resident, and
Troupe's share of both. --quick measures once and briefly, to see that everything runs. PyTorch is
optional: --python names an interpreter that has it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def images(model, batch, *options):
    return ("model_bench", ["--model", model, "--batch", str(batch), *options])


def decoder(vocabulary):
    return ("gpt_bench", ["--layers", "6", "--heads", "6", "--width", "384", "--context", "256",
                          "--batch", "8", "--vocabulary", str(vocabulary)])


CASES = {
    "lenet5": images("lenet5", 64),
    "resnet18": images("resnet18", 128, "--input", "3", "32", "32", "--small-images"),
    "resnet50": images("resnet50", 16, "--input", "3", "224", "224", "--classes", "1000"),
    "gpt": decoder(50257),
    "gpt-bytes": decoder(256),
}


def measure(command):
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"step_bench: {' '.join(command)} ended with {ran.returncode}: {ran.stderr.strip()}")
    result = json.loads(ran.stdout.splitlines()[-1])
    result = result[0] if isinstance(result, list) else result
    rate = result.get("samples_per_second", result.get("tokens_per_second"))
    return {"rate": rate, "peak_mib": result["peak_mib"]}


def length(program, quick):
    if program == "gpt_bench":
        return ["--passes", "1" if quick else "5"]
    return ["--windows", "1" if quick else "3", "--window-seconds", "0.1" if quick else "1"]


def commands(name, args, torch):
    """Variant -> command; Troupe's first."""
    program, options = CASES[name]
    options = [*options, "--threads", str(args.threads), *length(program, args.quick)]
    if args.predict:
        options.append("--predict")
    yield "troupe", [str(args.build / program), "--json", *options]
    if not torch:
        return
    if program == "gpt_bench":
        peer = [args.python, str(HERE / "peers/gpt.py"), "--json", *options]
        yield "eager", peer
    else:
        peer = [args.python, str(HERE / "peers/torch_step.py"), *options]
        yield "contiguous", [*peer, "--layout", "contiguous"]
        yield "channels_last", [*peer, "--layout", "channels_last"]
        peer += ["--layout", "channels_last"]
    if args.compile:
        yield "compiled", [*peer, "--compile"]


def run_case(name, args, torch):
    rows = {}
    for _ in range(args.runs):  # in turn, so that what else the machine does hits all alike
        for variant, command in commands(name, args, torch):
            rows.setdefault(variant, []).append(measure(command))
    return {key: {"rate": statistics.median(x["rate"] for x in runs),
                  "least": min(x["rate"] for x in runs),
                  "most": max(x["rate"] for x in runs),
                  "peak_mib": statistics.median(x["peak_mib"] for x in runs)}
            for key, runs in rows.items()}


def summary(rows):
    """Troupe against the fastest of PyTorch's variants, and that one's memory."""
    peers = {key: row for key, row in rows.items() if key != "troupe"}
    if not peers:
        return None
    best = max(peers, key=lambda key: peers[key]["rate"])
    return {"fastest_peer": best, "rate_ratio": rows["troupe"]["rate"] / peers[best]["rate"],
            "memory_ratio": rows["troupe"]["peak_mib"] / peers[best]["peak_mib"]}


def print_table(results, args):
    print(f"{'prediction' if args.predict else 'training step'}, f32, {args.threads} thread(s), "
          f"median of {args.runs} run(s)")
    print(f"{'':24} {'per second':>10} {'min':>10} {'max':>10} {'peak MiB':>9} {'speed':>7} "
          f"{'memory':>7}")
    for name, rows in results.items():
        ours = rows["troupe"]
        for variant, row in rows.items():
            ratios = "" if variant == "troupe" else (f"{ours['rate'] / row['rate']:7.2f} "
                                                     f"{ours['peak_mib'] / row['peak_mib']:7.2f}")
            unit = "tokens" if CASES[name][0] == "gpt_bench" else "samples"
            print(f"{name + ' ' + variant:24} {row['rate']:10.1f} {row['least']:10.1f} "
                  f"{row['most']:10.1f} {row['peak_mib']:9.0f} {ratios or unit}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default="build/release/bench",
                        help="folder of model_bench and gpt_bench")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--predict", action="store_true", help="measure a prediction, not a step")
    parser.add_argument("--compile", action="store_true", help="measure torch.compile, too")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--quick", action="store_true", help="once and briefly")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.runs = 1
    torch = subprocess.run([args.python, "-c", "import torch"], capture_output=True).returncode == 0
    results = {name: run_case(name, args, torch) for name in args.only}
    if args.json:
        print(json.dumps({"predict": args.predict, "threads": args.threads, "runs": args.runs,
                          "quick": args.quick,
                          "cases": {name: {**rows, "summary": summary(rows)}
                                    for name, rows in results.items()}}))
    else:
        print_table(results, args)
    if not torch:
        print(f"PyTorch not measured: {args.python} has none (--python)", file=sys.stderr)


if __name__ == "__main__":
    main()
