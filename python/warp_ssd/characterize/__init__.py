"""Characterization: the profile of a real drive, from the folder of `warp characterize`.

    drive.json, measurements.csv, times.csv -> fit_folder -> profile.toml, fit.json, report.html, SHA256SUMS
    devices/community/NAME -> check_folder -> accepted, or a sentence about the first problem

The search is that of `warp_ssd.calibrate`. This package chooses what to search, fits the times, predicts the probes that the fit
has not seen, and writes the report. docs/reference/characterization.md describes the folder.
"""

from .check import check_folder
from .fit import Fitted, Prediction, fit_folder
from .folder import Characterization, read_folder

__all__ = ["Characterization", "Fitted", "Prediction", "check_folder", "fit_folder", "read_folder"]
