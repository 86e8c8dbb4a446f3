"""Excel files as tables: the text of each cell, and sheets that hold more than a table."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest

from ldp_budget.errors import TableError
from ldp_budget_surveys.excel_tables import Sheet, read_sheet

openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")


def stored(book: Any) -> io.BytesIO:
    file = io.BytesIO()
    book.save(file)
    file.seek(0)
    return file


def book_of(*rows: list[Any], title: str = "people") -> Any:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    return book


def read(book: Any, sheet: str | None = None, *, header: bool = True) -> Sheet:
    return read_sheet("x.xlsx", stored(book), sheet, header=header)


def cell_text(value: Any, form: str | None = None) -> tuple[str, list[str]]:
    book = book_of(["value", "end"], [value, "x"])
    if form is not None:
        book.active["A2"].number_format = form
    found = read(book)
    return found.rows[0][1][0], found.notes


def refused(book: Any, sheet: str | None = None) -> str:
    with pytest.raises(TableError) as error:
        read(book, sheet)
    return str(error.value)


# -- cells ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (5.0, "5"),
        (-3, "-3"),
        (0.5, "0.5"),
        ("007", "007"),
        (" 7 ", " 7 "),
        (None, ""),
        (True, "true"),
        (False, "false"),
        (date(2026, 11, 29), "2026-11-29"),
        (datetime(2026, 11, 29, 10, 30), "2026-11-29 10:30:00"),
        (time(10, 30), "10:30:00"),
        (999_999_999_999_999, "999999999999999"),
        ("#N/A", "#N/A"),
    ],
)
def test_cell_becomes_the_text_that_a_csv_file_has(value: Any, text: str) -> None:
    assert cell_text(value) == (text, [])


@pytest.mark.parametrize(("value", "text"), [(1e20, "1E+20"), (1_234_567_890_123_456, "1.234567890123456E+15")])
def test_whole_number_that_excel_rounds_reads_as_a_rounded_number(value: float, text: str) -> None:
    assert cell_text(value)[0] == text


@pytest.mark.parametrize(("value", "form", "text"), [(0.125, "0.0%", "0.125"), (7, "000", "7")])
def test_number_that_is_shown_otherwise_reads_as_it_is_held_with_a_note(value: float, form: str, text: str) -> None:
    found, (note,) = cell_text(value, form)
    assert found == text
    assert f"cell A2 is shown in the format {form}, and holds {value}" in note


def test_duration_has_no_one_text_and_is_refused_by_its_cell() -> None:
    assert "cell A2 has a timedelta" in refused(book_of(["value"], [timedelta(hours=30)]))


# -- tables --------------------------------------------------------------------------------------------------


def test_blank_rows_and_columns_around_a_table_are_left_out() -> None:
    book = book_of([], [None, "user", "mood"], [None, "ada", "good"], [], [None, "bob", " "], [None, None, " "])
    book.active["B20"].font = openpyxl.styles.Font(bold=True)
    assert read(book)[:3] == (["user", "mood"], ["B", "C"], [(3, ["ada", "good"]), (5, ["bob", " "])])


def test_sheet_without_headings_names_its_columns_by_their_numbers() -> None:
    assert read(book_of([None, "ada", "good"]), header=False)[:3] == (["2", "3"], ["B", "C"], [(1, ["ada", "good"])])


def test_blank_workbook_is_an_empty_table() -> None:
    assert read(book_of()) == ([], [], [], [])


def change(what: Callable[[Any], object]) -> Any:
    """Return a sheet of three people after a change."""
    book = book_of(["user", "n"], ["ada", 1], ["bob", 2], ["cy", 3])
    what(book.active)
    return book


def put(sheet: Any, **cells: Any) -> None:
    for place, value in cells.items():
        sheet[place] = value


def add_table_with_totals(sheet: Any) -> None:
    put(sheet, A5="Total", B5=6)
    table = openpyxl.worksheet.table.Table(displayName="People", ref="A1:B5", totalsRowCount=1)
    table.tableStyleInfo = openpyxl.worksheet.table.TableStyleInfo(name="TableStyleMedium2")
    sheet.add_table(table)


def hide(sheet: Any) -> None:
    sheet.row_dimensions[3].hidden = True


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (lambda sheet: sheet.merge_cells("A1:B1"), "the cells A1:B1 are merged"),
        (lambda sheet: sheet.merge_cells("A2:A3"), "the cells A2:A3 are merged"),
        (hide, "row 3 is hidden"),
        (add_table_with_totals, "cell B5 is in the total row of a table"),
        (lambda sheet: put(sheet, A5="all", B5="=SUM(B2:B4)"), "cell B5 is a total, =SUM(B2:B4)"),
        (lambda sheet: put(sheet, B5="=SUBTOTAL(109,People[n])"), "cell B5 is a total"),
        (lambda sheet: put(sheet, B3="=A3&1"), "cell B3 has a formula without a value"),
        (lambda sheet: put(sheet, A5="=A4"), "cell A5 has a formula without a value"),
        (lambda sheet: put(sheet, D3="late"), "cell D3 has no heading in row 1"),
    ],
)
def test_sheet_that_holds_more_than_a_table_is_refused_by_the_cell(what: Callable[[Any], object], why: str) -> None:
    assert why in refused(change(what))


def test_title_above_the_headings_is_refused() -> None:
    book = book_of(["Survey of 2026"], ["user", "mood"], ["ada", "good"])
    assert "cell B2 has no heading in row 1" in refused(book)


def test_hidden_blank_row_and_merged_cells_beside_the_table_are_no_harm() -> None:
    def beside(sheet: Any) -> None:
        sheet.row_dimensions[9].hidden = True
        sheet.merge_cells("A8:B8")

    assert len(read(change(beside)).rows) == 3


# -- workbooks -----------------------------------------------------------------------------------------------


def two_sheets() -> Any:
    book = book_of(["user"], ["ada"])
    book.create_sheet("others").append(["user"])
    return book


def test_two_sheets_are_refused_until_one_is_named() -> None:
    assert "there are 2 sheets: people, others. Name one with --sheet NAME." in refused(two_sheets())
    assert read(two_sheets(), "people").rows == [(2, ["ada"])]


def test_hidden_and_blank_sheets_do_not_count_unless_they_are_named() -> None:
    book = two_sheets()
    book["others"].sheet_state = "hidden"
    book.create_sheet("blank")
    assert read(book).rows == [(2, ["ada"])]
    assert read(book, "others").columns == ["user"]


def test_unknown_sheet_is_refused_with_the_names() -> None:
    assert "there is no sheet 'People'. Sheets: people, others" in refused(two_sheets(), "People")


def test_damaged_file_is_refused() -> None:
    whole = stored(book_of(["user"], ["ada"])).getvalue()
    with pytest.raises(TableError, match="this Excel file cannot be read"):
        read_sheet("x.xlsx", io.BytesIO(whole[:-40]))


def test_file_with_more_xml_than_fits_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldp_budget_surveys.excel_tables.MOST_BYTES", 1000)
    assert "this Excel file is too large to be read" in refused(book_of(["user"], ["ada"]))


# -- formulas with values ------------------------------------------------------------------------------------


def with_values(book: Any, **values: str) -> io.BytesIO:
    """Return the file as Excel stores it, with the value of each formula."""
    stored_book, found = stored(book), io.BytesIO()
    with zipfile.ZipFile(stored_book) as before, zipfile.ZipFile(found, "w") as after:
        for part in before.namelist():
            content = before.read(part)
            for place, value in values.items():
                pattern = rb'(<c r="%s"[^>]*><f>[^<]*</f>)<v ?/?>(</v>)?' % place.encode()
                content = re.sub(pattern, rb"\g<1><v>%s</v>" % value.encode(), content)
            after.writestr(part, content)
    found.seek(0)
    return found


def test_formula_reads_as_its_value() -> None:
    file = with_values(change(lambda sheet: put(sheet, B3="=1+1")), B3="2")
    assert read_sheet("x.xlsx", file).rows[1] == (3, ["bob", "2"])


def test_total_with_a_value_is_refused_by_its_cell() -> None:
    file = with_values(change(lambda sheet: put(sheet, A5="sum", B5="=SUM(B2:B4)")), B5="6")
    with pytest.raises(TableError, match=r"cell B5 is a total, =SUM\(B2:B4\)"):
        read_sheet("x.xlsx", file)


def test_sum_over_the_cells_of_a_row_reads_as_its_value() -> None:
    file = with_values(change(lambda sheet: put(sheet, C1="both", C2="=SUM(A2:B2)")), C2="1")
    assert read_sheet("x.xlsx", file).rows[0] == (2, ["ada", "1", "1"])
