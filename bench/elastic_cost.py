#!/usr/bin/env python3
"""What elasticity costs a job to which nothing happens: LeNet-5 on four nodes.

usage: bench/elastic_cost.py --data MNIST [--troupe TROUPE] [--nodes N] [--runs N] [--json]

There is no switch for it, and little to switch: a step sends no message for elasticity but the
generation in the envelope. What runs beside it are heartbeats. So two things are measured:
- The processor time of each kind of thread in the head and the nodes, by the kernel's count, while
  steps are done: "troupe.life" is heartbeats, and the rest of membership's decisions.
- The median step with heartbeats as they are and with none to speak of, in turn. For this the command
  needs --heartbeat-period; where it has none, that is said, and what is compared in turn is the
  default limit with one of 600 s, which only shows how far equal runs differ.
Checkpoints are off.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
JOB = HERE.parent / "examples/mnist/lenet-full.toml"
SKIPPED = 100  # steps that warm up


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def thread_times(pids):
    """Nanoseconds on a processor by thread name; those of CAF and the main thread are "others"."""
    times = collections.Counter()
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            name = (task / "comm").read_text().strip().removesuffix(".2")
            spent = int((task / "schedstat").read_text().split()[0])
            times[name if name.startswith("troupe.") else "others"] += spent
    return times


def run(args, folder, options):
    """Median step in ms, and processor time by thread, in seconds and as a share of one core."""
    command = [args.troupe, "train", str(JOB), "--nodes", str(args.nodes), "--json", *options]
    for setting in (f"data.directory={args.data}", f"checkpoint.directory={folder}",
                    "checkpoint.every_steps=0", "job.epochs=1"):
        command += ["--set", setting]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    steps, before, after = [], None, None
    for line in job.stdout:
        event = json.loads(line)
        if event["event"] != "step":
            continue
        steps.append(event["seconds"])
        if event["step"] == SKIPPED:
            pids = [job.pid, *children(job.pid)]
            before, began = thread_times(pids), time.monotonic()
        elif event["step"] == 460:
            after, took = thread_times(pids), time.monotonic() - began
    if job.wait() != 0 or after is None:
        sys.exit(f"elastic_cost: {' '.join(command)} failed")
    gaps = [1000 * (b - a) for a, b in zip(steps[SKIPPED:], steps[SKIPPED + 1:])]
    spent = {name: (after[name] - before[name]) / 1e9 for name in after}
    return {"step": statistics.median(gaps), "mean": statistics.mean(gaps), "seconds": took,
            "threads": spent}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--troupe", default="build/release/tools/troupe")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of all of MNIST")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--runs", type=int, default=7, help="pairs")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.data = args.data.resolve()

    usage = subprocess.run([args.troupe, "train", "--help"], capture_output=True, text=True,
                           check=True).stdout
    switch = "--heartbeat-period" in usage
    off = ["--heartbeat-limit", "600"] + (["--heartbeat-period", "60"] if switch else [])
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(args.runs):
            order = ([], off) if i % 2 == 0 else (off, [])  # neither is always the first
            results = [run(args, folder, options) for options in order]
            pairs.append(results if i % 2 == 0 else results[::-1])
    default = [pair[0] for pair in pairs]
    other = [pair[1] for pair in pairs]
    ratios = [a["step"] / b["step"] for a, b in pairs]
    names = sorted({name for r in default for name in r["threads"]})
    share = {name: statistics.median(r["threads"].get(name, 0) / sum(r["threads"].values())
                                     for r in default) for name in names}
    core = {name: statistics.median(r["threads"].get(name, 0) / r["seconds"] for r in default)
            for name in names}
    result = {"nodes": args.nodes, "heartbeats_off": switch, "load": os.getloadavg()[0],
              "default_ms": [r["step"] for r in default], "other_ms": [r["step"] for r in other],
              "ratio": statistics.median(ratios), "ratios": ratios, "share": share, "core": core}
    if args.json:
        print(json.dumps(result))
        return
    print(f"LeNet-5, {args.nodes} nodes, nothing happens; processor time while steps are done")
    print(f"{'thread':16} {'of all':>9} {'of a core':>10}")
    for name in sorted(names, key=lambda n: -share[n]):
        print(f"{name:16} {100 * share[name]:8.2f}% {100 * core[name]:9.2f}%")
    print(f"\n{'median step, ms':24} {'median':>8} {'min':>8} {'max':>8}   of {args.runs} runs")
    titles = ("heartbeats at default", "heartbeats off" if switch else "limit of 600 s")
    for title, runs in zip(titles, (result["default_ms"], result["other_ms"])):
        print(f"{title:24} {statistics.median(runs):8.3f} {min(runs):8.3f} {max(runs):8.3f}")
    print(f"{'ratio of each pair':24} {result['ratio']:8.3f} {min(ratios):8.3f} {max(ratios):8.3f}")
    if not switch:
        print(f"heartbeats were not switched off: {args.troupe} has no --heartbeat-period")


if __name__ == "__main__":
    main()
