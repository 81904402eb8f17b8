"""Searching, listing, thumbnails and judging over HTTP."""

import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from sureshot.errors import QueryError, SureshotError
from sureshot.library import calibration, catalog, video_list
from sureshot.library.clips import like_frame, like_photo, still
from sureshot.library.judging import Judgements, current, judge_moments
from sureshot.library.labels import JudgedMoment
from sureshot.library.query_checks import clean
from sureshot.library.results import Answer
from sureshot.media.discover import is_folder
from sureshot.media.lines import Source
from sureshot.paths import video_id
from sureshot.text import plain
from sureshot.web.media import Id, has_it, stamp_of
from sureshot.web.schema import (
    AnswerReply,
    DescriptionsReply,
    Document,
    StatusReply,
    VideoReply,
    VideosReply,
    errors,
    field,
    replies,
)
from sureshot.web.session import Session, SessionOf, of_app, queued

_MOST = 300  # hits of one query on all pages; copies of more take seconds, and others wait

VideoId = Annotated[str, field("Id of an indexed video.", pattern=r"^[0-9a-f]{32}$")]
At = Annotated[float | None, field("Seconds into the video.", ge=0, le=1e7)]
Cursor = Annotated[
    str | None, field("`next` of the page before.", pattern=r"^[0-9]{1,3}-[0-9]{1,4}$")
]


@dataclass(frozen=True, slots=True)
class ChosenVideos:
    """Which videos of the index."""

    folder: Annotated[
        list[Annotated[str, Query(max_length=4096)]] | None,
        field(
            "Only videos at or below this path, or in folders of this name; of any where it is "
            "given several times.",
            max_length=100,
        ),
    ] = None
    longer: Annotated[float | None, field("Least seconds of a video.", ge=0, le=1e9)] = None
    shorter: Annotated[float | None, field("Most seconds of a video.", ge=0, le=1e9)] = None
    since: Annotated[str | None, field("Recorded on this day or later: 2024-05-31 or 2024.")] = None
    until: Annotated[str | None, field("Recorded on this day or before.")] = None

    def __post_init__(self) -> None:
        # As it is compared with those of videos, and never opened.
        given = [one for one in self.folder or () if one]
        try:
            folders = [os.fsdecode(one.encode("utf-8", "surrogateescape")) for one in given]
        except UnicodeEncodeError:
            folders = ["\0"]
        if any("\0" in one for one in folders):
            raise QueryError("The folder is not a path.")
        object.__setattr__(self, "folder", tuple(folders) or None)


@dataclass(frozen=True, slots=True)
class SearchOptions(ChosenVideos):
    """The options of every search."""

    limit: Annotated[int, field("Hits of a page.", ge=1, le=100)] = 10
    sort: Annotated[
        Literal["best", "date"], field("Hits of a page: the best first, or the newest video first.")
    ] = "best"
    per_video: Annotated[int | None, field("Hits per video at most.", ge=1, le=1000)] = None
    merge_copies: Annotated[bool, field("Show near-copies as one hit.")] = True


@dataclass(frozen=True, slots=True)
class SentenceOptions(SearchOptions):
    """The options of a search for a sentence."""

    coverage: Annotated[
        float, field("Target chance that the plausible hits contain a match.", gt=0, lt=1)
    ] = 0.9
    min: Annotated[float, field("Leave out hits that are less likely right.", ge=0, lt=1)] = 0.0
    correct: Annotated[
        bool, field("Replace misspelt words by the nearest that the model knows.")
    ] = True
    prior: Annotated[
        float | None, field("Share of searches that are for what is in the index.", gt=0, le=1)
    ] = None
    present: Annotated[bool, field("It is known to be in the index: count that in.")] = False


Options = Annotated[SearchOptions, Depends()]
router = APIRouter()


