#!/usr/bin/env python3
"""Weights to and from PyTorch, with models of full size.

usage: tests/peers/pytorch_weights.py --predict build/dev/examples/predict/predict
       --troupe build/dev/tools/troupe [--only CASE ...]

For each model: PyTorch saves it with weights that are none of a fresh model, and Troupe's logits must
be PyTorch's; then Troupe trains it for a step from that file, PyTorch loads what it ended with
(strict=True), and the logits must be the same again. torchvision and transformers are the judges where
they are installed; without torchvision the models are bench/peers/torch_step.py's. What cannot be run is
said, and ends with status 77.
"""
import argparse
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
SKIPPED = 77
TOLERANCE = 1e-4
try:
    import torch
    from safetensors.torch import load_file, save_file
    from torch_models import resnet18, stir, vgg16
except ImportError as missing:
    print(f"pytorch_weights: SKIPPED, {sys.executable} has no {missing.name}; install torch and "
          "safetensors, or configure with -DTROUPE_PYTORCH=AN_INTERPRETER_THAT_HAS_THEM")
    sys.exit(SKIPPED)


def png(pixels, side):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + pixels[i * side * 3:(i + 1) * side * 3] for i in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def random_bytes(count):
    return torch.randint(0, 256, (count,), dtype=torch.uint8).numpy().tobytes()


class SmallImages:
    """ResNet-18 with the first layer for small images, trained on CIFAR's format."""
    job = """
[model]
name = "resnet18"
small_images = true
classes = 10
[data]
format = "cifar10"
directory = "data"
batch = 4
mean = [0.5, 0.4, 0.3]
std = [0.25, 0.3, 0.2]
"""

    def fresh(self):
        return resnet18(self.classes, self.small)

    def make(self):
        return stir(self.fresh(), (8, 3, 32, 32), batches=3, bias=0.2)

    def inputs(self):
        return torch.randn(4, 3, 32, 32)

    def data(self, folder):
        for name in ("data_batch_1.bin", "test_batch.bin"):
            (folder / name).write_bytes(b"".join(bytes([i]) + random_bytes(3072) for i in range(4)))

    def save(self, model, folder):
        save_file(model.state_dict(), folder / "torch.safetensors")

    def load(self, folder):
        model = self.fresh()
        model.load_state_dict(load_file(folder / "runs/final.safetensors"), strict=True)
        return model

    classes, small = 10, True

    def logits(self, model, inputs):
        return model(inputs)


class LargeImages(SmallImages):
    """ResNet-18 as torchvision has it, for 224 by 224 pixels, trained on a folder of images."""
    job = """
[model]
name = "resnet18"
classes = 1000
[data]
format = "images"
directory = "data"
train = "train"
test = "train"
image_size = 224
batch = 2
"""
    classes, small = 1000, False

    def make(self):
        return stir(self.fresh(), (4, 3, 224, 224), batches=3, bias=0.2)

    def inputs(self):
        return torch.randn(2, 3, 224, 224)

    def data(self, folder):
        for name in ("a", "b"):
            (folder / "train" / name).mkdir(parents=True)
            (folder / "train" / name / "1.png").write_bytes(png(random_bytes(64 * 64 * 3), 64))


class Vgg(SmallImages):
    """VGG-16 without batch norm and with an eighth of the channels."""
    job = SmallImages.job.replace("resnet18", "vgg16").replace("small_images = true", "width = 8")

    def fresh(self):
        return vgg16(10, normalized=False, width=8)

    def make(self):
        model = super().make()
        with torch.no_grad():
            for parameter in model.parameters():
                # As large as what comes before: its biases begin as zeros, and its logits small.
                parameter.mul_(1.5).add_(torch.randn_like(parameter) * (parameter.dim() == 1) * 0.2)
        return model


class NormalizedVgg(Vgg):
    """And with batch norm."""
    job = Vgg.job.replace("vgg16", "vgg16_bn")

    def fresh(self):
        return vgg16(10, normalized=True, width=8)


