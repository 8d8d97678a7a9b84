"""Plain data, as a YAML file has it, as values of dataclasses.

Law: what is read here reads the same by any validator, because nothing is converted but the names of choices: each
value has exactly the type that is asked for, no field is missing and none is strange. Everything else is a
``Misfit``, and somebody else says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Misfit(Exception):
    """The data do not have this form, or not without a conversion."""


def shaped(kind: type[T], data: Any) -> T:
    """The data as a value of a dataclass."""
    value: T = _value(kind, data)
    return value


def _value(kind: Any, data: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _first_that_fits(get_args(kind), data)
    if origin is Literal:
        return _checked(data, any(type(data) is type(one) and data == one for one in get_args(kind)))
    if origin is list:
        return [_value(get_args(kind)[0], one) for one in _checked(data, type(data) is list)]
    if origin is dict:
        of_keys, of_values = get_args(kind)
        return {_value(of_keys, key): _value(of_values, one) for key, one in _checked(data, type(data) is dict).items()}
    if is_dataclass(kind):
        return _record(kind, _checked(data, type(data) is dict))
    if issubclass(kind, Enum):
        return kind(_checked(data, data in [one.value for one in kind]))
    return _checked(data, type(data) is kind)


def _checked(data: Any, fits: bool) -> Any:
    if not fits:
        raise Misfit
    return data


def _first_that_fits(kinds: tuple[Any, ...], data: Any) -> Any:
    for kind in kinds:
        try:
            return _value(kind, data)
        except Misfit:
            continue
    raise Misfit


def _record(kind: Any, data: dict[str, Any]) -> Any:
    known = fields(kind)
    required = {one.name for one in known if one.default is MISSING and one.default_factory is MISSING}
    _checked(data, required <= data.keys() <= {one.name for one in known})
    hints = get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in data.items()})
