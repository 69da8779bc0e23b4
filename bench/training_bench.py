#!/usr/bin/env python3
"""Images per second of LeNet-5 on two nodes: Troupe against PyTorch DistributedDataParallel (Gloo).

usage: bench/training_bench.py --troupe build/release/tools/troupe [--python PYTHON] [--json]

Both train the same model with the same batch and one thread per process, in turn, several times;
what counts is the median over the runs of the steady rate, and the ratio of the medians. PyTorch is
optional: --python names an interpreter that has it. Evaluation and checkpoints are outside the
window that is measured, for both.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JOB = HERE.parent / "examples/mnist/lenet.toml"


def troupe_rate(args, folder):
    """Images per second between the end of the warm-up and the last step of the first epochs."""
    command = [args.troupe, "train", str(JOB), "--nodes", str(args.processes), "--json", "--slots", "1"]
    for setting in (f"ranks={args.processes}", f"data.batch={args.batch * args.processes}",
                    f"epochs={args.epochs}", "checkpoint.every_steps=0",
                    f"checkpoint.directory={folder}"):
        command += ["--set", setting if "." in setting.split("=")[0] else f"job.{setting}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    per_epoch = next(e["steps_per_epoch"] for e in events if e["event"] == "started")
    steps = {e["step"]: e["seconds"] for e in events if e["event"] == "step"}
    rates = []
    for epoch in range(1, args.epochs):  # the first warms up
        first, last = epoch * per_epoch, (epoch + 1) * per_epoch - 1
        rates.append((last - first) * args.batch * args.processes / (steps[last] - steps[first]))
    return statistics.median(rates)


def ddp_rate(args):
    command = [args.python, str(HERE / "peers/ddp_lenet.py"), "--processes", str(args.processes),
               "--threads", "1", "--batch", str(args.batch), "--json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])["images_per_second"]


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--troupe", default="build/release/tools/troupe")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256, help="samples of each process")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    compare = has_torch(args.python)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.runs):
            ours.append(troupe_rate(args, folder))
            if compare:
                theirs.append(ddp_rate(args))
    result = {"processes": args.processes, "batch": args.batch, "troupe": statistics.median(ours),
              "troupe_runs": ours, "ddp": statistics.median(theirs) if theirs else None,
              "ddp_runs": theirs}
    result["ratio"] = result["troupe"] / result["ddp"] if theirs else None
    if args.json:
        print(json.dumps(result))
        return
    print(f"LeNet-5, {args.processes} processes of one thread, batch {args.batch} each, images/s")
    print(f"{'':10} {'median':>10} {'min':>10} {'max':>10}")
    print(f"{'troupe':10} {result['troupe']:10.0f} {min(ours):10.0f} {max(ours):10.0f}")
    if theirs:
        print(f"{'DDP':10} {result['ddp']:10.0f} {min(theirs):10.0f} {max(theirs):10.0f}")
        print(f"ratio      {result['ratio']:10.2f}")
    else:
        print(f"DDP        not measured: {args.python} has no PyTorch (--python)")


if __name__ == "__main__":
    main()
