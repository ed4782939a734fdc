"""python -m glyd.check: what it says of a model, and what it says when something differs."""

import json

from conftest import MODELS
from glyd import check

QUICK = ["--device", "cpu", "--batch", "2", "--lengths", "5", "--tokens", "4"]


def test_all_holds(model_name, capsys):
    assert check.main([str(MODELS[model_name]), *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("all of it holds") and all(line.startswith("ok ") for line in lines[:-1])
    assert sum("logits, 2 prompts of 5 tokens" in line for line in lines) == 2


def test_a_packed_directory(model_name, packed_directory, capsys):
    assert check.main([str(packed_directory), *QUICK, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] and document["checks"][0]["what"] == "the packed directory: every sha256"


def test_what_differs_is_named(monkeypatch, capsys):
    def another(*arguments):
        logits, texts = of_the_model(*arguments)
        return {key: values + (values == values.max()) for key, values in logits.items()}, texts

    of_the_model = check.reference
    monkeypatch.setattr(check, "reference", another)
    assert check.main([str(MODELS["tiny-qwen3"]), *QUICK]) == check.DIFFERS
    said = capsys.readouterr().out
    assert "DIFFERS  packed: logits, 2 prompts of 5 tokens: 1 of 40,960 values" in said and "SOMETHING DIFFERS" in said


def test_a_model_that_is_not_there(capsys):
    assert check.main(["no-such-directory/model", *QUICK]) not in (0, check.DIFFERS)
    assert "glyd: no-such-directory/model" in capsys.readouterr().err
