#!/usr/bin/env python3
"""Writes layers.safetensors: what PyTorch gives for layers_from_pytorch_test.cpp.

usage: tests/kernels/reference/layers.py [FILE]

For each case NAME: "NAME/input", "NAME/parameter/..." by Troupe's names, "NAME/output",
"NAME/factors" (the gradient of the output), "NAME/gradient/..." by the same names and, unless the
input is token ids, "NAME/input_gradient". Computed in double and written as float, so that they are
right to the last bit or so. The file is checked in: run this again only to add a case.
"""
import json
import pathlib
import struct
import sys

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)
TENSORS = {}


def put(name, tensor):
    kind = torch.int32 if tensor.dtype in (torch.int32, torch.int64) else torch.float32
    TENSORS[name] = tensor.detach().to(kind).contiguous()


def rounded(tensor):
    """What float holds, so that both sides compute with the same numbers."""
    return tensor.float().double()


def case(name, parameters, function, inputs):
    """`parameters`: Troupe's name -> tensor, which `function(inputs, parameters)` uses."""
    parameters = {key: rounded(value).requires_grad_() for key, value in parameters.items()}
    if inputs.is_floating_point():
        inputs = rounded(inputs).requires_grad_()
    output = function(inputs, parameters)
    factors = rounded(torch.randn_like(output))
    (output * factors).sum().backward()
    put(f"{name}/input", inputs)
    put(f"{name}/output", output)
    put(f"{name}/factors", factors)
    for key, value in parameters.items():
        put(f"{name}/parameter/{key}", value)
        put(f"{name}/gradient/{key}", value.grad)
    if inputs.is_floating_point():
        put(f"{name}/input_gradient", inputs.grad)


def of(module, names=("weight", "bias")):
    return {f"l.{key}": torch.randn_like(dict(module.named_parameters())[key]) * 0.5
            for key in names}


def convolution(name, *size, shape, **options):
    module = nn.Conv2d(*size, **options)
    names = ("weight", "bias") if module.bias is not None else ("weight",)
    case(name, of(module, names),
         lambda x, p: functional.conv2d(x, p["l.weight"], p.get("l.bias"), module.stride,
                                        module.padding, module.dilation, module.groups),
         torch.randn(shape))


def attention(x, heads, kv_heads, causal):
    n, t, _ = x.shape
    dim = x.shape[2] // (heads + 2 * kv_heads)
    q, k, v = (part.view(n, t, -1, dim).transpose(1, 2)
               for part in x.split([heads * dim, kv_heads * dim, kv_heads * dim], dim=2))
    y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                enable_gqa=heads != kv_heads)
    return y.transpose(1, 2).reshape(n, t, heads * dim)


def gpt(ids, p, layers, heads):
    width = p["wte.weight"].shape[1]

    def norm(x, name):
        return functional.layer_norm(x, (width,), p[name + ".weight"], p[name + ".bias"])

    def linear(x, name):
        return functional.linear(x, p[name + ".weight"], p[name + ".bias"])

    x = functional.embedding(ids, p["wte.weight"]) + p["wpe.weight"]
    for i in range(layers):
        h = f"h.{i}"
        y = linear(norm(x, h + ".ln_1"), h + ".attn.c_attn")
        x = x + linear(attention(y, heads, heads, True), h + ".attn.c_proj")
        y = functional.gelu(linear(norm(x, h + ".ln_2"), h + ".mlp.c_fc"), approximate="tanh")
        x = x + linear(y, h + ".mlp.c_proj")
    return functional.linear(norm(x, "ln_f"), p["wte.weight"])


def gpt_parameters(layers, width, context, vocabulary):
    shapes = {"wte.weight": (vocabulary, width), "wpe.weight": (context, width)}
    for i in range(layers):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{norm}.weight": (width,), f"h.{i}.{norm}.bias": (width,)}
        for name, out, into in (("attn.c_attn", 3, 1), ("attn.c_proj", 1, 1), ("mlp.c_fc", 4, 1),
                                ("mlp.c_proj", 1, 4)):
            shapes |= {f"h.{i}.{name}.weight": (out * width, into * width),
                       f"h.{i}.{name}.bias": (out * width,)}
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    return {name: torch.randn(shape) * 0.3 for name, shape in shapes.items()}


def lstm(name, module, shape, part):
    """`part`: what of the output [batch, time, hidden] the layer gives."""
    def run(x, p):
        own = {key.removeprefix("l."): value for key, value in p.items()}
        return part(torch.func.functional_call(module, own, (x,))[0])

    case(name, of(module, [key for key, _ in module.named_parameters()]), run, torch.randn(shape))


