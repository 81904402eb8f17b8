"""Sentences said by programs and heard by a model, as an index hears the speech of a video.

Four voices of flite for what weights are fitted on, and four others of espeak-ng for what they are
measured on, so that neither the voices nor their program are known. Sentences follow each other in
one sound with pauses of one to three seconds.
"""

import random
import subprocess
import wave
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
from jaxtyping import Float32

from sureshot.media.speech import RATE, hear

VOICES = {
    "flite": ("kal16", "awb", "rms", "slt"),
    "espeak-ng": ("en-us", "en-gb", "en-us+f3", "en-gb-scotland"),
}
_AT_ONCE = 100  # sentences of a sound
_PAUSES = 0.8, 3.0  # seconds
_MOSTLY = 0.3  # share of a sentence's time that what was heard of it covers at least


def say(text: str, program: str, voice: str) -> Float32[np.ndarray, " samples"]:
    """A sentence by a voice of a program."""
    with TemporaryDirectory() as folder:
        path = f"{folder}/said.wav"
        command = {
            "flite": ["flite", "-voice", voice, "-t", text, "-o", path],
            "espeak-ng": ["espeak-ng", "-v", voice, "-s", "170", "-w", path, text],
        }[program]
        subprocess.run(command, check=True, capture_output=True)
        with wave.open(path) as file:
            rate = file.getframerate()
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    frame = av.AudioFrame.from_ndarray(samples[None].copy(), "s16", "mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    parts = [part for one in (frame, None) for part in resampler.resample(one)]
    return np.concatenate([part.to_ndarray().reshape(-1) for part in parts])


def heard(texts: Sequence[str], model: Path, program: str, seed: int) -> dict[str, str]:
    """What a model hears of sentences that a program says; nothing of what it does not hear.

    Args:
        seed: draws voices and pauses.
    """
    draw, found = random.Random(seed), dict[str, str]()
    for first in range(0, len(texts), _AT_ONCE):
        parts = list[Float32[np.ndarray, " samples"]]()
        times, now = dict[str, tuple[float, float]](), 0
        for text in texts[first : first + _AT_ONCE]:
            said = say(text, program, draw.choice(VOICES[program]))
            times[text] = now / RATE, (now + len(said)) / RATE
            pause = np.zeros(int(RATE * draw.uniform(*_PAUSES)), np.float32)
            parts += [said, pause]
            now += len(said) + len(pause)
        lines = list(hear(np.concatenate(parts), str(model)))
        for text, (start, end) in times.items():
            shared = {one: min(end, one.end) - max(start, one.start) for one in lines}
            best = max(lines, key=shared.__getitem__)
            if shared[best] > _MOSTLY * (end - start):
                found[text] = best.text.strip()
        print(f"{min(first + _AT_ONCE, len(texts))} of {len(texts)} heard", flush=True)
    return found
