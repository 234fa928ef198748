"""Declaration of the step `archive`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="archive",
    help="write the evidence folder of a run: documents, logs, checksums, report.html, a summary",
    inputs=(
        In("run", "name of the run"),
        In("evidence", "folder of all evidence", Form.PATH),
    ),
    outputs=(Out("summary", "EvidenceSummary"),),
)
