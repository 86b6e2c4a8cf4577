"""The examples of docs/any_program.md in other languages: compiled, and audited, where there is a compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dpaudit
from dpaudit.mechanism import programs

PAGE = (Path(__file__).parents[2] / "docs" / "any_program.md").read_text(encoding="utf-8")
LANGUAGES = {  # file, compiler, how it compiles, how it starts
    "c": ("count.c", "cc", ["cc", "-O1", "-o", "count-c", "count.c", "-lm"], ["./count-c"]),
    "javascript": ("count.js", "node", [], ["node", "count.js"]),
    "rust": ("count.rs", "rustc", ["rustc", "-o", "count-rust", "count.rs"], ["./count-rust"]),
    "java": (
        "Count.java",
        "javac",
        ["javac", "Count.java"],
        ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "Count"],
    ),
    "go": ("count.go", "go", ["go", "build", "-o", "count-go", "count.go"], ["./count-go"]),
    "r": ("count.R", "Rscript", [], ["Rscript", "count.R"]),
}
SEEDED = ("c", "rust", "java", "go", "r")


@pytest.mark.parametrize("language", LANGUAGES)
def test_half_the_noise_is_found_and_the_right_noise_is_not(language: str, tmp_path: Path) -> None:
    # False-alarm probability of the program with the right noise: alpha = 1e-6.
    file, compiler, build, start = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (source,) = re.findall(rf"^```\w+ file={file}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / file).write_text(source)
    if language == "r" and subprocess.run(["Rscript", "-e", "library(jsonlite)"], check=False).returncode:
        pytest.skip("jsonlite is not installed")
    if build:
        subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    for epsilon, expected in (("1", False), ("2", True)):
        mechanism = dpaudit.program([*start, epsilon], "stream", folder=tmp_path)
        result = dpaudit.audit(
            mechanism, dpaudit.PureDP(1.0), [([], [7]), ([1, 2], [2])], samples=5000, seed=0, shrink=False
        )
        assert (result.verdict is dpaudit.Verdict.VIOLATION) == expected
        assert result.reproducible == (language in SEEDED)
    outputs = np.array(mechanism.sample([4, 5, 6], 2000, np.random.default_rng(0)), dtype=float)
    assert abs(np.median(outputs) - 3.0) < 0.2  # the median of 2000 has a standard deviation of 0.011
    programs.close_streams()
