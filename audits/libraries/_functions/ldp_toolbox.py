"""Protocols of ldp-toolbox, alone: its pages want a web framework."""

from __future__ import annotations

from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
from ldp_toolbox.protocols.frequency.he import HistogramEncoding
from ldp_toolbox.protocols.frequency.ss import SubsetSelection
from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

grr = GeneralizedRandomizedResponse(4, 1.0).obfuscate
histogram = HistogramEncoding(4, 1.0, thresholding=False).obfuscate
histogram_thresholded = HistogramEncoding(4, 1.0).obfuscate
subset = SubsetSelection(10, 1.0).obfuscate
unary_optimised = UnaryEncoding(4, 1.0, optimal=True).obfuscate
unary = UnaryEncoding(4, 1.0, optimal=False).obfuscate
