"""Exact bounds of a binomial share; numpy's and the library's functions only."""

import math

from sureshot.errors import SureshotError

_TINY = 1e-300
_STEPS = 10_000


def beta_cdf(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function I_x(a, b), the distribution function of Beta(a, b).

    Args:
        x: 0 to 1.
        a: above 0.
        b: above 0.

    Raises:
        SureshotError: an argument out of range.

    References:
        DLMF 8.17.22, the continued fraction, evaluated by the modified Lentz method.

    Examples:
        >>> round(beta_cdf(0.5, 2.0, 2.0), 12)
        0.5
    """
    if not (0 <= x <= 1 and a > 0 and b > 0):
        raise SureshotError(f"Beta({a}, {b}) at {x} is not defined.")
    if x in (0.0, 1.0):
        return float(x)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _fraction(x, a, b) / a


def beta_quantile(share: float, a: float, b: float) -> float:
    """The x where `beta_cdf` is ``share``, 0 to 1, by halving.

    Raises:
        SureshotError: an argument out of range.
    """
    if not 0 <= share <= 1:
        raise SureshotError(f"A quantile at {share} is not defined; give 0 to 1.")
    if share in (0.0, 1.0):
        return float(share)
    low, high = 0.0, 1.0
    while high - low > 1e-15 and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if beta_cdf(middle, a, b) < share else (low, middle)
    return (low + high) / 2


def upper_bound(events: int, trials: int, level: float = 0.95) -> float:
    """Clopper-Pearson: the largest share that ``events`` of ``trials`` do not speak against.

    In at most 1 - ``level`` of all samples it lies below the true share.

    Args:
        events: 0 to ``trials``.
        trials: independent ones; without any the bound is 1.
        level: above 0, below 1; one-sided.

    Raises:
        SureshotError: an argument out of range.

    References:
        Clopper and Pearson, Biometrika 26 (1934).

    Examples:
        >>> round(upper_bound(0, 59), 3)
        0.05
    """
    if not 0 <= events <= trials or not 0 < level < 1:
        raise SureshotError(f"{events} events in {trials} trials at level {level} have no bound.")
    if events == trials:
        return 1.0
    return beta_quantile(level, events + 1.0, float(trials - events))


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 1 / (1 + d_1 / (1 + d_2 / ...))."""
    value, upper, lower = _TINY, _TINY, 0.0
    for number in range(_STEPS):
        m = number // 2
        if number == 0:
            term = 1.0
        elif number % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1.0 / (1.0 + term * lower or _TINY)
        # The first partial denominator follows a leading 0, all others are 1.
        upper = 1.0 + term / upper or _TINY
        value *= upper * lower
        if abs(upper * lower - 1.0) < 1e-15:
            break
    return value
