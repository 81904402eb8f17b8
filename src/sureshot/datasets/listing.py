"""What an annotation says about a split, before any video is looked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sureshot.datasets import media
from sureshot.datasets.annotation import read_lines
from sureshot.datasets.split import Caption, Item, Split
from sureshot.errors import SureshotError


@dataclass(frozen=True, slots=True)
class Listing:
    """Ids and captions of a split.

    Attributes:
        protocol: name of the reading, as the title of the split shows it.
        captions: texts of each id, in the order of the split; none where the annotation has none.
        expected: number of videos the published split has.
        names: other spellings of an id, as a file name and in a list of ids.
        span: seconds of each video that count, where not all of it does.
        photos: the videos are pictures.
    """

    protocol: str
    captions: dict[str, list[str]]
    expected: int | None = None
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    span: tuple[float, float] | None = None
    photos: bool = False

    def only(self, path: Path) -> "Listing":
        """The videos that a file of ids names, one a line, in the order they have here.

        Raises:
            SureshotError: the file is empty, or names a video that is not in this split.
        """
        spelled = {other: name for name, others in self.names.items() for other in others}
        spelled |= {name: name for name in self.captions}
        wanted = read_lines(path)
        unknown = [name for name in wanted if name not in spelled]
        if unknown:
            raise SureshotError(
                f"{path} names {len(unknown)} of {len(wanted)} videos that are not in this split, "
                f"the first {unknown[0]}; it must name videos of the split asked for."
            )
        if not wanted:
            raise SureshotError(f"{path} is empty; it must name one video a line.")
        kept = {spelled[name] for name in wanted}
        return replace(self, captions={k: v for k, v in self.captions.items() if k in kept})


def to_split(
    listing: Listing, dataset: str, name: str, folders: Sequence[Path], label: str | None = None
) -> Split:
    """The split of a listing, its videos found on disk.

    Args:
        listing: what is wanted.
        dataset: name of the data set.
        name: ``train``, ``val`` or ``test``.
        folders: where its videos may lie; the first that has any is taken.
        label: name for results, in place of the protocol's.

    Raises:
        SureshotError: nothing is listed, no video was found at all, or none found has a caption.
    """
    if not listing.captions:
        raise SureshotError(f"The annotation of {dataset} {name} lists no video; is it complete?")
    names = {one: listing.names.get(one, ()) for one in listing.captions}
    paths = media.find_videos(folders, names, photos=listing.photos)
    start, end = listing.span or (None, None)
    items: list[Item] = []
    captions: list[Caption] = []
    missing: list[str] = []
    dropped = 0
    for one, texts in listing.captions.items():
        kept = [text.strip() for text in texts if text.strip()]
        if one in paths:
            dropped += len(texts) - len(kept)
        if one not in paths or not kept:
            missing.append(one)
            continue
        captions += [Caption(text, len(items)) for text in kept]
        items.append(Item(id=one, path=paths[one], start=start, end=end))
    if not items:
        raise SureshotError(
            f"None of the {len(paths)} videos found for {dataset} {name} has a caption; the "
            "annotation and the videos are of different splits."
        )
    return Split(
        dataset=dataset,
        name=name,
        protocol=listing.protocol,
        items=tuple(items),
        captions=tuple(captions),
        missing=tuple(missing),
        expected=listing.expected,
        dropped=dropped,
        label=label,
    )
