"""Settings of a source hold no secret, however it is spelled."""

from __future__ import annotations

import pytest

from rollview.errors import UsageError
from rollview.sources.settings import SourceSettings, TableSettings


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:secret@host/db",
        "postgresql://u:sec/ret@host/db",
        "mariadb://u:sec:r@t@host/db",
        "host=db password=secret",
    ],
)
def test_a_password_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError) as refusal:
        SourceSettings("postgres", address, (TableSettings("t", "t"),))
    assert "sec" not in refusal.value.message


@pytest.mark.parametrize(
    "address", ["env:BANK_URL", "postgresql://u@host:5432/db", "mariadb://host:3306/db", "shop.db"]
)
def test_an_address_without_one_is_taken(address: str) -> None:
    assert SourceSettings("postgres", address, (TableSettings("t", "t"),)).address == address


@pytest.mark.parametrize(("option", "said"), [("ask_keys", "1001"), ("ask_keys", "0"), ("ask_seconds", "soon")])
def test_asking_has_bounds(option: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"{option} is '{said}'"):
        SourceSettings("sqlite", "shop.db", (TableSettings("t", "t"),), {option: said})
