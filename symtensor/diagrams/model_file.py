'''Models in TOML files.

    name = "kpz"
    description = "KPZ/Burgers, white noise in <x x>"   # optional
    causality = "local"                                 # optional: local, nonlocal or none (the default)

    [[fields]]                 # at least one
    name = "x"
    [[fields]]
    name = "xt"
    response = true            # optional, and so are: conjugate = "psi", index = "N", auxiliary = true,
                               # statistics = "boson" (the only one that is accepted)
    [[propagators]]
    ends = ["x", "x"]
    [[propagators]]
    ends = ["x", "xt"]
    orders = { }               # optional: powers of counting parameters

    [[vertices]]
    name = "g"
    legs = ["xt", "x", "x"]    # or, shorter: "xt x^2"
    orders = { g = 1 }         # optional

    [[families]]               # optional: all vertices over the fields from a valence (default 3) on
    name = "V"
    fields = ["x", "xt"]
    least = { xt = 1 }         # optional: at least so many legs of a field
    valence = 4                # optional

The tables and keys are those of `Field`, `Propagator`, `Vertex` and `VertexFamily`. An unknown or missing key and a value
of the wrong type are errors that name the table and the key. Files are data: nothing in them is evaluated.

>>> text = """
... causality = "local"
... fields = [{name = "x"}, {name = "xt", response = true}]
... propagators = [{ends = ["x", "x"]}, {ends = ["x", "xt"]}]
... [[vertices]]
... name = "g"
... legs = "xt x^2"
... orders = { g = 1 }
... """
>>> model = parse_model(text, "kpz")
>>> model.vertices[0].legs
('xt', 'x', 'x')
>>> parse_model(model_to_toml(model), "kpz") == model
True
'''

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from symtensor.diagrams.errors import ModelError
from symtensor.diagrams.model import MAX_VALENCE, Field, Model, Propagator, Vertex, VertexFamily

__all__ = ["load_model", "model_from_dict", "model_to_dict", "model_to_toml", "parse_model"]

_LEG = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\^([1-9][0-9]?))?\Z")


def load_model(path: str | Path) -> Model:
    """The model in a TOML file; its name is that of the file unless the file gives one.

    Raises: ModelError naming the file, and the table and key that is wrong; OSError if the file cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"model file {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    try:
        return parse_model(text, path.stem)
    except ModelError as error:
        raise ModelError(f"model file {path}: {error}") from None


def parse_model(text: str, name: str) -> Model:
    """The model that a TOML text describes; `name` is its name unless the text gives one.

    Raises: ModelError for text that is not TOML, and for unknown, missing or ill-typed keys.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ModelError(f"not a TOML file: {error}") from None
    return model_from_dict({"name": name, **data})


def model_to_toml(model: Model) -> str:
    """The TOML text of a model; `parse_model` reads it back to an equal model."""
    data = model_to_dict(model)
    head = [f"{key} = {_toml(value)}" for key, value in data.items() if isinstance(value, str)]
    blocks = ["\n".join(head)]
    for table in ("fields", "propagators", "vertices", "families"):
        for entry in data.get(table, ()):
            blocks.append("\n".join([f"[[{table}]]", *(f"{key} = {_toml(value)}" for key, value in entry.items())]))
    return "\n\n".join(blocks) + "\n"


def model_to_dict(model: Model) -> dict[str, Any]:
    """The model as strings, numbers, lists and dictionaries, in the form of the TOML file; defaults are left out."""
    data: dict[str, Any] = {"name": model.name}
    if model.description:
        data["description"] = model.description
    if model.causality != "none":
        data["causality"] = model.causality
    data["fields"] = [_field_entry(f) for f in model.fields]
    data["propagators"] = [{"ends": [p.first, p.second], **_some(orders=dict(p.orders))} for p in model.propagators]
    if model.vertices:
        data["vertices"] = [{"name": v.name, "legs": _short(v.legs), **_some(orders=dict(v.orders))} for v in model.vertices]
    if model.families:
        data["families"] = [
            {"name": f.name, "fields": list(f.fields), **_some(least=dict(f.least)), "valence": f.valence} for f in model.families
        ]
    return data


