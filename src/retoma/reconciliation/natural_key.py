"""What makes a line the same line when it arrives again.

A bank's id (FITID) alone is no key: it comes empty, repeated, reused between months and shared
between accounts. So the key takes in the account, the date, the amount and the currency; without
an id, the description. It is a digest: of one length, without personal data, and the same under
every collation of a database. Truly identical lines have equal keys; whoever stores them counts
their occurrences within a file.
"""

import hashlib
from datetime import date


def natural_key(
    *,
    account: str,
    bank_id: str,
    booking_date: date,
    amount_minor: int,
    currency: str,
    description_norm: str,
    reference: str = "",
) -> str:
    """Return 'I:' or 'F:' and 64 hexadecimal digits.

    I: by the id; F: fingerprint, for an id that is empty or all zeros. `reference` (a document
    number, say) is part of the fingerprint only.
    """
    common = (account, booking_date.isoformat(), str(amount_minor), currency)
    if has_id(bank_id):
        return "I:" + _digest((*common, bank_id.strip()))
    return "F:" + _digest((*common, description_norm, reference.strip()))


def has_id(bank_id: str) -> bool:
    """Tell whether an id is one: neither blank nor all zeros."""
    return bool(bank_id.strip().strip("0"))


def _digest(parts: tuple[str, ...]) -> str:
    # Lengths in front keep ('ab', 'c') and ('a', 'bc') apart, whatever the parts contain.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
