"""How often a family of claims has a wrong verdict, where the true gaps are known.

``python -m benchmarks.verdicts [--families 2000]``. Claims of a family share two baselines, all
rows find the same videos hard, and seeds go up and down together; see `tests.metrics.families`. At
most 5 of 100 families may be wrong.
"""

import argparse

from tests.metrics.families import wrong_families

_CASES = (
    ("no gap, 10 seeds, 12 claims", {"printed": 0.0, "seeds": 10, "claims": 12}),
    ("no gap, 15 seeds, 20 claims", {"printed": 0.0, "seeds": 15, "claims": 20}),
    ("gap as printed (3 points), 10 seeds", {"printed": 3.0, "seeds": 10, "claims": 12}),
)


def main() -> None:
    """Draw the families and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=2000)
    families = parser.parse_args().families
    for name, settings in _CASES:
        wrong = wrong_families(families, seed=7, **settings)  # type: ignore[arg-type]
        print(f"{name}: {wrong} of {families} families wrong, {100 * wrong / families:.1f} %")


if __name__ == "__main__":
    main()
