"""TxnWrap's wrappers with their meta relations: schema changes as versions, and why their order matters.

Chen et al., *Multiversion Based View Maintenance*, §3 and §6.2. Rules (1) to (9): a tuple or an attribute is there at
local id t iff V_Start ≤ t < V_End. A TxnID has one local id for each source, as they are when an update is reported.

Law: an update is maintained over the state of its TxnID, by the view definition of that moment. Maintained in another
order than their TxnIDs say, an update of a relation that the definition does not name yet is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rollview.lab.svg import Drawing

_OPEN = "∞"


@dataclass(frozen=True, slots=True)
class MetaEntry:
    relation: str
    attribute: str
    new_relation: str = "–"
    new_attribute: str = "–"
    v_start: int = 0
    v_end: int | None = None


@dataclass(frozen=True, slots=True)
class VersionedTuple:
    values: tuple[str, ...]
    v_start: int = 0
    v_end: int | None = None


@dataclass(slots=True)
class MetaWrapper:
    """One relation of one source. Values are in the order in which attributes came, whatever they are called."""

    relation: str
    tuples: list[VersionedTuple]
    meta: list[MetaEntry]
    local: int = 0

    @classmethod
    def of(cls, relation: str, attributes: Sequence[str], *rows: tuple[str, ...]) -> MetaWrapper:
        return cls(relation, [VersionedTuple(row) for row in rows], [MetaEntry(relation, name) for name in attributes])

    def insert(self, row: tuple[str, ...]) -> None:
        self.local += 1
        self.tuples.append(VersionedTuple(row, self.local))

    def delete(self, row: tuple[str, ...]) -> None:
        self.local += 1
        place = next(n for n, one in enumerate(self.tuples) if one.values == row and one.v_end is None)
        self.tuples[place] = replace(self.tuples[place], v_end=self.local)

    def rename(self, attribute: str, name: str) -> None:
        """Rule (6)."""
        self.local += 1
        self._end(attribute, self.relation, name)
        self.meta.append(MetaEntry(self.relation, name, v_start=self.local))

    def drop(self) -> None:
        """Rule (7), by rule (4) for every attribute."""
        self.local += 1
        for entry in [one for one in self.meta if one.v_end is None]:
            self._end(entry.attribute)

    def _end(self, attribute: str, *renamed: str) -> None:
        place = next(n for n, one in enumerate(self.meta) if one.attribute == attribute and one.v_end is None)
        new_relation, new_attribute = renamed or ("–", "–")
        ended = replace(self.meta[place], new_relation=new_relation, new_attribute=new_attribute, v_end=self.local)
        self.meta[place] = ended

    def rows(self, at: int) -> list[tuple[str, ...]]:
        return [one.values for one in self.tuples if _is_there(one.v_start, one.v_end, at)]

    def attributes(self, at: int) -> list[str]:
        return [one.attribute for one in self.meta if _is_there(one.v_start, one.v_end, at)]

    def told(self) -> Iterator[str]:
        """Its content as figures 5 and 6 show it."""
        yield f"{self.relation}'"
        yield from (f"  {', '.join(one.values):24}{_span(one.v_start, one.v_end)}" for one in self.tuples)
        for one in self.meta:
            renamed = f" → {one.new_attribute}" if one.new_attribute != "–" else ""
            yield f"  {one.attribute + renamed:24}{_span(one.v_start, one.v_end)}"


def _is_there(start: int, end: int | None, at: int) -> bool:
    return start <= at and (end is None or at < end)


def _span(start: int, end: int | None) -> str:
    return f"[{start}, {_OPEN if end is None else end})"


def figure_four() -> tuple[list[tuple[int, int]], MetaWrapper, MetaWrapper]:
    """The four updates: their TxnIDs, and the wrappers after them (figures 5 and 6)."""
    customer = MetaWrapper.of("C", ("Name", "Add.", "Phone"), ("Tom", "MA", "123"), ("Bob", "CA", "146"))
    flights = MetaWrapper.of("F", ("Name", "Age", "FlightNo", "Dest"), ("Tom", "17", "AA43", "Asia"))
    ids = []
    for change in (
        partial(customer.insert, ("Ben", "CA", "213")),
        partial(flights.insert, ("Ben", "18", "A34", "Asia")),
        partial(customer.rename, "Name", "First-Last"),
        partial(flights.insert, ("Sue", "20", "A34", "Asia")),
    ):
        change()
        ids.append((customer.local, flights.local))
    return ids, customer, flights


@dataclass(slots=True)
class _View:
    """``people`` ⋈ flights to Asia: names. ``people`` is Customer until that is dropped."""

    wrappers: dict[str, MetaWrapper]
    people: str = "Customer"
    shown: set[str] = field(default_factory=set)

    def joined(self, txn: dict[str, int]) -> set[str]:
        flying = {row[0] for row in self.wrappers["FlightRes"].rows(txn["FlightRes"])}
        return flying & {row[0] for row in self.wrappers[self.people].rows(txn[self.people])}


def example_two(*, reordered: bool) -> tuple[list[str], set[str]]:
    """Customer is dropped and Registered-User takes its place, [1,0,0]; then Ben registers, [1,0,1]. What was done, and
    what the view shows then. The paper does not give the tuples; these are ours."""
    wrappers = {
        "Customer": MetaWrapper.of("Customer", ("Name",), ("Tom",)),
        "FlightRes": MetaWrapper.of("FlightRes", ("Name",), ("Tom",), ("Ben",)),
        "Registered-User": MetaWrapper.of("Registered-User", ("Name",), ("Tom",)),
    }
    view = _View(wrappers)
    view.shown = view.joined(dict.fromkeys(wrappers, 0))
    steps = [f"V = {_listed(view.shown)}"]
    wrappers["Customer"].drop()
    dropped = {name: wrapper.local for name, wrapper in wrappers.items()}
    wrappers["Registered-User"].insert(("Ben",))
    inserted = {name: wrapper.local for name, wrapper in wrappers.items()}

    def adapt() -> None:
        view.people = "Registered-User"
        view.shown = view.joined(dropped)
        steps.append(f"DROP TABLE Customer {_txn(dropped)}: V = Registered-User ⋈ FlightRes = {_listed(view.shown)}")

    def maintain() -> None:
        new = view.joined(inserted) - view.shown if view.people == "Registered-User" else set()
        view.shown |= new
        told = f"+{_listed(new)}" if new else "the view does not read it"
        steps.append(f"INSERT INTO Registered-User {_txn(inserted)}: {told}; V = {_listed(view.shown)}")

    for step in (maintain, adapt) if reordered else (adapt, maintain):
        step()
    return steps, view.shown


def _txn(ids: dict[str, int]) -> str:
    return f"[{','.join(map(str, ids.values()))}]"


def _listed(names: set[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"


def told_figure_four() -> tuple[str, ...]:
    ids, *wrappers = figure_four()
    texts = ("INSERT INTO C (Ben)", "INSERT INTO F (Ben)", "RENAME C.Name TO First-Last", "INSERT INTO F (Sue)")
    updates = (f"{text:30}TxnID [{','.join(map(str, one))}]" for text, one in zip(texts, ids, strict=True))
    return (*updates, "", *(line for wrapper in wrappers for line in wrapper.told()))


def told_example_two() -> tuple[str, ...]:
    (right, shown), (wrong, lost) = (example_two(reordered=reordered) for reordered in (False, True))
    missing = _listed(shown - lost)
    return ("in the order of their TxnIDs:", *right, "", "reordered:", *wrong, f"lost: {missing}")


def draw_text(title: str, lines: Sequence[str]) -> str:
    drawing = Drawing(820, 60 + 20 * len(lines))
    drawing.text(16, 24, title, size=15)
    for number, line in enumerate(lines):
        drawing.text(16 + 8 * (len(line) - len(line.lstrip())), 56 + 20 * number, line)
    return drawing.to_svg()