class Decoder:
    """transformers' GPT2LMHeadModel, saved by save_pretrained: with its prefix and without its head."""
    job = """
[model]
name = "gpt"
classes = 307
layers = 3
heads = 4
width = 48
[data]
format = "tokens"
directory = "data"
train = "tokens.bin"
test = "tokens.bin"
tokens = 32
batch = 2
[checkpoint]
final_layout = "gpt2"
"""

    def __init__(self):
        from transformers import GPT2Config, GPT2LMHeadModel
        self.kind = GPT2LMHeadModel
        self.config = GPT2Config(vocab_size=307, n_positions=32, n_embd=48, n_layer=3, n_head=4,
                                 bos_token_id=0, eos_token_id=0)

    def make(self):
        model = self.kind(self.config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
        return model

    def inputs(self):
        return torch.randint(0, 307, (3, 32))

    def data(self, folder):
        tokens = torch.randint(0, 307, (200,)).tolist()
        (folder / "tokens.bin").write_bytes(struct.pack("<200H", *tokens))

    def save(self, model, folder):
        model.save_pretrained(folder / "saved")
        shutil.move(folder / "saved/model.safetensors", folder / "torch.safetensors")

    def load(self, folder):
        model = self.kind(self.config)
        model.load_state_dict(load_file(folder / "runs/final.safetensors"), strict=True)
        (folder / "published").mkdir()
        self.config.save_pretrained(folder / "published")
        shutil.copy(folder / "runs/final.safetensors", folder / "published/model.safetensors")
        again = self.kind.from_pretrained(folder / "published")
        for a, b in zip(model.parameters(), again.parameters(), strict=True):
            assert torch.equal(a, b), "from_pretrained and load_state_dict differ"
        return model

    def logits(self, model, inputs):
        return model(inputs).logits


class LongDecoder(Decoder):
    """One of a longer context than the job's, whose first positions are taken."""

    def __init__(self):
        super().__init__()
        self.config.n_positions = 48

    def load(self, folder):
        self.config.n_positions = 32
        return super().load(folder)


class BareDecoder(Decoder):
    """The same as GPT2Model, whose names have no prefix, in half precision."""

    def make(self):
        model = super().make()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.half().float())
        return model

    def save(self, model, folder):
        save_file({key: value.half().contiguous()
                   for key, value in model.transformer.state_dict().items()},
                  folder / "torch.safetensors")


class LinearDecoder(Decoder):
    """The decoder of bench/peers/gpt.py: torch.nn.Linear, as most write it themselves."""
    job = Decoder.job.replace('final_layout = "gpt2"', "")

    def __init__(self):
        pass

    def make(self):
        from gpt import Gpt
        return Gpt(3, 4, 48, 32, 307)

    def save(self, model, folder):
        save_file(model.state_dict(), folder / "torch.safetensors")

    def load(self, folder):
        model = self.make()
        model.load_state_dict(load_file(folder / "runs/final.safetensors"), strict=True)
        return model

    def logits(self, model, inputs):
        return model(inputs)


CASES = {"resnet18-small": SmallImages, "resnet18-224": LargeImages, "vgg16": Vgg,
         "vgg16_bn": NormalizedVgg, "gpt2": Decoder, "gpt2-longer": LongDecoder,
         "gpt2-bare-f16": BareDecoder, "gpt-linear": LinearDecoder}


def run(*command):
    ran = subprocess.run([str(x) for x in command], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"pytorch_weights: {' '.join(map(str, command))} ended with {ran.returncode}\n"
                 f"{ran.stdout}{ran.stderr}")


def difference(args, folder, case, model, weights):
    """The greatest between Troupe's logits and PyTorch's, which are of about 1 in size."""
    inputs = case.inputs()
    save_file({"inputs": inputs}, folder / "inputs.safetensors")
    run(args.predict, folder / "job.toml", folder / "inputs.safetensors",
        folder / "logits.safetensors", *weights)
    ours = load_file(folder / "logits.safetensors")["logits"]
    with torch.no_grad():
        theirs = case.logits(model.eval(), inputs)
    assert ours.shape == theirs.shape, f"{ours.shape} and {theirs.shape}"
    return ((ours - theirs).abs().max() / max(1.0, theirs.abs().max().item())).item()


def check(name, args, folder):
    case = CASES[name]()
    (folder / "data").mkdir()
    case.data(folder / "data")
    model = case.make()
    case.save(model, folder)
    job = f'[job]\nname = "{name}"\nranks = 2\nepochs = 1\n' + case.job.replace(
        "[data]", f'weights = "torch.safetensors"\n[data]', 1)
    if "[checkpoint]" not in job:
        job += "[checkpoint]\n"
    (folder / "job.toml").write_text(job + f'directory = "{folder}/runs"\n')
    there = difference(args, folder, case, model, ("--weights", folder / "torch.safetensors"))
    run(args.troupe, "train", folder / "job.toml", "--nodes", 2)
    trained = case.load(folder)
    back = difference(args, folder, case, trained, ())
    moved = max((a - b).abs().max().item()
                for a, b in zip(model.parameters(), trained.parameters(), strict=True)
                if a.shape == b.shape)
    print(f"{name:16} PyTorch to Troupe {there:.1e}, and back {back:.1e} (weights moved {moved:.1e})",
          flush=True)
    return there < TOLERANCE and back < TOLERANCE and moved > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", type=pathlib.Path, required=True)
    parser.add_argument("--troupe", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    args = parser.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(2)
    wrong, skipped = [], []
    for name in args.only:
        with tempfile.TemporaryDirectory() as folder:
            try:
                if not check(name, args, pathlib.Path(folder)):
                    wrong.append(name)
            except ImportError as missing:
                print(f"{name:16} SKIPPED, no {missing.name}")
                skipped.append(name)
    if wrong:
        sys.exit(f"pytorch_weights: {', '.join(wrong)}: the logits differ by {TOLERANCE} or more, or "
                 "nothing was trained")
    sys.exit(SKIPPED if skipped else 0)


if __name__ == "__main__":
    main()