@router.get("/api/search", tags=["search"], responses=replies(AnswerReply, 400, 409))
@queued("searches")
def search(
    session: SessionOf,
    q: Annotated[str, field("What to look for, in a sentence.", max_length=100_000)],
    options: Annotated[SentenceOptions, Depends()],
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Moments that a sentence describes, best first."""
    find = partial(session.batcher.search, session.searcher(), q)
    return _page(session, find, options, cursor)


@router.get("/api/like", tags=["search"], responses=replies(AnswerReply, 400, 404, 409, 410))
@queued("files")
def like(
    session: SessionOf,
    video: VideoId,
    options: Options,
    at: At = None,
    frame: Annotated[bool, field("Only the frame at that time, not the moment around it.")] = False,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Moments that look like a video, like a moment of it, or like one frame of it."""
    searcher, path = session.searcher(), session.file(video).path
    find = partial(searcher.like, path, at=at)
    if frame:
        if at is None:
            raise QueryError("`frame` needs its time; give `at` in seconds.")
        find = partial(like_frame, searcher, path, at)
    return _page(session, find, options, cursor)


async def _body(request: Request) -> bytes:
    return await request.body()


@router.post(
    "/api/like",
    tags=["search"],
    responses=replies(AnswerReply, 400, 403, 409, 411, 413),
    openapi_extra={"requestBody": {"required": True, "content": {"image/*": {}}}},
)
@queued("searches")
def like_upload(
    session: SessionOf,
    data: Annotated[bytes, Depends(_body)],
    options: Options,
    cursor: Cursor = None,
    name: Annotated[str, field("What to call it.", max_length=255)] = "photo",
) -> dict[str, Any]:
    """Moments that look like a photo, whose bytes are the body of the request."""
    find = partial(like_photo, session.searcher(), data, plain(name))
    return _page(session, find, options, cursor)


def _page(
    session: Session, find: Callable[..., Answer], options: SearchOptions, cursor: str | None
) -> dict[str, Any]:
    # How far the list went that was looked at, and how many of it were shown.
    done, shown = (min(int(part), _MOST) for part in (cursor or "0-0").split("-"))
    limit = min(done + options.limit, _MOST)
    wanted = asdict(options) | {"limit": limit, "folder": session.among(options.folder)}
    answer = find(**wanted)
    has_more, values = len(answer) == limit and limit < _MOST, answer.to_dict()
    count = len(answer)
    if done:  # a longer list may have other moments of a video among its first ones
        seen = {(hit.path, hit.start) for hit in find(**wanted | {"limit": done})}
        new = [hit for hit in answer if (hit.path, hit.start) not in seen]
        ranks = sorted(hit.rank for hit in new)
        new = [replace(hit, rank=shown + 1 + ranks.index(hit.rank)) for hit in new]
        count = shown + len(new)
        # What is said is of the whole list.
        values["hits"] = replace(answer, hits=tuple(new)).to_dict()["hits"]
    return values | {"next": f"{limit}-{count}" if has_more else None}


@router.get(
    "/api/describe", tags=["search"], responses=replies(DescriptionsReply, 400, 404, 409, 410)
)
@queued("files")
def describe(
    session: SessionOf,
    video: VideoId,
    text: Annotated[
        list[Annotated[str, Query(max_length=10_000)]],
        field("Sentences to choose from.", min_length=1, max_length=100),
    ],
    at: At = None,
) -> dict[str, Any]:
    """Sentences ranked by how well they fit a video, or what it shows at one time."""
    searcher = session.searcher()
    return searcher.describe(session.file(video).path, text, at=at).to_dict()


# --- the index ------------------------------------------------------------------------------------


@router.get("/api/status", tags=["index"], responses=replies(StatusReply, 409))
@queued("searches")
def status(session: SessionOf) -> dict[str, Any]:
    """What the index holds, with which model, and what failed and why."""
    contents = session.status()
    return contents.to_dict() | {"summary": contents.summary}


@router.get("/api/videos", tags=["index"], responses=replies(VideosReply, 400, 409))
@queued("searches")
def videos(
    session: SessionOf,
    chosen: Annotated[ChosenVideos, Depends()],
    limit: Annotated[int, field("Videos of a page.", ge=1, le=500)] = 100,
    cursor: Annotated[str | None, field("`next` of the page before.", max_length=20_000)] = None,
    sort: Annotated[Literal["path", "date"], field("By path, or the newest first.")] = "path",
    failed: Annotated[bool, field("Also those that could not be indexed.")] = True,
) -> dict[str, Any]:
    """The videos of the index."""
    store = session.store()
    folder = session.among(chosen.folder)
    wanted = asdict(chosen) | {"folder": folder, "sort": sort, "failed": failed}
    page = video_list.videos(store, limit=limit, after=cursor, **wanted)
    return page.to_dict() | {"next": page.after}


@router.get("/api/videos/{name}", tags=["index"], responses=replies(VideoReply, 404, 409))
@queued("searches")
def video(session: SessionOf, name: Id) -> dict[str, Any]:
    """One video."""
    return video_list.video_values(session.video(name))


class SaidLine(BaseModel):
    """Words of a video, in seconds from its start."""

    start: float
    end: float
    text: str
    source: Source
    language: str


class LinesReply(Document):
    """What is said and written in a video, in the order of time."""

    lines: list[SaidLine]


@router.get("/api/lines/{name}", tags=["index"], responses=replies(LinesReply, 404, 409))
@queued("searches")
def lines(session: SessionOf, name: Id) -> LinesReply:
    """The words of a video that are indexed."""
    found = session.store().lines.of(session.video(name).path)
    return LinesReply(lines=[SaidLine(**line._asdict()) for line in found])


class RemovedReply(Document):
    """How many videos were removed."""

    removed: int


@router.delete("/api/videos/{name}", tags=["index"], responses=replies(RemovedReply, 403, 404, 409))
@queued("searches")
def remove(
    session: SessionOf,
    name: Id,
    exclude: Annotated[bool, field("Also leave it out of what is indexed later.")] = False,
) -> RemovedReply:
    """Remove a video from the index. Its file is not touched."""
    path = session.video(name).path
    removed = catalog.remove([path], db=session.store(), exclude=exclude, alone=True)
    session.forget_videos()
    return RemovedReply(removed=removed)


@router.head("/api/thumbnail/{name}", include_in_schema=False)
@router.get(
    "/api/thumbnail/{name}",
    tags=["index"],
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}}, **errors(404, 409, 410)},
)
async def thumbnail(
    request: Request,
    session: SessionOf,
    name: Id,
    at: Annotated[float, field("Seconds into the video.", ge=0, le=1e7)] = 0.0,
    side: Annotated[int, field("Shorter side in pixels.", ge=16, le=720)] = 180,
) -> Response:
    """What a video shows at one time, as a JPEG."""

    def draw() -> tuple[bytes | None, str]:
        path = session.file(name).path
        stamp = "" if is_folder(path) else stamp_of(path)  # a frame may change, its folder does not
        tag = f'"{stamp}"'
        if stamp and has_it(request, tag):
            return None, tag
        return still(path, at, side=side, rate=session.store().settings.frame_rate), tag

    data, tag = await session.pictures.run(request, draw)
    # A browser asks each time, as another file may be there by then; nothing is decoded for that.
    headers = {"Cache-Control": "private, no-cache", "ETag": tag}
    if data is None:
        return Response(None, 304, headers)
    return Response(data, headers=headers, media_type="image/jpeg")


