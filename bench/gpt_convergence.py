#!/usr/bin/env python3
"""Whether a decoder learns in Troupe as it does in PyTorch: the validation loss after each epoch.

usage: bench/gpt_convergence.py --python PYTHON [--troupe build/release/tools/troupe] [--nodes N]
       [--job examples/gpt/gpt.toml] [--set KEY=VALUE ...] [--most PERCENT] [--json]

Both train the job's model from the same initial weights (model.weights) on the same samples in the same
order, with the same AdamW, schedule, clipping, batch and number of steps, in f32. Prints both losses
after each epoch, and fails if the last ones differ by more than --most percent (default 1). PYTHON is an
interpreter with torch and safetensors. The times are of one run each, one after the other: they tell
how long this takes, and are no benchmark.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
PEER = HERE / "peers/gpt_train.py"


def effective(args, settings):
    """The whole job as the command reads it, with every default."""
    text = subprocess.run([args.troupe, "train", args.job, "--print-config", *settings], check=True,
                          capture_output=True, text=True).stdout
    return tomllib.loads(text)


def require(job):
    """What the peer does not do is said here, not found in a difference."""
    for key, wanted in (("model.name", "gpt"), ("data.format", "text"), ("optimizer.name", "adamw"),
                        ("optimizer.schedule.kind", "cosine"), ("model.dropout", 0.0),
                        ("model.classes", 256), ("optimizer.decay_vectors", True),
                        ("optimizer.beta1", 0.9), ("optimizer.epsilon", 1e-8)):
        value = job
        for part in key.split("."):
            value = value[part]
        if value != wanted:
            sys.exit(f"gpt_convergence: {key} is {value}, but the peer needs {wanted}")


def peer_options(job):
    model, data, optimizer = job["model"], job["data"], job["optimizer"]
    size = {"layers": model["layers"], "heads": model["heads"], "width": model["width"],
            "context": data["tokens"]}
    rest = {"train": data["train"], "test": data["test"], "batch": data["batch"],
            "epochs": job["job"]["epochs"], "seed": job["job"]["seed"], "lr": optimizer["lr"],
            "weight-decay": optimizer["weight_decay"], "beta2": optimizer["beta2"],
            "clip-norm": optimizer["clip_norm"],
            "warmup-steps": optimizer["schedule"]["warmup_steps"],
            "final-lr": optimizer["schedule"]["final_lr"]}
    options = lambda x: [word for key, value in x.items() for word in (f"--{key}", str(value))]
    return options(size), options(rest)


def lines(command, what):
    """The objects that a program prints, one a line."""
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"gpt_convergence: {what} ended with {ran.returncode}: {ran.stderr or ran.stdout}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def run(args, folder):
    given = [word for setting in args.set for word in ("--set", setting)]
    job = effective(args, given)
    require(job)
    size, rest = peer_options(job)
    initial = folder / "initial.safetensors"
    subprocess.run([args.python, "-B", PEER, "--save-initial", initial, *size], check=True)
    for setting in (f"model.weights={initial}", f"checkpoint.directory={folder}/runs",
                    "checkpoint.every_steps=0"):
        given += ["--set", setting]
    ours = lines([args.troupe, "train", args.job, "--nodes", str(args.nodes), "--json", *given],
                 "troupe")
    theirs = lines([args.python, "-B", PEER, "--initial", initial, "--threads", str(args.threads),
                    *size, *rest], "PyTorch")
    epochs = [x for x in ours if x["event"] == "epoch"]
    rows = [{"epoch": a["epoch"] + 1, "troupe": a["test_loss"], "pytorch": b["test_loss"],
             "difference": a["test_loss"] / b["test_loss"] - 1, "troupe_seconds": a["seconds"],
             "pytorch_seconds": b["seconds"]} for a, b in zip(epochs, theirs, strict=True)]
    started = next(x for x in ours if x["event"] == "started")
    return {"parameters": started["parameters"],
            "steps": started["steps_per_epoch"] * started["epochs"], "epochs": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--troupe", default="build/release/tools/troupe")
    parser.add_argument("--job", default=str(HERE.parent / "examples/gpt/gpt.toml"))
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2, help="PyTorch's")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--most", type=float, default=1.0, help="percent that the losses may differ")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if subprocess.run([args.python, "-c", "import torch, safetensors"],
                      capture_output=True).returncode != 0:
        print(f"gpt_convergence: NOT MEASURED, {args.python} has no torch and safetensors (--python)",
              file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        result = run(args, pathlib.Path(folder))
    if args.json:
        print(json.dumps(result))
    else:
        print(f"{result['parameters']} parameters, {result['steps']} steps; validation loss in nats "
              "a byte")
        print(f"{'epoch':>5} {'Troupe':>9} {'PyTorch':>9} {'difference':>11} {'Troupe s':>9} "
              f"{'PyTorch s':>9}")
        for row in result["epochs"]:
            print(f"{row['epoch']:5} {row['troupe']:9.4f} {row['pytorch']:9.4f} "
                  f"{100 * row['difference']:10.3f}% {row['troupe_seconds']:9.0f} "
                  f"{row['pytorch_seconds']:9.0f}")
    last = abs(result["epochs"][-1]["difference"])
    if not last <= args.most / 100:
        sys.exit(f"gpt_convergence: the losses differ by {100 * last:.2f}%, more than {args.most}%")


if __name__ == "__main__":
    main()
