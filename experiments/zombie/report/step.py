"""The public function of the step `zombie-report`: from the run's record to a folder that explains itself. Safe to repeat."""

import hashlib
from typing import Final

import msgspec

from experiments.zombie.ports import ZombieOutside
from experiments.zombie.report.assemble import recorded, results, summary
from experiments.zombie.report.files import Recorded, comparison, scenario_files
from experiments.zombie.report.html import render
from experiments.zombie.report.view import view
from experiments.zombie.report.waiting import whole_record
from steps.contracts.declaration import Inputs
from steps.contracts.document import Document, Stamp, encode
from steps.contracts.errors import Exit
from steps.contracts.files import write_atomically
from steps.logs import log_for

CHECKSUMS: Final = "SHA256SUMS"
REPORT: Final = "report.html"


def run(inputs: Inputs, outside: ZombieOutside) -> Exit:
    """Write `<evidence>/<run>/`, once drive and watch have ended. A scenario that left nothing is named in there; it is no reason
    to fail."""
    record = whole_record(inputs.text("run"), outside)
    found = recorded(record)
    stamp = Stamp(made_by="zombie-report", made_at=outside.base.clock.now(), origin=outside.base.origin)
    done = results(record, found, inputs.text("tag"), inputs.text("commit"), stamp)
    folder = inputs.path("evidence") / record.run
    said = summary(done, REPORT)
    texts = {
        **{f"recordings/{name}": data for one in found for name, data in _recordings(one).items()},
        **{name: text.encode() for name, text in scenario_files(found, done.scenarios).items()},
        "results/comparison.md": comparison(done).encode(),
        "results/results.json": _readable(done),
        "run.json": _readable(record),
        "summary.json": _readable(said),
    }
    vouched = [(name, hashlib.sha256(data).hexdigest()) for name, data in sorted(texts.items())]
    texts[REPORT] = render(view(done, found), vouched).encode()
    for name, data in texts.items():
        write_atomically(folder / name, data)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(texts.items()))
    write_atomically(folder / CHECKSUMS, sums.encode())
    inputs.put("summary", said)
    log_for("zombie-report").info(
        "zombie-report.written", run=record.run, scenarios=said.scenarios, judgements=said.judgements, problems=said.problems
    )
    return Exit.DONE


def _recordings(one: Recorded) -> dict[str, bytes]:
    documents: dict[str, Document | None] = {"drive": one.drive, "watch": one.watch}
    return {f"{one.scenario.id.value}-{name}.json": encode(found) for name, found in documents.items() if found is not None}


def _readable(document: Document) -> bytes:
    return msgspec.json.format(encode(document), indent=2) + b"\n"
