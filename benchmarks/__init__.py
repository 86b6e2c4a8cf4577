"""Speed, tightness and power, measured as ratios in one run: ``python -m benchmarks all``."""
