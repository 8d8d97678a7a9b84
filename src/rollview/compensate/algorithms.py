"""The algorithms by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollview.compensate.c_strobe import CStrobe
from rollview.compensate.conventional import Conventional
from rollview.compensate.eca import Eca
from rollview.compensate.g_strobe import GStrobe
from rollview.compensate.maintainer import Maintainer
from rollview.compensate.strobe import Strobe
from rollview.compensate.sweep import SweepMaintainer
from rollview.compensate.t_strobe import TStrobe
from rollview.consistency.join_view import JoinView

ALGORITHMS: Mapping[str, Callable[[JoinView], Maintainer]] = {
    "conventional": Conventional,
    "eca": Eca,
    "strobe": Strobe,
    "t-strobe": TStrobe,
    "g-strobe": GStrobe,
    "c-strobe": CStrobe,
    "c-tstrobe": lambda view: CStrobe(view, by_transaction=True),
    "sweep": SweepMaintainer,
}
