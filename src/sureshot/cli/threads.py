"""How many threads a search computes with."""

import os

_BLAS = "OPENBLAS_NUM_THREADS"


def compute_alone() -> None:
    """Have numpy compute with one thread, unless the user says how many; before it is imported.

    One sentence is too little to share among cores: threads that wait for each other take seven
    times the processor's time, which other work could use (LOG.md).
    """
    os.environ.setdefault(_BLAS, "1")
