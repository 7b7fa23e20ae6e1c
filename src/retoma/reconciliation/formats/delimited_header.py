"""The line of column names of a CSV: found by what its names mean, in Portuguese or English."""

import re
from dataclasses import dataclass
from typing import Final

from retoma.reconciliation.formats.description import normalise_description

_DELIMITERS: Final = (";", "\t", ",", "|")
_MOST_PREAMBLE: Final = 50

# Role -> names, normalised: upper case, no accents, runs of other characters as one blank.
_NAMES: Final[dict[str, str]] = {
    "booking_date": "DATA|DATE|DT|DIA|DATA LANCAMENTO|DATA DO LANCAMENTO|DATA MOVIMENTO|"
    "DATA DO MOVIMENTO|DATA MOV|DT LANCAMENTO|DT MOVIMENTO|DATA TRANSACAO|DATA DA TRANSACAO|"
    "DATA CONTABIL|DATA REFERENCIA|BOOKING DATE|POSTING DATE|POSTED DATE|TRANSACTION DATE",
    "value_date": "DATA VALOR|DATA EFETIVA|DATA BALANCETE|VALUE DATE|EFFECTIVE DATE",
    "amount": "VALOR|VALOR R|VALOR RS|VALOR BRL|VLR|MONTANTE|QUANTIA|VALOR LANCAMENTO|"
    "VALOR TRANSACAO|VALOR DA TRANSACAO|AMOUNT|VALUE|TRANSACTION AMOUNT|AMOUNT BRL",
    "debit": "DEBITO|DEBITOS|DEBITO R|VALOR DEBITO|SAIDA|SAIDAS|SAIDAS R|DEBIT|DEBITS|"
    "DEBIT AMOUNT|WITHDRAWAL|WITHDRAWALS|PAID OUT",
    "credit": "CREDITO|CREDITOS|CREDITO R|VALOR CREDITO|ENTRADA|ENTRADAS|ENTRADAS R|CREDIT|"
    "CREDITS|CREDIT AMOUNT|DEPOSIT|DEPOSITS|PAID IN",
    "direction": "D C|C D|DC|CD|DEBITO CREDITO|CREDITO DEBITO|NATUREZA|SINAL|DIRECTION|"
    "DEBIT CREDIT|CREDIT DEBIT|DR CR|CR DR",
    "maybe_direction": "TIPO|TIPO LANCAMENTO|TIPO DE LANCAMENTO|TYPE|TRANSACTION TYPE",
    "description": "HISTORICO|DESCRICAO|LANCAMENTO|DETALHE|DETALHES|TITULO|ESTABELECIMENTO|"
    "DESCRICAO DO LANCAMENTO|DESCRIPTION|MEMO|DETAILS|NARRATIVE|PARTICULARS",
    "document_no": "DOCUMENTO|DOC|NUMERO DOCUMENTO|N DOCUMENTO|NO DOCUMENTO|NUM DOC|NR DOCUMENTO|"
    "DCTO|DOCUMENT|DOCUMENT NO|DOCUMENT NUMBER|CHECK NUMBER|CHECKNUM",
    "currency": "MOEDA|COD MOEDA|CODIGO MOEDA|CURRENCY|CCY|CURRENCY CODE",
    "account": "CONTA|CONTA CORRENTE|NUMERO CONTA|AGENCIA CONTA|ACCOUNT|ACCOUNT NO|"
    "ACCOUNT NUMBER|ACCOUNT ID|IBAN",
    "fitid": "ID|FITID|ID TRANSACAO|TRANSACAO ID|IDENTIFICADOR|UUID|TRANSACTION ID|"
    "REFERENCIA|REFERENCE",
    "e2e_id": "E2E|E2E ID|ID E2E|ENDTOENDID|END TO END ID|END TO END",
    "counterparty_document": "CPF CNPJ|CNPJ CPF|CPF|CNPJ|CPF CNPJ CONTRAPARTE|TAX ID",
    "status": "STATUS|SITUACAO|ESTADO|STATE",
    "balance": "SALDO|SALDO R|SALDO APOS|SALDO FINAL|BALANCE|RUNNING BALANCE|BALANCE AFTER",
}
_ROLE: Final = {name: role for role, names in _NAMES.items() for name in names.split("|")}
_NOT_A_WORD = re.compile(r"[^0-9A-Z]+")


@dataclass(frozen=True, slots=True)
class Header:
    """Where the column names are and what they mean.

    `roles` has one entry a column, '' for a column that is not read. Offsets count from the
    start of the bytes that were searched, lines from 1.
    """

    delimiter: str
    roles: tuple[str, ...]
    currency: str
    start: int
    end: int
    line_no: int
    duplicates: tuple[str, ...]


def find_header(text: bytes) -> Header | None:
    """Return the first line that names a date and an amount, or None.

    Looked for in the first 50 lines of `text`, with each usual separator.
    """
    start, line_no = 0, 1
    for match in re.finditer(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)", text):
        if line_no > _MOST_PREAMBLE:
            return None
        header = _read_header(match[0], match.start(), match.end(), line_no)
        if header is not None:
            return header
        start, line_no = match.end(), line_no + 1
        if start >= len(text):
            return None
    return None


def role_of(name: str) -> str:
    """Return what a column name means, or ''."""
    words = _NOT_A_WORD.sub(" ", normalise_description(name)).strip()
    return _ROLE.get(words, "")


def split_fields(text: str, delimiter: str) -> list[str] | None:
    """Split one record into its fields; None if a quoted field is not closed.

    A quote opens a quoted field only at the field's start; within it, two quotes are one.
    """
    if '"' not in text:
        return text.split(delimiter)
    fields: list[str] = []
    at = 0
    while True:
        prefix = ""
        if text.startswith('"', at):
            quoted = _quoted_field(text, at)
            if quoted is None:
                return None
            prefix, at = quoted
        end = text.find(delimiter, at)
        if end < 0:
            fields.append(prefix + text[at:])
            return fields
        fields.append(prefix + text[at:end])
        at = end + 1


def _quoted_field(text: str, at: int) -> tuple[str, int] | None:
    parts: list[str] = []
    at += 1
    while True:
        end = text.find('"', at)
        if end < 0:
            return None
        parts.append(text[at:end])
        if not text.startswith('"', end + 1):
            return "".join(parts), end + 1
        parts.append('"')
        at = end + 2


def _read_header(line: bytes, start: int, end: int, line_no: int) -> Header | None:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        text = line.decode("latin-1").rstrip("\r\n")
    best: Header | None = None
    for delimiter in _DELIMITERS:
        names = split_fields(text, delimiter) or []
        roles, duplicates = _roles(names)
        found = sum(1 for role in roles if role)
        if not _is_enough(roles) or (best and found <= sum(1 for role in best.roles if role)):
            continue
        currency = "BRL" if any("R$" in name for name in names) else ""
        best = Header(delimiter, roles, currency, start, end, line_no, duplicates)
    return best


def _roles(names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    roles: list[str] = []
    duplicates: list[str] = []
    for name in names:
        role = role_of(name)
        if role and role in roles:
            duplicates.append(role)
            role = ""
        roles.append(role)
    return tuple(roles), tuple(duplicates)


def _is_enough(roles: tuple[str, ...]) -> bool:
    has_amount = "amount" in roles or ("debit" in roles and "credit" in roles)
    return "booking_date" in roles and has_amount
