"""What the readers say to people, in one place."""

from typing import Final

from retoma.reconciliation.statement import ReadWarning, StatementError

WARNINGS: Final[dict[str, str]] = {
    "BALANCE_LINE": "a balance is written as if it were a movement; it is not added up",
    "BALANCE_UNREADABLE": "the declared balance is missing or cannot be read",
    "BAD_CURRENCY": "the currency is not a three-letter code; it is left empty",
    "BAD_DATE": "the date cannot be read; it is left empty",
    "BANK_SAYS_ERROR": "the bank's answer in this file reports an error of its own",
    "CURRENCY_DIFFERS": "this line is in another currency than its statement",
    "DATE_FORMAT": "the date is not written as the format asks, but it is clear",
    "DOUBLE_ESCAPED": "characters were escaped twice; they were restored",
    "DUPLICATE_COLUMN": "two columns mean the same; the first one counts",
    "DUPLICATE_FIELD": "a field occurs twice in one record; the first one counts",
    "EMPTY_RECORD": "a record names no field at all; there is nothing in it to read",
    "EMPTY_ROW": "a row holds only separators; it is skipped",
    "EMPTY_STATEMENT": "the statement has no lines",
    "ENCODING_MISLABELLED": "the file says one encoding and is written in another",
    "ENCODING_UNSURE": "the text is neither UTF-8 nor clean Windows-1252; read as Latin-1",
    "INVESTMENTS_NOT_READ": "investment statements are not read, only bank and card lines",
    "LOOKS_LIKE_BALANCE": "the description names a balance, but it has an id and an amount: "
    "it counts as a movement",
    "MISSING_END_TAG": "an end tag is missing; the end was taken from what follows",
    "NO_ACCOUNT": "the statement names no account",
    "NO_CURRENCY": "no currency is named; none is assumed",
    "NO_END_OF_FILE": "the closing </OFX> is missing: the file may be cut off",
    "NO_FINAL_NEWLINE": "the last line has no line end: the file may be cut off",
    "NO_FITID": "the bank gave no id; a fingerprint of the content stands in",
    "NO_HEADER": "the OFX header is missing",
    "NO_STATEMENT": "the file holds no statement",
    "NO_TRNTYPE": "the transaction type is missing",
    "PREAMBLE_SKIPPED": "lines before the column names are skipped",
    "RAW_AMPERSAND": "an ampersand is not escaped; it is kept as it is",
    "REPEATED_HEADER": "the column names occur again; the row is skipped",
    "SEVERAL_DOCUMENTS": "several OFX documents are joined in one file; all are read",
    "SHORT_ROW": "the last columns are missing in this row",
    "SIGN_DISAGREES": "the type says debit or credit and the sign says the contrary; "
    "the sign counts",
    "STRAY_MARKUP": "a < is not escaped; it is kept as text",
    "TRAILING_DATA": "there is text after the end of the document",
    "UNKNOWN_CURRENCY": "the currency is not in ISO 4217; two decimals are assumed",
    "UNKNOWN_TRNTYPE": "the transaction type is not one of OFX",
}

_READ = "OFX 1.x, OFX 2.x and CSV are read."

REFUSALS: Final[dict[str, tuple[str, str]]] = {
    "NO_SUCH_FILE": ("There is no such file.", "Check the path."),
    "IS_DIRECTORY": ("This is a directory, not a file.", "Name one file of it."),
    "NOT_A_FILE": ("This is a device or a pipe, not a file.", "Save it to a file first."),
    "UNREADABLE": ("The file cannot be opened.", "Check its permissions."),
    "EMPTY_FILE": ("The file is empty.", "Ask the sender for it again."),
    "BLANK_FILE": ("The file holds nothing but blanks.", "Ask the sender for it again."),
    "UTF16": ("The file is written in UTF-16.", "Save it as UTF-8."),
    "NUL_BYTE": (
        "The file holds a NUL byte, so it is binary or damaged.",
        "Ask the sender for it again, as text.",
    ),
    "NOT_READ": ("This looks like {what}, which is not read here.", _READ),
    "UNKNOWN_FORMAT": (
        "The format is not recognised: no OFX, and no column names with a date and an amount.",
        _READ + " A CSV needs column names such as data;historico;valor.",
    ),
    "RECORD_TOO_LONG": (
        "One record is longer than {limit} bytes.",
        "The file is damaged or of another format.",
    ),
    "FILE_CHANGED": (
        "The file has {now} bytes now, and had {then} when reading began.",
        "Restore the file as it was, or begin again from its start.",
    ),
    "BAD_POSITION": (
        "The position to resume from is not one of this reader.",
        "Begin again from the start of the file.",
    ),
}


def warning(code: str, line: int, offset: int, field: str = "", detail: str = "") -> ReadWarning:
    """Return the warning of that code with its text; `detail` is added in brackets."""
    text = WARNINGS[code]
    return ReadWarning(code, f"{text} ({detail})" if detail else text, line, offset, field)


def refusal(
    code: str, *, line: int | None = None, offset: int | None = None, **details: object
) -> StatementError:
    """Return the error of that code with its text and its hint."""
    message, hint = REFUSALS[code]
    return StatementError(code, message.format(**details), line=line, offset=offset, hint=hint)