# --- judging --------------------------------------------------------------------------------------


class JudgedMomentValues(BaseModel):
    """A moment that somebody judged."""

    id: str
    start: float
    end: float
    right: bool


class JudgedReply(Document):
    """What was judged: in all, and of one query."""

    judged: int
    text: str
    learning: bool
    state: str
    moments: list[JudgedMomentValues]


class LearnedReply(Document):
    """What percentages are learned from."""

    learned_from: str
    forgotten: bool | None = None


class ShownMoment(BaseModel):
    """A hit as the answer gave it."""

    video: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    start: Annotated[float, Field(ge=0, le=1e7)]
    end: Annotated[float, Field(ge=0, le=1e7)]
    source: Literal["frames"] | Source = "frames"


class Judgement(BaseModel):
    """Whether hits of a query are right or wrong, no video shows it, or that is taken back."""

    query: str = Field(max_length=100_000)
    verdict: Literal["right", "wrong", "absent", "unjudged"]
    moments: list[ShownMoment] = Field(min_length=1, max_length=1000)


class Learner:
    """Calibrates from judgements in the background, once more if some came meanwhile."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._is_asked = self._is_forgotten = False
        self.is_learning = False  # whether percentages are about to change
        self.text = ""  # what was learned last, or why nothing was

    def learn(self) -> None:
        """Learn from all judgements of the index."""
        with self._lock:
            self._is_asked = True
            if self.is_learning:
                return
            self.is_learning = True
        threading.Thread(target=self._run, daemon=True).start()

    def forget(self) -> bool:
        """Forget what was learned, and what is being learned now; whether there was a card."""
        with self._lock:
            self._is_asked, self._is_forgotten, self.text = False, True, ""
            return calibration.forget(self._session.searcher())

    def _run(self) -> None:
        while True:
            with self._lock:
                self.is_learning, self._is_asked = self._is_asked, False
                self._is_forgotten = False
                if not self.is_learning:
                    return
            try:
                searcher = self._session.searcher()
                done = calibration.calibrate(db=searcher, save=False)
                with self._lock:
                    if not self._is_forgotten:
                        done = done.saved(calibration.card_of_index(searcher))
                        searcher.refresh_card()
                        self.text = repr(done).splitlines()[1] if done.card.personal else repr(done)
            except SureshotError as error:
                self.text = str(error)
            except BaseException:
                self.is_learning = False
                raise


LearnerOf = Annotated[Learner, of_app("learner")]


@router.get("/api/judge", tags=["judging"], responses=replies(JudgedReply, 400, 409))
@queued("searches")
def judged(
    session: SessionOf,
    learner: LearnerOf,
    query: Annotated[str, field("A query.", max_length=100_000)] = "",
) -> JudgedReply:
    """What was judged so far, of a query and in all."""
    return _judged(session, learner, query)


@router.post(
    "/api/judge", tags=["judging"], responses=replies(JudgedReply, 400, 403, 404, 409, 411)
)
@queued("searches")
def judge(session: SessionOf, learner: LearnerOf, body: Judgement) -> JudgedReply:
    """Judge hits of a query; from five judged searches on, percentages are learned from them."""
    if any(moment.start >= moment.end for moment in body.moments):
        raise QueryError("A moment must end after it starts.")
    moments = [
        JudgedMoment(
            video=session.video(moment.video).path,
            start=moment.start,
            end=moment.end,
            right=None if body.verdict == "unjudged" else body.verdict == "right",
            source=moment.source,
        )
        for moment in body.moments
    ]
    searcher = session.searcher()
    kept = judge_moments(searcher, body.query, moments, absent=body.verdict == "absent")
    if kept.is_enough:
        learner.learn()
    else:
        learner.text = ""
    return _judged(session, learner, body.query)


def _judged(session: Session, learner: Learner, query: str = "") -> JudgedReply:
    kept = Judgements.of_index(session.store())
    label = kept.of(clean(query)) if query else None
    if label is not None:
        (label,) = current([label], session.store())
    return JudgedReply(
        judged=len(kept),
        text=f"{kept.summary} {learner.text}".strip() if len(kept) else "",
        learning=learner.is_learning,
        state="" if label is None else label.state,
        moments=[
            JudgedMomentValues(id=video_id(m.video), start=m.start, end=m.end, right=bool(m.right))
            for m in (() if label is None else label.moments)
            if m.is_timed and session.shows(video_id(m.video))
        ],
    )


@router.get("/api/calibration", tags=["judging"], responses=replies(LearnedReply, 409))
@queued("searches")
def learned(session: SessionOf) -> LearnedReply:
    """What percentages are learned from."""
    return LearnedReply(learned_from=session.searcher().learned_from())


@router.post("/api/calibration", tags=["judging"], responses=replies(JudgedReply, 403, 409))
@queued("searches")
def learn(session: SessionOf, learner: LearnerOf) -> JudgedReply:
    """Learn from what was judged, now."""
    learner.learn()
    return _judged(session, learner)


@router.delete("/api/calibration", tags=["judging"], responses=replies(LearnedReply, 403, 409))
@queued("searches")
def forget(session: SessionOf, learner: LearnerOf) -> LearnedReply:
    """Forget what was learned from your judgements, and go back to the model's calibration."""
    forgotten = learner.forget()
    return LearnedReply(learned_from=session.searcher().learned_from(), forgotten=forgotten)
