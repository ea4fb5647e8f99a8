"""The parts of a run: complete sets of parts, and the data of the run that parts contain."""

import io
from dataclasses import replace

from rankdash.core.runs.combining import Shard, complete, merge, part_bytes
from rankdash.core.runs.plan import Timing
from rankdash.kit.html.tables import run_bytes
from tests.results import results
from tests.runs.stub import ONE_BY_ONE, Stub, failed, go


def test_parts_in_any_order_are_one_run_as_approved(make_dataset, tmp_path, approved):
    dataset = make_dataset(queries=5, depth=2, without_candidates=["q3"])

    def part(number, of=2, data=dataset, weights="w", version="1", k=1, device="cpu", **how):
        shard, file = Shard(number, of), tmp_path / f"{len([*tmp_path.iterdir()])}.part"
        how = {"timing": Timing(repeats=2), "query_ids": shard.queries(data), **how}
        run = go(data, Stub({"q2": failed("no")}, k=k), capabilities=ONE_BY_ONE, **how)
        run = replace(run, machine={"device": device})
        file.write_bytes(
            part_bytes(shard, data, run, weights, version, run_bytes(run.ranking, "x"))
        )
        return file

    def whole(paths):
        queries = merge(complete(paths), out := io.BytesIO())
        return [out.getvalue().decode(), queries]

    first, second = part(1), part(2)
    lists = {"in their order": [first, second], "or turned": [second, first],
             "one is missing": [second], "of many": [part(9, 9)],
             "one is twice": [first, second, second]}  # fmt: skip
    others = {"shards": {"of": 3}, "depth": {"depth": 1}, "empty texts": {"without_text": "empty"},
              "setting": {"k": 2}, "model": {"weights": "v"}, "version": {"version": "2"},
              "device": {"device": "gpu"}, "first stage": {"data": make_dataset(5, depth=2)},
              "texts": {"data": make_dataset(5, depth=2, query_text="x")}}  # fmt: skip
    lists |= {f"another: {name}": [first, part(2, **how)] for name, how in others.items()}
    lists["one loaded no model, so names none"] = [part(1, weights=""), second]
    cases = {name: lambda paths=paths: whole(paths) for name, paths in lists.items()}
    approved("runs/shards.en", results(cases).replace(f"{tmp_path}/", ""))
