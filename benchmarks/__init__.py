"""Speed, tightness, power and soundness, measured as ratios in one run: ``python -m benchmarks all``.

Every benchmark is a module (or package) with ``run(*, quick) -> Iterator[Table]``; ``benchmarks.tables`` prints them and
writes JSON, and ``python -m benchmarks`` lists them.
"""
