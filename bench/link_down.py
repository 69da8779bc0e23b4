#!/usr/bin/env python3
"""Seconds from a host's link going down to the job's next finished step.

usage: bench/link_down.py --troupe build/release/tools/troupe [--runs N] [--own-end] [--json]

Four hosts are network namespaces on a bridge: a head and three nodes. A job runs on all three when
the link of one goes down, so no FIN or RST tells the others: heartbeats are missed, the head puts
the node out, and the survivors do the step in flight again. "placed" is when the job's actors stand
anew on the survivors, "stepped" when their first step is finished. The weights of every run must be
those of an undisturbed one. Wants root.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
JOB = HERE.parent / "examples/mnist/lenet.toml"
PORT = 7077


class Network:
    """Hosts 1, 2, ... as network namespaces on a bridge, which has one of its own."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.prefix = f"troupe-{os.getpid()}"
        self.switch = f"{self.prefix}-switch"

    def __enter__(self):
        try:
            self.ip("netns", "add", self.switch)
            self.ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
            self.ip("-n", self.switch, "link", "set", "bridge", "up")
            for host in range(1, self.hosts + 1):
                space = self.space(host)
                self.ip("netns", "add", space)
                self.ip("-n", self.switch, "link", "add", f"port{host}", "type", "veth",
                        "peer", "name", "eth0", "netns", space)
                self.ip("-n", self.switch, "link", "set", f"port{host}", "master", "bridge", "up")
                self.ip("-n", space, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
                self.ip("-n", space, "link", "set", "lo", "up")
                self.ip("-n", space, "link", "set", "eth0", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in [self.space(host) for host in range(1, self.hosts + 1)] + [self.switch]:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    def space(self, host):
        return f"{self.prefix}-{host}"

    @staticmethod
    def address(host):
        return f"10.77.0.{host}"

    def start(self, host, *command, **options):
        environment = dict(os.environ, TROUPE_TOKEN="secret")
        return subprocess.Popen(["ip", "netns", "exec", self.space(host), *command],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=environment, **options)

    def link_down(self, host, own_end):
        """Pulls the cable at the switch, or sets the host's own end down."""
        if own_end:
            self.ip("-n", self.space(host), "link", "set", "eth0", "down")
        else:
            self.ip("-n", self.switch, "link", "set", f"port{host}", "down")


def wait_for(process, pattern):
    """Reads lines until one matches."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        match = re.search(pattern, line)
        if match:
            return match
    sys.exit(f"'{pattern}' never came from {process.args[4:]}:\n{''.join(lines[-20:])}")


def undisturbed_sha256(args, folder):
    subprocess.run([args.troupe, "train", str(JOB), "--nodes", "1", "--set",
                    f"job.epochs={args.epochs}", "--set", f"checkpoint.directory={folder}"],
                   check=True, capture_output=True)
    return hashlib.sha256((pathlib.Path(folder) / "final.safetensors").read_bytes()).hexdigest()


def one_run(args, folder, sha256):
    """Of a cluster and a job of their own."""
    head_at = f"{Network.address(1)}:{PORT}"
    processes = []
    with Network(4) as network:
        try:
            processes.append(network.start(1, args.troupe, "head", "--listen", head_at,
                                           "--heartbeat-limit", str(args.limit)))
            wait_for(processes[0], "head listens")
            for host in (2, 3, 4):
                processes.append(network.start(host, args.troupe, "node", "--head", head_at,
                                               "--listen", f"{network.address(host)}:0",
                                               "--name", f"host-{host}"))
                wait_for(processes[-1], "joined")
            job = network.start(1, args.troupe, "submit", str(JOB), "--head", head_at, "--set",
                                f"job.epochs={args.epochs}", "--set", "operation.log_every=1",
                                "--set", f"checkpoint.directory={folder}")
            processes.append(job)
            wait_for(job, "epoch 2/.*step")
            down = time.monotonic()
            network.link_down(3, args.own_end)
            wait_for(job, "'host-3'.* was lost")
            placed = time.monotonic() - down
            wait_for(job, "epoch .* step ")
            stepped = time.monotonic() - down
            if wait_for(job, "sha256: ([0-9a-f]{64})")[1] != sha256:
                sys.exit("the weights differ from those of an undisturbed run")
            return placed, stepped
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGKILL)
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--troupe", default="build/release/tools/troupe")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--limit", type=float, default=1.0, help="--heartbeat-limit of the head")
    parser.add_argument("--own-end", action="store_true",
                        help="the host's own end goes down, not the switch's port")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("link_down.py: network namespaces want root")

    with tempfile.TemporaryDirectory() as folder:
        sha256 = undisturbed_sha256(args, folder)
        runs = [one_run(args, folder, sha256) for _ in range(args.runs)]
    result = {"runs": args.runs, "heartbeat_limit": args.limit}
    for at, name in enumerate(("placed", "stepped")):
        seconds = [run[at] for run in runs]
        result[name] = {"median": statistics.median(seconds), "min": min(seconds),
                        "max": max(seconds), "runs": seconds}
    if args.json:
        print(json.dumps(result))
        return
    print(f"one of three nodes cut off, limit {args.limit:g} s, {args.runs} runs: seconds until")
    print(f"{'':10} {'median':>8} {'min':>8} {'max':>8}")
    for name in ("placed", "stepped"):
        print(f"{name:10} {result[name]['median']:8.3f} {result[name]['min']:8.3f} "
              f"{result[name]['max']:8.3f}")


if __name__ == "__main__":
    main()
