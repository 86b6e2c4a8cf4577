"""Mechanisms of DiffPriv, on a file with one column of numbers."""

from __future__ import annotations

import os
import tempfile

from DiffPriv import diff


def mean_of(column):
    return sum(column) / len(column)


def called(function, rows, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        table, released = os.path.join(folder, "table.csv"), os.path.join(folder, "released.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.writelines(f"{row}\n" for row in rows)
        with open(table, encoding="utf-8") as file:
            function(file, released, 1.0, *arguments).close()
        with open(released, encoding="utf-8") as file:
            return [float(word) for word in file.read().replace(",", " ").split()]


def laplace(rows):
    return called(diff.lapmech, rows, mean_of)


def exponential(rows):
    return called(diff.expmech, rows, lambda column, choice: float(sum(value > choice for value in column)), range(3))
