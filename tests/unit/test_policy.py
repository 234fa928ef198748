"""The policy file: what is accepted, and the one sentence that everything else gets."""

from pathlib import Path

import pytest

from steps.contracts.errors import BadInput, Exit
from steps.contracts.policy import Mode, OptOut, Policy
from steps.decide.policy import parse_policy, policy_hash

SHIPPED = Path(__file__).parents[2] / "deploy" / "policy" / "policy.yaml"


def refusal(text: str | bytes) -> str:
    with pytest.raises(BadInput) as refused:
        parse_policy(text if isinstance(text, bytes) else text.encode(), "policy.yaml")
    assert refused.value.exit_code is Exit.BAD_INPUT
    return str(refused.value)


def test_the_shipped_policy_only_observes_and_opts_nobody_in() -> None:
    policy = parse_policy(SHIPPED.read_bytes(), "policy.yaml")
    assert (policy.mode, policy.namespaces) == (Mode.OBSERVE, ())


def test_the_shipped_policy_writes_out_the_defaults() -> None:
    assert parse_policy(SHIPPED.read_bytes(), "policy.yaml") == Policy(mode=Mode.OBSERVE, namespaces=())


def test_every_field_can_be_set() -> None:
    text = b"""
mode: act
namespaces: [team-a, team-b]
idle_after_s: 90
minimum_age_s: 0
max_stops_per_sweep: 3
opt_out: {annotation: example.org/keep}
"""
    assert parse_policy(text, "policy.yaml") == Policy(
        mode=Mode.ACT,
        namespaces=("team-a", "team-b"),
        idle_after_s=90,
        minimum_age_s=0,
        max_stops_per_sweep=3,
        opt_out=OptOut(annotation="example.org/keep"),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "mode: act\nnamespaces: []\nidle_after: 30\n",
            (
                "policy.yaml line 3: unknown field 'idle_after'; allowed: "
                "mode, namespaces, idle_after_s, minimum_age_s, opt_out, max_stops_per_sweep"
            ),
        ),
        (
            "mode: act\nnamespaces: []\nopt_out: {annotaton: x}\n",
            "policy.yaml line 3: unknown field 'annotaton' of opt_out; allowed: annotation",
        ),
        (
            "mode: act\nnamespaces: []\nmode: observe\n",
            "policy.yaml line 3: mode stands there a second time, first in line 1; keep one",
        ),
        (
            "mode: act\nnamespaces: []\n\nidle_after_s: 30m\n",
            "policy.yaml line 4: idle_after_s is '30m'; give seconds, a whole number from 0 to 2678400, for example 1800",
        ),
        ("mode: actt\nnamespaces: []\n", "policy.yaml line 1: mode is 'actt'; give observe or act"),
        ("mode: off\nnamespaces: []\n", "policy.yaml line 1: mode is 'off'; give observe or act"),
        ("namespaces: []\n", "policy.yaml says nothing about mode; give observe or act"),
        ("", "policy.yaml holds no policy; write at least `mode: observe` and `namespaces: []`"),
        ("- mode\n", "policy.yaml holds no policy; write at least `mode: observe` and `namespaces: []`"),
    ],
    ids=["misspelt", "misspelt inside", "twice", "with a unit", "no such mode", "yaml's own boolean", "missing", "empty", "a list"],
)
def test_a_wrong_policy_gets_one_sentence_with_line_and_what_to_write(text: str, sentence: str) -> None:
    assert refusal(text) == sentence


@pytest.mark.parametrize("value", ["-1", "1.5", "true", "2678401", "[1]", "~", "1:30", "010", "0x10", "1_000", "9" * 5000])
def test_seconds_are_whole_and_within_a_month(value: str) -> None:
    said = refusal(f"mode: act\nnamespaces: []\nidle_after_s: {value}\n")
    assert said.startswith("policy.yaml line 3: idle_after_s is ")
    assert said.endswith("for example 1800")


@pytest.mark.parametrize("value", ["team-a", "[Team]", "[no]", "['a/b']", "[{a: b}]", '["team-a\\n"]'])
def test_namespaces_are_a_list_of_names(value: str) -> None:
    assert refusal(f"mode: act\nnamespaces: {value}\n").startswith("policy.yaml line 2: namespaces is ")


@pytest.mark.parametrize("name", ["''", "a b", "a/b/c", "-a", "/a", "a/", '"a\\n"', '"\\e[31mred"'])
def test_an_opt_out_that_nobody_could_set_is_refused(name: str) -> None:
    said = refusal(f"mode: act\nnamespaces: []\nopt_out: {{annotation: {name}}}\n")
    assert said.startswith("policy.yaml line 3: opt_out.annotation is ")
    assert said.isprintable()


@pytest.mark.parametrize("name", ["exclude", "example.org/keep", "gpu-reclaim.dev/Keep_me.please", "a" * 63])
def test_an_opt_out_is_any_name_that_an_annotation_may_have(name: str) -> None:
    policy = parse_policy(f"mode: act\nnamespaces: []\nopt_out: {{annotation: {name}}}\n".encode(), "policy.yaml")
    assert policy.opt_out == OptOut(annotation=name)


@pytest.mark.parametrize(
    "text",
    [
        b"mode: [",
        b"mode: act\nnamespaces: [2026-99-99]\n",
        b"\xff\xfe\xff",
        b"[" * 30_000,
        b"mode: act\nnamespaces: []\n---\nmode: act\n",
        b"mode: !!python/object/apply:os.system [ls]\nnamespaces: []\n",
        b"? [a]\n: 3\n",
        b"<<: {mode: act}\nnamespaces: []\n",
        b"\x00",
    ],
    ids=["cut", "no date", "no text", "deep", "two documents", "a python object", "a list as key", "a merge", "a null byte"],
)
def test_what_is_no_plain_yaml_policy_is_refused_in_one_line(text: bytes) -> None:
    said = refusal(text)
    assert said.startswith("policy.yaml")
    assert "\n" not in said


def test_the_hash_is_of_what_the_policy_says_and_not_of_how_it_is_written() -> None:
    written_out = parse_policy(b"namespaces: [a]\n# words\nidle_after_s: 3600\nmode: act\n", "one.yaml")
    short = parse_policy(b"mode: act\nnamespaces: [a]\n", "two.yaml")
    assert policy_hash(written_out) == policy_hash(short)
    assert policy_hash(short) != policy_hash(parse_policy(b"mode: observe\nnamespaces: [a]\n", "three.yaml"))
