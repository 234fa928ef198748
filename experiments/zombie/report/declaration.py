"""Declaration of the step `zombie-report`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="zombie-report",
    help="make the results of the termination experiment from what drive and watch recorded",
    inputs=(
        In("run", "name of the run", Form.ID),
        In("tag", "git tag that started the run; none if a person did", Form.PATH, default="none"),
        In("commit", "commit of that tag", Form.PATH, default="none"),
        In("evidence", "folder of the evidence claim", Form.PATH),
    ),
    outputs=(Out("summary", "ZombieSummary"),),
)
