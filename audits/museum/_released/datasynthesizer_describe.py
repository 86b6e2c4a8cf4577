"""DataSynthesizer's description of a table by noisy histograms, with its default arguments."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile

from DataSynthesizer.DataDescriber import DataDescriber


def describe(ages):
    """Release the bounds and the noisy histogram of one column of whole numbers."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
        table = os.path.join(folder, "table.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.write("age\n" + "".join(f"{age}\n" for age in ages))
        describer = DataDescriber(histogram_bins=2)
        describer.describe_dataset_in_independent_attribute_mode(
            table,
            epsilon=1.0,
            attribute_to_datatype={"age": "Integer"},
            attribute_to_is_categorical={"age": False},
            attribute_to_is_candidate_key={"age": False},
        )
        described = json.loads(json.dumps(describer.data_description, default=float))["attribute_description"]["age"]
    return {"min": described["min"], "max": described["max"], "histogram": described["distribution_probabilities"]}
