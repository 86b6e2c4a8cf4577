"""Find the faulty part of a mechanism that is declared as query plus noise (:func:`dpaudit.diagnose`)."""

from dpaudit.diagnosis.calibration import Calibration, calibration
from dpaudit.diagnosis.noise import NoiseCheck, check_noise
from dpaudit.diagnosis.residuals import FitTest
from dpaudit.diagnosis.staged import Diagnosis, diagnose

__all__ = ["Calibration", "Diagnosis", "FitTest", "NoiseCheck", "calibration", "check_noise", "diagnose"]