def cases():
    convolution("convolution", 3, 5, 3, shape=(2, 3, 6, 7))
    convolution("convolution_stride", 3, 4, 3, stride=2, padding=1, shape=(2, 3, 7, 8))
    convolution("convolution_groups", 4, 6, 3, padding=1, groups=2, bias=False, shape=(2, 4, 5, 5))
    convolution("convolution_dilation", 2, 3, 3, padding=2, dilation=2, shape=(2, 2, 8, 7))
    channels = {"l.weight": torch.randn(6), "l.bias": torch.randn(6)}
    case("batch_norm", channels,
         lambda x, p: functional.batch_norm(x, None, None, p["l.weight"], p["l.bias"], True),
         torch.randn(3, 6, 4, 5))
    case("group_norm", channels,
         lambda x, p: functional.group_norm(x, 3, p["l.weight"], p["l.bias"]),
         torch.randn(2, 6, 3, 4))
    image = torch.randn(2, 3, 7, 6)
    case("max_pooling", {}, lambda x, p: functional.max_pool2d(x, 3, 2, 1), image)
    case("average_pooling", {}, lambda x, p: functional.avg_pool2d(x, 2, 2), image)
    case("global_average_pooling", {}, lambda x, p: functional.adaptive_avg_pool2d(x, 1), image)
    features = {"l.weight": torch.randn(20), "l.bias": torch.randn(20)}
    rows = torch.randn(2, 5, 20)
    case("layer_norm", features,
         lambda x, p: functional.layer_norm(x, (20,), p["l.weight"], p["l.bias"]), rows)
    case("rms_norm", {"l.weight": torch.randn(20)},
         lambda x, p: functional.rms_norm(x, (20,), p["l.weight"], 1e-6), rows)
    case("linear", of(nn.Linear(20, 7)),
         lambda x, p: functional.linear(x, p["l.weight"], p["l.bias"]), rows)
    wide = 3 * torch.randn(2, 40)
    case("relu", {}, lambda x, p: functional.relu(x), wide)
    case("gelu_tanh", {}, lambda x, p: functional.gelu(x, approximate="tanh"), wide)
    case("gelu_erf", {}, lambda x, p: functional.gelu(x), wide)
    case("silu", {}, lambda x, p: functional.silu(x), wide)
    case("sigmoid", {}, lambda x, p: torch.sigmoid(x), wide)
    case("tanh", {}, lambda x, p: torch.tanh(x), wide)
    ids = torch.randint(9, (3, 6))
    case("embedding", {"l.weight": torch.randn(9, 5)},
         lambda x, p: functional.embedding(x, p["l.weight"]), ids)
    case("attention", {}, lambda x, p: attention(x, 3, 3, False), torch.randn(2, 6, 36))
    case("attention_causal", {}, lambda x, p: attention(x, 2, 2, True), torch.randn(1, 70, 12))
    case("attention_grouped", {}, lambda x, p: attention(x, 4, 2, True), torch.randn(2, 6, 32))
    case("gpt", gpt_parameters(2, 16, 7, 23), lambda x, p: gpt(x, p, 2, 2),
         torch.randint(23, (2, 7)))
    image = torch.randn(2, 3, 7, 6)
    case("adaptive_average_pooling", {},
         lambda x, p: functional.adaptive_avg_pool2d(x, (3, 4)), image)
    case("adaptive_max_pooling", {},
         lambda x, p: functional.adaptive_max_pool2d(x, (3, 4)), image)
    lstm("lstm", nn.LSTM(5, 4, batch_first=True), (3, 6, 5), lambda y: y)
    lstm("lstm_of_two_layers", nn.LSTM(3, 4, num_layers=2, batch_first=True), (3, 5, 3),
         lambda y: y[:, -1])
    outputs = rounded(torch.randn(4, 3, 5)).requires_grad_()
    targets = rounded(torch.randn(4, 3, 5))
    loss = functional.mse_loss(outputs, targets)
    loss.backward()
    for name, value in (("outputs", outputs), ("targets", targets), ("loss", loss),
                        ("gradient", outputs.grad)):
        put(f"mean_squared_error/{name}", value)


def write(path):
    header, data = {}, b""
    for name in sorted(TENSORS):
        tensor = TENSORS[name]
        raw = tensor.numpy().tobytes()
        header[name] = {"dtype": "I32" if tensor.dtype == torch.int32 else "F32",
                        "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{path}: {path.stat().st_size} bytes, {len(TENSORS)} tensors")


if __name__ == "__main__":
    cases()
    write(pathlib.Path(sys.argv[1] if len(sys.argv) > 1
                       else pathlib.Path(__file__).with_name("layers.safetensors")))
