"""PyTorch's models for the tests that compare Troupe with it, as torchvision's where that is installed,
else those of bench/peers, which have the same names and shapes."""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))


def resnet18(classes, small, width=64):
    """With `small` the first layer is that for small images; torchvision has only the width 64."""
    if width == 64:
        try:
            from torchvision.models import resnet18 as make
            model = make(num_classes=classes)
            if small:
                model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
                model.maxpool = torch.nn.Identity()
            return model
        except ImportError:
            pass
    from torch_step import ResNet
    return ResNet((2, 2, 2, 2), False, channels=3, classes=classes, small=small, width=width)


def vgg16(classes, normalized, width):
    """torchvision's with fewer channels, and as many times fewer hidden features."""
    try:
        from torchvision.models.vgg import VGG, cfgs, make_layers
    except ImportError:
        from torch_step import Vgg
        return Vgg(normalized, 3, classes, width)
    narrow = [x if x == "M" else x * width // 64 for x in cfgs["D"]]
    model = VGG(make_layers(narrow, batch_norm=normalized), num_classes=classes)
    for i, layer in enumerate(model.classifier):
        if isinstance(layer, torch.nn.Linear):
            taken = 8 * width * 49 if i == 0 else 64 * width
            given = classes if i == 6 else 64 * width
            model.classifier[i] = torch.nn.Linear(taken, given)
    return model


def stir(model, shape, batches, bias):
    """Makes each scale, bias (up to `bias`) and statistic one that matters."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-bias, bias)
        model.train()
        for _ in range(batches):
            model(torch.randn(shape) * 1.5 + 0.3)
    return model
