"""Make the head of the bundled model from a checkpoint, and choose the share of the bridge.

    sureshot train recipes/bundled.toml --to runs/bundled
    python -m benchmarks.fit_head runs/bundled/model            # prints recalls for several shares
    python -m benchmarks.fit_head runs/bundled/model --keep 0.75 --write

A head trained on MSR-VTT knows little of other pictures; the bridge, which was not, keeps it from
forgetting them. How much of the bridge to keep is read off a head that was trained without Flickr8k
(`--set` the second training set away) on Flickr8k *val*, beside MSR-VTT *val*: the share with the
best sum of the six recalls. No test video and none of the 26 clips is read.
"""

import argparse
from importlib.resources import files
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from benchmarks import data
from sureshot.datasets import load_split
from sureshot.models.checkpoint import Checkpoint
from sureshot.models.encoders.bridge import BridgeEncoder
from sureshot.models.encoders.bundled import Head, join_frames, join_texts
from sureshot.models.mean_frames import cosine, mean_pool
from sureshot.research.features import SplitFeatures, extract
from sureshot.research.scores import recalls

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def main() -> None:
    """Convert, measure, and write with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--keep", type=float, help="share of the bridge; without it, several")
    parser.add_argument("--write", action="store_true", help="ship the head with this share")
    options = parser.parse_args()
    if options.write and options.keep is None:
        parser.error("--write needs the share to ship: --keep 0.75")
    head = converted(options.checkpoint)
    encoder = BridgeEncoder()
    msrvtt, flickr = data.folder("msrvtt"), data.folder("flickr8k")
    sets = {
        "MSR-VTT val": load_split("msrvtt", "val", msrvtt, ids=msrvtt / "split_val.txt"),
        "Flickr8k val": load_split("flickr8k", "val", flickr),
    }
    features = {name: extract(split, encoder) for name, split in sets.items()}
    for keep in SHARES if options.keep is None else (options.keep,):
        head["keep"] = np.array([keep], np.float32)
        shown = [f"{name} {measured(head, part)}" for name, part in features.items()]
        print(f"keep {keep:4}  " + "   ".join(shown))
    if options.write:
        path = Path(str(files("sureshot.models.encoders").joinpath("head.safetensors")))
        save_file({name: v.astype(np.float16) for name, v in head.items()}, path)
        print(f"wrote {path}")


def converted(folder: Path) -> Head:
    """The maps of a checkpoint's linear stem."""
    stem = Checkpoint.from_pretrained(folder).model.stem
    named = {"text": stem.sentence, "frame": stem.frame}
    return {
        f"{name}.{part}": getattr(layer, part).detach().numpy()
        for name, layer in named.items()
        for part in ("weight", "bias")
    }


def measured(head: Head, features: SplitFeatures) -> str:
    """Recalls of the vectors that would ship."""
    sentences = np.stack([sentence for sentence, _ in features.texts]).astype(np.float32)
    videos = []
    for video in features.videos:
        frames = join_frames(head, video.frames.astype("f4"), video.backbone.astype("f4"))
        videos.append(mean_pool(frames[None], np.ones((1, len(frames)), bool)))
    scores = cosine(join_texts(head, sentences), np.concatenate(videos))
    texts, _ = recalls(scores, features.split.owner())
    return f"{texts.r1:.1f} / {texts.r5:.1f} / {texts.r10:.1f}"


if __name__ == "__main__":
    main()
