"""What a command line may say outside its node."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.adapters.redact import MAX_COMMAND_CHARACTERS, redact_command

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "arguments",
    [
        [f"--token={SECRET}"],
        [f"--NotebookApp.token={SECRET}"],
        ["--token", SECRET],
        ["--api-key", SECRET],
        ["-password", SECRET],
        ["--password", f"my {SECRET} words"],
        [f"--password=my {SECRET} words"],
        [f"HF_TOKEN={SECRET}"],
        [f"AWS_SECRET_ACCESS_KEY={SECRET}"],
        [f"WANDB_API_KEY={SECRET}"],
        [f"https://user:{SECRET}@example.org/x"],
        [f"postgres://user:{SECRET}@db/x"],
        [f"user:{SECRET}@host"],
        [f"https://example.org/?a=b&access_token={SECRET}&c=d"],
        ["sh", "-c", f"export OPENAI_API_KEY={SECRET}; python train.py"],
        ["sh", "-c", f"curl --password {SECRET} x"],
        ["sh", "-c", f'login --secret "{SECRET} words"'],
        ["-H", f"Authorization: Bearer {SECRET}"],
        ["-H", f"X-Auth-Token: {SECRET}"],
        [f'{{"password": "{SECRET}"}}'],
        [f"hf_{SECRET}"],
        [f"ghp_{SECRET}"],
        [f"sk-{SECRET}"],
    ],
)
def test_secrets_are_hidden_and_the_rest_stays(arguments: list[str]) -> None:
    shown = redact_command(["python3", *arguments, "--epochs=3"])
    assert SECRET not in shown
    assert "words" not in shown
    assert shown.startswith("python3 ")
    assert shown.endswith(" --epochs=3")


def test_what_is_no_secret_is_shown() -> None:
    plain = ["python3", "-m", "vllm.entrypoints", "--tokenizer=gpt2", "--port", "8000", "a@b"]
    assert redact_command(plain) == " ".join(plain)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-f kernel-1a2b3c4d-0000-4000-8000-00000000abcd.json", "-f kernel-1a2b3c4d….json"),
        ("--rev 0123456789abcdef01234567", "--rev 01234567…"),
        ("--rev 0123456789abcdef0123456", "--rev 0123456789abcdef0123456"),
    ],
)
def test_long_random_ids_keep_their_beginning(text: str, shown: str) -> None:
    assert redact_command(["x", text]) == f"x {shown}"


def test_a_flag_after_a_secret_flag_is_not_swallowed() -> None:
    assert redact_command(["x", "--password", "--secret", SECRET]) == "x --password --secret ***"


@pytest.mark.parametrize("length", [MAX_COMMAND_CHARACTERS - 1, MAX_COMMAND_CHARACTERS, MAX_COMMAND_CHARACTERS + 1])
def test_a_long_command_is_cut_and_says_so(length: int) -> None:
    shown = redact_command(["x" * length])
    assert len(shown) == min(length, MAX_COMMAND_CHARACTERS)
    assert shown.endswith("...") is (length > MAX_COMMAND_CHARACTERS)


@pytest.mark.parametrize("text", ["a" * 2_000_000, "-" * 2_000_000, "a:" * 1_000_000, "key=" * 500_000, "\n" * 2_000_000])
def test_a_hostile_length_costs_no_time(text: str) -> None:
    started = time.monotonic()
    assert len(redact_command([text] * 4)) <= MAX_COMMAND_CHARACTERS
    assert time.monotonic() - started < 5


@given(st.lists(st.text(max_size=60), max_size=8))
def test_no_arguments_make_it_raise_or_exceed_its_length(arguments: list[str]) -> None:
    assert len(redact_command(arguments)) <= MAX_COMMAND_CHARACTERS
