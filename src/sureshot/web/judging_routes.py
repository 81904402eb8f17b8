"""Judging over HTTP: one click on a hit, and percentages that follow."""

import threading
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from sureshot.errors import QueryError, SureshotError
from sureshot.library.calibration import calibrate
from sureshot.library.judging import Judgements, judge_moments
from sureshot.library.label_paths import labels_of_index
from sureshot.library.labels import JudgedMoment
from sureshot.places import video_id
from sureshot.text import clean
from sureshot.trust.own import JUDGED
from sureshot.web.desk import Desk
from sureshot.web.replies import json_reply
from sureshot.web.schema import JudgedReply, errors

_Id = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_Second = Annotated[float, Field(ge=0, le=1e7)]


class ShownMoment(BaseModel):
    """A hit as the answer gave it."""

    video: _Id
    start: _Second
    end: _Second


class Click(BaseModel):
    """What somebody says of hits of a query: that they are right, wrong, or that none is here."""

    query: str = Field(max_length=100_000)
    verdict: Literal["right", "wrong", "absent"]
    moments: list[ShownMoment] = Field(min_length=1, max_length=1000)


class Learner:
    """Learns from judgements in the background, once more where some came meanwhile.

    Args:
        desk: the open index.

    Attributes:
        said: what was learned last, or why nothing was.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lock = threading.Lock()
        self._wanted = self._going = False
        self.said = ""

    @property
    def is_learning(self) -> bool:
        """Whether percentages are about to change."""
        return self._going

    def learn(self) -> None:
        """Learn from all judgements of the index, soon."""
        with self._lock:
            self._wanted = True
            if self._going:
                return
            self._going = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._going, self._wanted = self._wanted, False
                if not self._going:
                    return
            try:
                done = calibrate(db=self._desk.renew())
                self.said = repr(done).splitlines()[1] if done.card.own else repr(done)
            except SureshotError as error:
                self.said = str(error)
            except BaseException:
                self._going = False
                raise


class JudgingRoutes:
    """The addresses that judge.

    Args:
        desk: the open index.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._learner = Learner(desk)

    def routes(self) -> APIRouter:
        """The addresses."""
        router = APIRouter(tags=["judging"])
        add = router.add_api_route
        judged: dict[int | str, dict[str, Any]] = {200: {"model": JudgedReply}}
        add("/api/judge", self.judged, responses=judged | errors(400, 409))
        wrong = errors(400, 403, 404, 409, 411)
        add("/api/judge", self.judge, methods=["POST"], responses=judged | wrong)
        add("/api/calibration", self.learn, methods=["POST"], responses=judged | errors(403, 409))
        return router

    async def judged(
        self,
        request: Request,
        query: Annotated[str, Query(description="A query.", max_length=100_000)] = "",
    ) -> Response:
        """What was judged so far, of a query and in all."""
        return json_reply(await self._desk.searches.run(request, lambda: self._told(query)))

    async def judge(self, request: Request, click: Click) -> Response:
        """Say of hits whether they are right; ten judged searches are learned from."""

        def keep() -> dict[str, Any]:
            moments = []
            for shown in click.moments:
                if not shown.start < shown.end:
                    raise QueryError("A moment ends after it begins; this one does not.")
                moments.append(
                    JudgedMoment(
                        video=self._desk.video(shown.video).path,
                        start=shown.start,
                        end=shown.end,
                        right=click.verdict == "right",
                    )
                )
            searcher = self._desk.searcher()
            kept = judge_moments(searcher, click.query, moments, absent=click.verdict == "absent")
            if kept.telling >= JUDGED:
                self._learner.learn()
            return self._told(click.query)

        return json_reply(await self._desk.searches.run(request, keep))

    async def learn(self, request: Request) -> Response:
        """Learn from what was judged, now."""

        def ask() -> dict[str, Any]:
            self._learner.learn()
            return self._told("")

        return json_reply(await self._desk.searches.run(request, ask))

    def _told(self, query: str) -> dict[str, Any]:
        kept = Judgements(labels_of_index(self._desk.store().location))
        label = kept.of(clean(query)) if query else None
        return {
            "judged": len(kept),
            "said": f"{kept.said} {self._learner.said}".strip() if len(kept) else "",
            "learning": self._learner.is_learning,
            "state": "" if label is None else label.state,
            "moments": [
                {"id": video_id(m.video), "start": m.start, "end": m.end, "right": m.right}
                for m in (() if label is None else label.moments)
            ],
        }
