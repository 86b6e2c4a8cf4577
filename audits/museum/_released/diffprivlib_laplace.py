"""diffprivlib's Laplace mechanism."""

from __future__ import annotations

from diffprivlib.mechanisms import Laplace

laplace = Laplace(epsilon=1.0, sensitivity=1.0).randomise
