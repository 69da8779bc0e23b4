#!/usr/bin/env python3
"""What a job and `troupe status` notice of a head that is killed and started again.

usage: bench/head_loss.py --data MNIST [--troupe TROUPE] [--nodes N] [--runs N] [--away S] [--look S]
       [--batch N]

A head with a control store, nodes, and LeNet-5 on all of MNIST. In the middle of the job the head is
killed (SIGKILL), is away for S seconds (5), and starts again at the same address. Printed are, over
all runs:
- the steps, by their own time on the node that reports them: the median, and the longest as a multiple
  of it, from the kill until a second after the head's return, and in as long a time before the kill,
  when nothing happens: on a busy machine that has long steps too;
- the time from the head's start until `troupe status` lists all nodes and the job at a step that was
  done while the head was away;
- whether the weights are those of a run that nobody disturbed.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
JOB = HERE.parent / "examples/mnist/lenet-full.toml"


class Run:
    """A cluster and a job on it. Threads: one reads events, one acts."""

    def __init__(self, args, folder):
        self.args, self.folder, self.steps, self.end = args, folder, [], None
        self.address, self.processes = "127.0.0.1:0", []
        self.start_head()
        for i in range(args.nodes):
            self.processes.append(subprocess.Popen(
                [args.troupe, "node", "--head", self.address, "--name", f"node-{i}", "--quiet"]))
        while self.status().count("node-") < args.nodes:
            time.sleep(0.1)
        command = [args.troupe, "submit", str(JOB), "--head", self.address, "--json"]
        for setting in (f"data.directory={args.data}", f"checkpoint.directory={folder}",
                        f"job.epochs={args.epochs}", f"data.batch={args.batch}",
                        "checkpoint.every_steps=0"):
            command += ["--set", setting]
        self.job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def start_head(self):
        store = f"sqlite:{self.folder}/head.db"
        self.head = subprocess.Popen([self.args.troupe, "head", "--listen", self.address, "--store",
                                      store], stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"listens at (\S+);", self.head.stdout.readline()).group(1)

    def status(self):
        return subprocess.run([self.args.troupe, "status", "--head", self.address],
                              capture_output=True, text=True).stdout

    def read(self):
        for line in self.job.stdout:
            event = json.loads(line)
            if event["event"] == "step":
                self.steps.append(event)
            elif event["event"] == "ended":
                self.end = event

    def wait_for_step(self, step):
        while self.end is None and (not self.steps or self.steps[-1]["step"] < step):
            time.sleep(0.005)

    def finish(self):
        self.reader.join()
        self.head.terminate()
        for process in [self.head, *self.processes]:
            process.wait(20)
        if self.job.wait() != 0:
            sys.exit(f"head_loss: the job failed: {self.end}")
        return self.end["sha256"]


def undisturbed(args):
    with tempfile.TemporaryDirectory() as folder:
        return Run(args, folder).finish()


def one_run(args):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(args, folder)
        run.wait_for_step(args.before)
        known = run.steps[-1]["step"]
        run.head.kill()
        run.head.wait()
        time.sleep(args.away)
        started = time.monotonic()
        run.start_head()
        while True:
            table = run.status()
            found = re.search(r"running\s+(\d+)/", table)
            if table.count("node-") == args.nodes and found and int(found.group(1)) > known + 5:
                break
            # To look costs 40 ms of a core, which the steps then lack.
            time.sleep(args.look)
            if run.end is not None:
                sys.exit("head_loss: the job ended too soon; give it more --epochs")
        right = time.monotonic() - started
        sha256 = run.finish()
    took = {event["step"]: event["step_seconds"] for event in run.steps}
    after, window = [], 0.0
    for step in range(known + 1, max(took) + 1):
        if window > args.away + 1 or step not in took:
            continue
        after.append(took[step])
        window += took[step]
    before, window = [], 0.0
    for step in range(known, 20, -1):
        if window > args.away + 1 or step not in took:
            continue
        before.append(took[step])
        window += took[step]
    return {"median": statistics.median(after), "after": max(after) / statistics.median(after),
            "before": max(before) / statistics.median(before), "right": right, "sha256": sha256}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--troupe", default="build/release/tools/troupe")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of all of MNIST")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--away", type=float, default=5, help="seconds without a head")
    parser.add_argument("--look", type=float, default=0.1, help="seconds between two looks at status")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--before", type=int, default=120, help="the step after which it is killed")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.data = args.data.resolve()
    expected = undisturbed(args)
    runs = [one_run(args) for _ in range(args.runs)]
    same = all(run["sha256"] == expected for run in runs)
    if args.json:
        print(json.dumps({"runs": runs, "same": same, "load": os.getloadavg()[0]}))
        return
    print(f"{'step, ms':>10} {'longest/median':>16} {'before the kill':>17} {'status right, ms':>18}")
    for run in runs:
        print(f"{1e3 * run['median']:10.1f} {run['after']:16.2f} {run['before']:17.2f} "
              f"{1e3 * run['right']:18.0f}")
    print("weights:", "as undisturbed" if same else "DIFFERENT from undisturbed")


if __name__ == "__main__":
    main()
