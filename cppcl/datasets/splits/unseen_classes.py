"""Test classes of zero-shot publications, by name: what training must never see."""

from __future__ import annotations

UNSEEN_CLASSES: dict[str, tuple[str, ...]] = {
    "sketchy-ext-25": (
        *("airplane", "bell", "butterfly", "camel", "chicken", "cup", "deer", "harp", "horse"),
        *("parrot", "pineapple", "ray", "rifle", "scissors", "snail", "squirrel", "swan", "tank"),
        *("teddy bear", "tree", "umbrella", "volcano", "wheelchair", "windmill", "wine bottle"),
    ),
    "sketchy-ext-21": (
        *("bat", "cabin", "cow", "dolphin", "door", "giraffe", "helicopter", "mouse", "pear"),
        *("raccoon", "rhinoceros", "saw", "scissors", "seagull", "skyscraper", "songbird"),
        *("sword", "tree", "wheelchair", "windmill", "window"),
    ),
    "tuberlin-ext-30": (
        *("ant", "banana", "bottle opener", "brain", "bread", "bridge", "bus", "canoe", "fan"),
        *("frying-pan", "horse", "hot air balloon", "laptop", "lighter", "parachute", "penguin"),
        *("pizza", "rollerblades", "shoe", "snowboard", "space shuttle", "streetlight"),
        *("suitcase", "t-shirt", "table", "teacup", "telephone", "tractor", "trombone"),
        "windmill",
    ),
    "quickdraw-ext-30": (
        *("banana", "bat", "beach", "bread", "cactus", "cake", "campfire", "cow", "dolphin"),
        *("door", "fan", "feather", "fire hydrant", "frog", "giraffe", "hamburger", "helicopter"),
        *("megaphone", "mouse", "palm tree", "raccoon", "rhinoceros", "saw", "scissors", "shark"),
        *("skyscraper", "tiger", "tree", "windmill", "zebra"),
    ),
}
"""Names as the data sets label their samples: with spaces.

Sources: Y. Shen et al., Zero-Shot Sketch-Image Hashing, CVPR 2018 (25 classes of Sketchy);
S. K. Yelamarthi et al., A Zero-Shot Framework for Sketch Based Image Retrieval, ECCV 2018 (21 that
are not in ImageNet); one draw of 30 of TU-Berlin, of several that publications use; S. Dey et al.,
Doodle to Search, CVPR 2019 (30 of QuickDraw).
"""
