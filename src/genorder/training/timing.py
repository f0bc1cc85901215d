"""How long a step takes, from real ones."""

from collections.abc import Callable

_MOST_STEPS = 50


def marginal_seconds(seconds: Callable[[int], float], budget: float) -> float:
    """Of one more step, where `seconds(n)` trains for n steps and says how long it took.

    What every training costs at its start is left out. Takes some `budget` seconds.
    """
    seconds(1)  # the first of a process also loads and allocates
    one = seconds(1)
    steps = max(4, min(_MOST_STEPS, round(budget / one)))
    return max((seconds(1 + steps) - one) / steps, 1e-9)
