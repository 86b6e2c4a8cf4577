"""Tables from files: dialects, encodings, cells as they were published, and errors that say what to do."""

import csv
import importlib.util

import pandas as pd
import pytest

from dpaudit.anonymity import Table, k_anonymity, read_frame
from dpaudit.anonymity.tables.reading import sniff
from dpaudit.errors import InvalidArgument, MissingDependency


def write(folder, text, encoding="utf-8", name="table.csv"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", (",", '"')),
        ("a;b\n1,5;2,5\n", (";", '"')),
        ("a\tb\n1\t2\n", ("\t", '"')),
        ("a|b\n1|2\n", ("|", '"')),
        ('a,b\n"1;2;3",2\n', (",", '"')),
        ("a,b\n'x, y',2\n", (",", "'")),
        ('a,b\n"two\nlines",2\n', (",", '"')),
        ("a;b;c\n1;2\n", (";", '"')),
        ("a\n1\n", (",", '"')),
        ("", (",", '"')),
        ("a,b\nit's,2\n", (",", '"')),
    ],
)
def test_dialects(text, expected):
    assert sniff(text) == expected


def test_cells_stay_as_published(tmp_path):
    frame = read_frame(write(tmp_path, "plz,country,points\n01234,NA,1\n1234,nan,1.0\n"))
    assert frame["plz"].tolist() == ["01234", "1234"]
    assert frame["country"].tolist() == ["NA", "nan"]
    assert frame["points"].nunique() == 2


def test_quoted_cells_and_line_ends(tmp_path):
    path = write(tmp_path, 'a,b\r\n"x, ""y""",1\r\n"two\nlines",2\r\n\r\n')
    assert read_frame(path)["a"].tolist() == ['x, "y"', "two\nlines"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_with_a_mark_are_recognised(tmp_path, encoding):
    path = write(tmp_path, "name,n\nZ\u00fcrich,1\n", encoding)
    assert read_frame(path)["name"].tolist() == ["Z\u00fcrich"]


def test_encoding_errors_are_explained(tmp_path):
    path = write(tmp_path, "name,n\nZ\u00fcrich,1\n", "cp1252")
    with pytest.raises(InvalidArgument, match=r"is not utf-8: byte 0xfc .* encoding='cp1252'"):
        read_frame(path)
    assert read_frame(path, encoding="cp1252")["name"].tolist() == ["Z\u00fcrich"]
    with pytest.raises(InvalidArgument, match="encoding='klingon' is not known"):
        read_frame(path, encoding="klingon")
    unmarked = write(tmp_path, "name,n\nBern,1\n", "utf-16-le", "unmarked.csv")
    with pytest.raises(InvalidArgument, match="NUL"):
        read_frame(unmarked)


def test_empty_cells_are_missing_and_never_dropped(tmp_path):
    path = write(tmp_path, "q,s\nx,a\n,b\nNA,c\n")
    with pytest.raises(InvalidArgument, match="1 missing cells"):
        Table.from_file(path, quasi_identifiers="q", sensitive="s")
    table = Table.from_file(path, quasi_identifiers="q", sensitive="s", missing="value")
    assert (table.records, k_anonymity(table).value) == (3, 1)
    marked = Table.from_file(path, quasi_identifiers="q", missing="value", missing_marks=("", "NA"))
    assert marked.classes.sizes.tolist() == [1, 2]


def test_blank_lines(tmp_path):
    assert len(read_frame(write(tmp_path, "a,b\n1,2\n\n3,4\n\n"))) == 2  # ignored if there are several columns
    assert read_frame(write(tmp_path, "a\n1\n\n3\n"))["a"].tolist() == [
        "1",
        None,
        "3",
    ]  # a missing cell if there is one column


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n1\n", "line 3: 1 cells where the header has 2"),
        ("a,b\n1,2,3\n1,2\n", "line 2: 3 cells where the header has 2"),
        ('a,b\n"1,2\n3,4\n', "line 3: .*quoting"),
        ("", "is empty; its first line"),
        ("q,q\n1,2\n", "column='q' occurs 2 times"),
    ],
)
def test_malformed_files_are_explained(tmp_path, text, message):
    with pytest.raises(InvalidArgument, match=message):
        read_frame(write(tmp_path, text))


def test_missing_files_and_columns(tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be read: No such file"):
        read_frame(tmp_path / "absent.csv")
    with pytest.raises(InvalidArgument, match="cannot be read: Is a directory"):
        read_frame(tmp_path)
    path = write(tmp_path, "postcode,s\n1,2\n")
    with pytest.raises(InvalidArgument, match="Did you mean 'postcode'"):
        Table.from_file(path, quasi_identifiers="postcod")
    with pytest.raises(InvalidArgument, match="delimiter=';;'"):
        read_frame(path, delimiter=";;")


def test_a_file_with_only_a_header_is_an_empty_table(tmp_path):
    with pytest.raises(InvalidArgument, match="no records"):
        Table.from_file(write(tmp_path, "q,s\n"), quasi_identifiers="q", sensitive="s")


def test_a_given_delimiter_is_not_detected(tmp_path):
    assert list(read_frame(write(tmp_path, "a:b\n1:2\n"), delimiter=":")) == ["a", "b"]


def test_duplicate_names_of_unused_columns_do_not_matter(tmp_path):
    path = write(tmp_path, "q,x,x\n1,2,3\n")
    assert Table.from_file(path, quasi_identifiers="q").records == 1


def test_parquet_needs_pyarrow(tmp_path):
    path = tmp_path / "table.parquet"
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(MissingDependency, match="pip install pyarrow"):
            read_frame(path)
    else:
        pd.DataFrame({"q": [1, 1], "s": ["a", None]}).to_parquet(path)
        assert k_anonymity(Table.from_file(path, quasi_identifiers="q")).value == 2
        with pytest.raises(InvalidArgument, match="column='x'"):
            read_frame(path, columns=["x"])


def test_large_files_are_read_with_shared_cells(tmp_path):
    frame = read_frame(write(tmp_path, "q,s\n" + "32**,iOS\n" * 50_000))
    assert len(frame) == 50_000
    assert len({id(cell) for cell in frame["q"].to_numpy(dtype=object)}) == 1


@pytest.mark.parametrize("text", ["q,s\n1," + "x" * 1_100_000 + "\n", "q,s\n1,2\n" + "x" * 17_000_000])
def test_a_huge_field_is_refused(tmp_path, text):
    """The limit of the csv module is a setting of the process, so it is put back."""
    before = csv.field_size_limit()
    with pytest.raises(InvalidArgument, match=r"larger than field limit|line 3 is longer than"):
        read_frame(write(tmp_path, text))
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_that_is_missing_is_named(tmp_path, encoding):
    path = tmp_path / "table.csv"
    path.write_bytes("q,s\n1,2\n".encode(f"{encoding}-le"))
    with pytest.raises(InvalidArgument, match=f"byte order mark that encoding='{encoding}' needs.*'{encoding}-le'"):
        read_frame(path, encoding=encoding)
    assert list(read_frame(path, encoding=f"{encoding}-le")) == ["q", "s"]
