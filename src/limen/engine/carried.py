"""What a `Crosser` carries, as bytes: for a store that survives the process.

`encode` writes what is known of some entities; `absorb` takes it in, over whatever was known of them
before. Both forms hold values (names, ordinals, ids), not the numbers that a process gives to them.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.engine.codes import TextCodes
from limen.engine.crosser import Crosser
from limen.engine.held import Held
from limen.engine.watch import OFF, Watch

I32 = npt.NDArray[np.int32]

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def encode(crosser: Crosser, entities: I32) -> bytes:
    """What is known of these entities; also that one is forgotten."""
    streams = crosser.streams
    columns: dict[str, Any] = {
        "entity": crosser.names(entities),
        "known": pa.array(streams.known[entities]),
        "heard": streams.heard[entities],
    }
    for k in range(streams.dimensions):
        columns[f"value{k}"] = streams.values[entities, k]
    for number, key in enumerate(crosser.keys.values()):
        codes = pa.array(key.of_entity[entities], mask=key.of_entity[entities] < 0)
        values = key.codes.values
        values = values if isinstance(values, pa.Array) else pa.array(values)
        columns[f"key{number}"] = values.take(codes)
    held = crosser.held.some(np.isin(crosser.held.entities, entities))
    sink = pa.BufferOutputStream()
    for table in (pa.table(columns), _held_table(crosser, held)):
        with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
            writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def absorb(crosser: Crosser, blob: bytes) -> I32:
    """Take in what `encode` wrote; returns the entities."""
    source = pa.BufferReader(blob)
    table, held = (pa.ipc.open_stream(source).read_all().combine_chunks() for _ in range(2))
    entities = crosser.number(table.column("entity"))
    streams = crosser.streams
    streams.known[entities] = table.column("known").to_numpy()
    streams.heard[entities] = table.column("heard").to_numpy()
    for k in range(streams.dimensions):
        streams.values[entities, k] = table.column(f"value{k}").to_numpy()
    for number, key in enumerate(crosser.keys.values()):
        column = table.column(f"key{number}").combine_chunks()
        if isinstance(key.codes, TextCodes):
            key.of_entity[entities] = key.codes.learn(column)
        else:
            codes = key.codes.learn(column.fill_null(0).to_numpy())
            missing = column.is_null().to_numpy(zero_copy_only=False)
            key.of_entity[entities] = np.where(missing, np.int32(-1), codes)
    others = crosser.held.some(~np.isin(crosser.held.entities, entities))
    crosser.held = others.and_(_held_of(crosser, held))
    crosser.lose_places()
    return entities


def _held_table(crosser: Crosser, held: Held) -> pa.Table:
    columns = {
        "entity": crosser.names(held.entities),
        "query": held.ids,
        "since": pa.array(held.since),
        "state": pa.array(held.state),
        "seen": pa.array(held.seen),
    }
    for k in range(crosser.streams.dimensions):
        columns[f"value{k}"] = pa.array(held.values[:, k])
        columns[f"previous{k}"] = pa.array(held.previous[:, k])
    return pa.table(columns)


def _held_of(crosser: Crosser, table: pa.Table) -> Held:
    dims = range(crosser.streams.dimensions)
    return Held(
        crosser.number(table.column("entity")),
        table.column("query").combine_chunks(),
        table.column("since").to_numpy(),
        table.column("state").to_numpy(),
        np.stack([table.column(f"value{k}").to_numpy() for k in dims], axis=1),
        np.stack([table.column(f"previous{k}").to_numpy() for k in dims], axis=1),
        table.column("seen").to_numpy(),
    )


def describe_watch(watch: Watch, id_type: pa.DataType) -> str:
    """What the columns and the ids are, as text: enough to read what was carried."""
    roles = {"entity": [watch.entity], "on": list(watch.on), "keys": list(watch.keys)}
    types = {**watch.keys, **watch.on, watch.entity: watch.entity_type}
    if watch.time is not None:
        roles["time"] = [watch.time]
        types[watch.time] = watch.time_type
    schema = base64.b64encode(pa.schema(types).serialize()).decode()
    facts = {"roles": roles, "types": schema, "ids": str(id_type), "dwell": watch.dwell}
    return json.dumps(facts)


def watch_of(text: str) -> tuple[Watch, str]:
    """The watch that was described, as far as its columns go, and the type of the ids."""
    facts = json.loads(text)
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts["types"])))
    roles = facts["roles"]
    time = roles.get("time", [None])[0]
    entity = roles["entity"][0]
    watch = Watch(
        entity=entity,
        entity_type=schema.field(entity).type,
        on={name: schema.field(name).type for name in roles["on"]},
        keys={name: schema.field(name).type for name in roles["keys"]},
        time=time,
        time_type=schema.field(time).type if time is not None else None,
        margins={},
        dwell=facts["dwell"],
        ttl=OFF,
        lateness=OFF,
        exit_on_removal=False,
        enter_on_add=False,
    )
    return watch, facts["ids"]
