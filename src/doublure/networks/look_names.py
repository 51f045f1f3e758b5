"""Names of the summaries of a series, and the quantiles that cut them; a plan reads them without torch."""

NAMES = ("level", "spread", "roughness", "peak", "low", "runs", "longest", "steepest")
"""Summaries of each channel; ``low`` is the number of steps at a frequent value, or else the lowest cell.

``roughness`` is the mean square of changes of scores, which know each step's table. ``steepest``, which only some plans
count, is the largest change of cells: it notices where tables of neighbouring steps differ by noise. Of a channel that
may have missing steps their number follows.
"""

CUTS = 23
"""Cuts of each summary: sixteenths of what a model draws, and halves of the last ones."""
SIXTEENTHS = 16
QUANTILES = tuple(sorted(
    {place / SIXTEENTHS for place in range(1, SIXTEENTHS)} | {2.0**-power for power in range(5, 9)}
    | {1 - 2.0**-power for power in range(5, 9)}
))  # fmt: skip