def model_from_dict(data: object) -> Model:
    """The model that such a dictionary describes.

    Raises: ModelError for unknown, missing or ill-typed keys, and whatever is wrong with the model itself.
    """
    top = _table(data, "the model", _MODEL, ("name", "fields", "propagators"))
    members = [_table(f, f"families[{at}]", _FAMILY, ("name", "fields")) for at, f in enumerate(top.get("families", ()))]
    return Model(
        top["name"],
        tuple(Field(**_table(entry, f"fields[{at}]", _FIELD, ("name",))) for at, entry in enumerate(top["fields"])),
        tuple(_propagator(entry, f"propagators[{at}]") for at, entry in enumerate(top["propagators"])),
        tuple(Vertex(**_table(v, f"vertices[{at}]", _VERTEX, ("name", "legs"))) for at, v in enumerate(top.get("vertices", ()))),
        tuple(VertexFamily(**values) for values in members),
        top.get("causality", "none"),
        top.get("description", ""),
    )


def _propagator(entry: object, where: str) -> Propagator:
    values = _table(entry, where, _PROPAGATOR, ("ends",))
    ends = values["ends"]
    if len(ends) != 2:
        raise ModelError(f"{where}: ends must name the two fields that the propagator joins, got {len(ends)}")
    return Propagator(*ends, **_some(orders=values.get("orders", {})))


Reader = Callable[[object, str], Any]


def _table(data: object, where: str, readers: Mapping[str, Reader], required: Iterable[str]) -> dict[str, Any]:
    """The values of a table, each read by the reader of its key."""
    if not isinstance(data, Mapping):
        raise ModelError(f"{where} must be a table (keys and values), got {_kind(data)}")
    for key in data:
        if key not in readers:
            near = difflib.get_close_matches(str(key), readers, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ModelError(f"{where} has the unknown key {key!r}{hint}; allowed keys: {', '.join(readers)}")
    for key in required:
        if key not in data:
            raise ModelError(f"{where} lacks the key {key!r}; it has {', '.join(data) or 'none'}")
    return {key: readers[key](value, f"{where}: {key}") for key, value in data.items()}


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ModelError(f"{where} must be a string, got {_kind(value)}")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise ModelError(f"{where} must be true or false, got {_kind(value)}")
    return value


def _number(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ModelError(f"{where} must be an integer, got {_kind(value)}")
    return value


def _names(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ModelError(f"{where} must be a list of names, got {_kind(value)}")
    return tuple(_text(entry, f"{where}[{at}]") for at, entry in enumerate(value))


def _powers(value: object, where: str) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise ModelError(f"{where} must be a table of integers such as {{ g = 1 }}, got {_kind(value)}")
    return {_text(key, where): _number(power, f"{where}.{key}") for key, power in value.items()}


def _entries(value: object, where: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise ModelError(f"{where} must be a list of tables, got {_kind(value)}")
    return list(value)


def _legs(value: object, where: str) -> tuple[str, ...]:
    """A list of field names, or the short form ``"x^2 xt"``."""
    if not isinstance(value, str):
        return _names(value, where)
    legs: list[str] = []
    for word in value.split():
        match = _LEG.match(word)
        if match is None or int(match[2] or 1) > MAX_VALENCE:
            raise ModelError(f"{where}: {word!r} is no leg; write a field or a power of it up to {MAX_VALENCE}, as in 'x^2 xt'")
        legs += [match[1]] * int(match[2] or 1)
    return tuple(legs)


_MODEL: dict[str, Reader] = {
    "name": _text, "description": _text, "causality": _text,
    "fields": _entries, "propagators": _entries, "vertices": _entries, "families": _entries,
}  # fmt: skip
_FIELD: dict[str, Reader] = {
    "name": _text, "response": _flag, "conjugate": _text, "index": _text, "auxiliary": _flag, "statistics": _text,
}  # fmt: skip
_PROPAGATOR: dict[str, Reader] = {"ends": _names, "orders": _powers}
_VERTEX: dict[str, Reader] = {"name": _text, "legs": _legs, "orders": _powers}
_FAMILY: dict[str, Reader] = {"name": _text, "fields": _names, "least": _powers, "valence": _number}


def _kind(value: object) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    return f"{value!r}"[:60]


def _some(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, False, {})}


def _field_entry(f: Field) -> dict[str, Any]:
    return {"name": f.name, **_some(response=f.response, conjugate=f.conjugate, index=f.index, auxiliary=f.auxiliary)}


def _short(legs: tuple[str, ...]) -> str:
    """``xt x^2``; equal neighbours are counted together, so that the order of the legs is kept."""
    runs = [(name, len(list(run))) for name, run in groupby(legs)]
    return " ".join(name if count == 1 else f"{name}^{count}" for name, count in runs)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # JSON's strings are TOML's, but for DEL, which TOML wants escaped; surrogate pairs of \u escapes are avoided.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
