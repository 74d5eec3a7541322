"""Encoders of timm and open_clip that are small enough for tests, with random weights."""

import json
from functools import cache
from pathlib import Path

import torch

TIMM = "test_vit"
CLIP = "tiny-clip"


@cache
def register_clip(folder: Path) -> None:
    """Make open_clip know a model of 32 pixels, two layers and codes of 24 values."""
    import open_clip

    text = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    vision = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8}
    config = folder / f"{CLIP}.json"
    config.write_text(json.dumps({"embed_dim": 24, "vision_cfg": vision, "text_cfg": text}))
    open_clip.add_model_config(config)


def timm_model(**options):
    """The package's own model, of which everything is random, so that nothing is 0 or 1."""
    import timm

    return _random(lambda: timm.create_model(TIMM, pretrained=False, **options))


def clip_model(folder: Path):
    """The package's own model, image and text tower."""
    import open_clip

    register_clip(folder)
    return _random(lambda: open_clip.create_model(CLIP, load_weights=False, pretrained_text=False))


def _random(make):
    """The same weights, whichever tests ran before."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = make()
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model.eval()


def saved(model, path: Path) -> str:
    """Path of a file of its weights."""
    torch.save(model.state_dict(), path)
    return str(path)
