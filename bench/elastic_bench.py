#!/usr/bin/env python3
"""Time from `kill -9` of one of four processes to the next finished step: Troupe against torchrun.

usage: bench/elastic_bench.py --data MNIST --python PYTHON [--kills N] [--nodes N] [--json]

Both train LeNet-5 on all 60,000 digits of MNIST with batch 128, and lose a process N times, at
random moments of the same steps. Two times are taken after each kill: to any step that was finished
without the victim (the same one again, for who has to redo some), and to one beyond the last that was
finished before the kill.

Troupe: a head, nodes and `troupe submit`; after each recovery a node joins in the victim's place. Its
final weights are compared with those of a run that nobody disturbed. A step counts when its line has
come out of `troupe submit`.

The peer: torchrun's own restart (`--max-restarts`) of peers/torchrun_elastic.py, which does what
PyTorch's tutorials say: rank 0 saves a snapshot to local disk, and all load it when they start
again. A step counts when the first worker has finished it. Its weights, too, are compared with those
of an undisturbed run. PyTorch is optional: --python names an interpreter that has it.

torchrun is measured as its documentation starts it, and with `--run-path --start-method fork`, where
workers are forked from torchrun, which has imported PyTorch already: much the faster way, where
nothing that was imported minds a fork. So that it is not set up to lose:
- a snapshot every 20 steps (--snapshot-steps);
- --monitor-interval 0.1: how often torchrun looks at its workers; its default, too;
- static rendezvous, which is as quick as it gets on one machine, and
  TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, without which workers that are started again are refused each
  other's connection, with PyTorch 2.15 and Gloo;
- Gloo's timeout is 10 s instead of 30 minutes; survivors see the closed connection long before;
- data is unpacked before, and mapped, not read; nothing is evaluated.
What is left is to end the survivors, start anew, connect, load the snapshot and redo steps.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
JOB = HERE.parent / "examples/mnist/lenet-full.toml"
STEPS_PER_EPOCH = 468
BATCH = 128


class Steps:
    """Finished steps of a running job, as they come in. Threads: one reports, one waits."""

    def __init__(self):
        self.changed = threading.Condition()
        self.last = self.before = -1  # the most advanced step, and at the latest kill
        self.changes = self.seen = 0  # how often the job went on after a change, and at that kill
        self.since = None  # when that was; then the first two times after it
        self.any = self.new = None
        self.ended = False
        self.sha256 = None

    def step(self, step, at):
        with self.changed:
            if self.since is not None and self.changes > self.seen:
                self.any = self.any or at
                if step > self.before:
                    self.new = self.new or at
            self.last = max(self.last, step)
            self.changed.notify_all()

    def note(self, **values):
        with self.changed:
            self.__dict__.update(values)
            self.changed.notify_all()

    def wait(self, condition, seconds=120):
        with self.changed:
            if not self.changed.wait_for(lambda: condition() or self.ended, seconds):
                sys.exit(f"elastic_bench: nothing happened for {seconds} s after step {self.last}")
        return not self.ended

    def kill(self, pid):
        """Kills and waits; milliseconds to any and to a new step."""
        with self.changed:
            self.any = self.new = None
            self.before, self.seen = self.last, self.changes
            self.since = time.monotonic()
            os.kill(pid, signal.SIGKILL)
        if not self.wait(lambda: self.new is not None):
            sys.exit("elastic_bench: the job ended before it had recovered")
        result = 1000 * (self.any - self.since), 1000 * (self.new - self.since)
        self.since = None
        return result


def moments(args):
    """For each kill the step after which it happens, and how long after: within a step or two."""
    generator = random.Random(args.seed)
    total = args.epochs * STEPS_PER_EPOCH
    return [(total * (i + 1) // (args.kills + 1), generator.uniform(0, 0.02), generator)
            for i in range(args.kills)]


class Cluster:
    """A head and nodes of Troupe on this machine."""

    def __init__(self, args):
        self.args, self.nodes = args, []
        self.head = subprocess.Popen([args.troupe, "head", "--listen", "127.0.0.1:0"],
                                     stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"listens at (\S+);", self.head.stdout.readline()).group(1)
        for _ in range(args.nodes):
            self.add()
        for _ in range(300):
            status = subprocess.run([args.troupe, "status", "--head", self.address],
                                    capture_output=True, text=True).stdout
            if status.count("127.0.0.1:") > args.nodes:
                return
            time.sleep(0.1)
        sys.exit(f"elastic_bench: of {args.nodes} nodes not all joined:\n{status}")

    def add(self):
        self.nodes.append(subprocess.Popen(
            [self.args.troupe, "node", "--head", self.address, "--quiet"]))

    def submit(self, folder):
        settings = [f"data.directory={self.args.data}", f"checkpoint.directory={folder}",
                    f"job.epochs={self.args.epochs}", "operation.log_every=1"]
        command = [self.args.troupe, "submit", str(JOB), "--head", self.address]
        for setting in settings:
            command += ["--set", setting]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.head.terminate()  # the nodes leave with it
        for process in [self.head, *self.nodes]:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def watch_troupe(output, steps, lines):
    """Reads what `troupe submit` prints: a step after "goes on" is one without the victim."""
    for line in output:
        at = time.monotonic()
        found = re.search(r" step (\d+)/", line)
        if found and line.startswith("epoch"):
            steps.step(int(found.group(1)) - 1, at)
        elif "goes on after" in line:
            steps.note(changes=steps.changes + 1)
        if not found:
            lines.append(line.strip())
    steps.note(ended=True)


def troupe_times(args, folder, disturb):
    """Times after each kill (empty if nobody disturbs), and the hash of the weights."""
    steps, lines, times = Steps(), [], []
    with Cluster(args) as cluster:
        job = cluster.submit(folder)
        reader = threading.Thread(target=watch_troupe, args=(job.stdout, steps, lines), daemon=True)
        reader.start()
        for step, pause, generator in moments(args) if disturb else []:
            if not steps.wait(lambda: steps.last >= step):
                break
            time.sleep(pause)
            victim = cluster.nodes.pop(generator.randrange(len(cluster.nodes)))
            times.append(steps.kill(victim.pid))
            victim.wait()
            changes = steps.changes
            cluster.add()
            steps.wait(lambda: steps.changes > changes)
        steps.wait(lambda: False, 600)
    reader.join()
    sha256 = [line.split()[1] for line in lines if line.startswith("sha256:")]
    if job.wait() != 0 or not sha256:
        sys.exit("elastic_bench: troupe submit failed:\n" + "\n".join(lines[-5:]))
    return times, sha256[0]


def watch_peer(fifo, steps, workers):
    """Reads what the workers report; `workers` maps a rank to its newest process."""
    for line in fifo:
        if line.startswith("weights"):
            steps.note(ended=True, sha256=line.split()[1])
            return
        at, pid, rank, count, step = map(int, line.split())
        workers[rank] = pid
        steps.note(changes=max(steps.changes, count))
        steps.step(step, at / 1e9)


def torchrun_times(args, folder, disturb, start=()):
    """The same of torchrun with the options `start`."""
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        if not (folder / name).exists():
            (folder / name).write_bytes(gzip.open(f"{args.data}/{name}.gz").read())
    events, snapshot = folder / "events", folder / "snapshot"
    snapshot.unlink(missing_ok=True)
    if not events.exists():
        os.mkfifo(events)
    fifo = os.fdopen(os.open(events, os.O_RDWR), "r")
    command = [args.python, "-m", "torch.distributed.run", "--nnodes=1",
               f"--nproc-per-node={args.nodes}", f"--max-restarts={args.kills + 3}",
               f"--monitor-interval={args.monitor_interval}", *start,
               str(HERE / "peers/torchrun_elastic.py"), f"--data={folder}",
               f"--events={events}", f"--snapshot={snapshot}",
               f"--steps={args.epochs * STEPS_PER_EPOCH}", f"--batch={BATCH}",
               f"--snapshot-steps={args.snapshot_steps}"]
    environment = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
                   "PYTHONPATH": str(HERE / "peers"), "OMP_NUM_THREADS": "1"}
    errors = open(folder / "errors", "w+")
    job = subprocess.Popen(command, env=environment, stderr=errors)
    steps, workers, times = Steps(), {}, []
    threading.Thread(target=watch_peer, args=(fifo, steps, workers), daemon=True).start()
    try:
        for step, pause, generator in moments(args) if disturb else []:
            if not steps.wait(lambda: steps.last >= step):
                break
            time.sleep(pause)
            times.append(steps.kill(workers[generator.randrange(args.nodes)]))
        steps.wait(lambda: False, 600)
    finally:
        if not steps.ended:
            job.terminate()
        if job.wait(60) != 0:
            errors.seek(0)
            sys.stderr.write(errors.read()[-2000:])
            sys.exit("elastic_bench: torchrun failed")
    return times, steps.sha256


def fork_times(args, folder, disturb):
    return torchrun_times(args, folder, disturb, ("--run-path", "--start-method=fork"))


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def summary(times):
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {"median": statistics.median(ordered), "p95": p95, "max": ordered[-1]}


def measure(name, run, args, folder):
    """Two runs, of which the first is left alone."""
    folder.mkdir()
    _, expected = run(args, folder, False)
    times, weights = run(args, folder, True)
    if len(times) != args.kills:
        sys.exit(f"elastic_bench: {name}: {len(times)} of {args.kills} kills; give more --epochs")
    return {"any_step": summary([t[0] for t in times]), "new_step": summary([t[1] for t in times]),
            "times": times, "same_weights": weights == expected}


ROWS = {"troupe": "Troupe", "torchrun": "torchrun", "torchrun_fork": "torchrun, fork"}


def show(result, args):
    print(f"kill -9 of one of {args.nodes} processes, {args.kills} times; "
          "ms until a step is finished without it")
    print(f"{'':15} {'':23} {'median':>8} {'p95':>8} {'max':>8} {'ratio':>8}   final weights")
    for name, title in ROWS.items():
        if name not in result:
            continue
        same = "as undisturbed" if result[name]["same_weights"] else "differ"
        for key, text in (("any_step", "any step"), ("new_step", "a step beyond the last")):
            row = result[name][key]
            print(f"{title:15} {text:23} {row['median']:8.0f} {row['p95']:8.0f} {row['max']:8.0f}"
                  f" {row['ratio']:8.1f}   {same}")
    if "torchrun" not in result:
        print(f"torchrun        not measured: {args.python} has no PyTorch (--python)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--troupe", default="build/release/tools/troupe")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of all of MNIST")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=4, help="processes, of both")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1, help="of victims and moments")
    parser.add_argument("--snapshot-steps", type=int, default=20, help="the peer's")
    parser.add_argument("--monitor-interval", type=float, default=0.1, help="the peer's, in seconds")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.data = args.data.resolve()

    result = {"nodes": args.nodes, "kills": args.kills, "load": os.getloadavg()[0]}
    runs = {"troupe": troupe_times}
    if has_torch(args.python):
        runs |= {"torchrun": torchrun_times, "torchrun_fork": fork_times}
    with tempfile.TemporaryDirectory() as folder:
        for name, run in runs.items():
            result[name] = measure(name, run, args, pathlib.Path(folder) / name)
            for key in ("any_step", "new_step"):
                result[name][key]["ratio"] = (result[name][key]["median"]
                                              / result["troupe"][key]["median"])
    if args.json:
        print(json.dumps(result))
    else:
        show(result, args)
    if not result["troupe"]["same_weights"]:
        sys.exit("elastic_bench: Troupe's weights differ from those of the undisturbed run")


if __name__ == "__main__":
    main()
