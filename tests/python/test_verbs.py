"""The verbs as functions: documents, progress, errors, and fit with a Hub that is not there."""

import filecmp
import inspect
import json
import shutil
import sys
import types
import warnings
from pathlib import Path

import glyd
import pytest
from conftest import MODELS

NAME = "tiny-qwen3-moe"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    target = tmp_path_factory.mktemp("verbs") / "packed"
    steps = []
    document = glyd.pack(
        MODELS[NAME], target, progress=lambda done, total, what: steps.append((done, total, what)) and None
    )
    assert document["verified"] is True and 11 < document["bits_per_weight"] < 11.6
    assert steps and all(done <= total for done, total, _ in steps)
    return target


def test_verify_and_unpack(packed, tmp_path):
    assert glyd.verify(str(packed), source=MODELS[NAME])["ok"] is True
    document = glyd.unpack(packed, tmp_path / "back")
    assert document["files"] >= 5
    compared = filecmp.dircmp(MODELS[NAME], tmp_path / "back")
    assert not (compared.left_only or compared.right_only or compared.diff_files or compared.funny_files)


@pytest.fixture
def damaged(packed, tmp_path):
    """The packed directory with a flipped bit in a tensor and another config.json."""
    directory = tmp_path / "damaged"
    shutil.copytree(packed, directory)
    shard = next(directory.glob("glyd-*.safetensors"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    (directory / "config.json").write_text("{}")
    return directory


def test_verify_names_every_fault(damaged):
    with pytest.raises(glyd.CorruptError) as caught:
        glyd.verify(damaged)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2 and "config.json" in lines[0] and "tensor" in lines[1]


@pytest.mark.parametrize("wrong", [{"context": -1}, {"context": 0}, {"batch": -3}])
def test_fit_takes_positive_numbers(wrong):
    with pytest.raises(glyd.InvalidArgumentError, match="at least 1"):
        glyd.fit(MODELS[NAME], gpu="48G", **wrong)


def test_dropped_shards_are_a_warning(tmp_path):
    staging = tmp_path / ".out.glyd-staging"
    staging.mkdir()
    (staging / "journal.json").write_text('{"settings": {"layout": "small"}, "shards": [{}, {}]}')
    with pytest.warns(UserWarning, match=r"2 shards of a stopped pack with other options \(layout small, now fast\)"):
        glyd.pack(MODELS[NAME], tmp_path / "out")


def test_dropped_shards_as_an_error_stop_the_pack(tmp_path):
    staging = tmp_path / ".out.glyd-staging"
    staging.mkdir()
    (staging / "journal.json").write_text('{"settings": {"layout": "small"}, "shards": [{}, {}]}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="stopped pack"):
            glyd.pack(MODELS[NAME], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_salvage_restores_what_is_intact(damaged, tmp_path):
    with pytest.raises(glyd.CorruptError):
        glyd.unpack(damaged, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    with pytest.raises(glyd.CorruptError, match="zeros in its place") as caught:
        glyd.unpack(damaged, tmp_path / "back", salvage=True)
    assert len(str(caught.value).splitlines()) == 1
    compared = filecmp.dircmp(MODELS[NAME], tmp_path / "back")
    assert not (compared.left_only or compared.right_only) and compared.diff_files == ["model.safetensors"]


def test_overwriting_never_loses_other_files(packed, tmp_path):
    target = tmp_path / "target"
    shutil.copytree(packed, target)
    (target / "notes.txt").write_text("mine")
    with pytest.raises(glyd.ExistsError, match="notes.txt"):
        glyd.pack(MODELS[NAME], target, overwrite=True)
    glyd.unpack(packed, tmp_path / "back")
    (tmp_path / "back" / "train.log").write_text("mine")
    with pytest.raises(glyd.ExistsError, match="train.log"):
        glyd.unpack(packed, tmp_path / "back", overwrite=True)
    assert (target / "notes.txt").read_text() == (tmp_path / "back" / "train.log").read_text() == "mine"


def test_sizes():
    total = glyd.sizes(MODELS[NAME])["models"][0]["total"]
    assert total["floor_bits"] < total["small_bits"] < total["fast_bits"] < 12
    assert total["small_bytes"] < total["fast_bytes"] < total["bf16_bytes"]


def test_inspect(packed):
    found = glyd.inspect(packed)
    assert found["format"] == "glyd-x1" and found["source"]["name"] == NAME
    assert found["packed_bytes"] < 0.75 * found["bf16_bytes"]


def test_doctor():
    assert glyd.doctor()["version"] == glyd.__version__


def test_an_existing_target_is_refused(packed):
    with pytest.raises(glyd.ExistsError, match="packed"):
        glyd.pack(MODELS[NAME], packed)
    assert glyd.pack(MODELS[NAME], packed, overwrite=True, verify=False)["verified"] is False


def test_a_missing_source_is_refused(tmp_path):
    with pytest.raises(glyd.NotFoundError, match="nothing-here") as caught:
        glyd.pack(tmp_path / "nothing-here", tmp_path / "out")
    assert isinstance(caught.value, FileNotFoundError) and not (tmp_path / "out").exists()


def test_progress_can_stop(tmp_path):
    with pytest.raises(glyd.CancelledError):
        glyd.pack(MODELS[NAME], tmp_path / "out", progress=lambda *_: True)
    assert not (tmp_path / "out").exists()


def test_an_error_in_progress_comes_out(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        glyd.pack(MODELS[NAME], tmp_path / "out", progress=interrupt)
    assert not (tmp_path / "out").exists()


def test_a_layout_that_nobody_may_ask_for_is_refused(tmp_path):
    for layout in ("raw", "tiny"):
        with pytest.raises(glyd.InvalidArgumentError, match="'fast', 'small' or 'auto'"):
            glyd.pack(MODELS[NAME], tmp_path / "out", layout=layout)
    assert not (tmp_path / "out").exists()


def test_signatures_say_what_can_be_given():
    said = ((glyd.from_pretrained, ("layout", "exact", "verify")), (glyd.save_pretrained, ("overwrite",)))
    for function, names in said:
        assert set(names) <= set(inspect.signature(function).parameters)
        assert all(name in function.__doc__ for name in names)
    assert "GlydConfig" in glyd.__doc__


def test_fit_says_where_the_model_ends():
    found = glyd.fit(MODELS[NAME], gpu="24GB", context=10**6)
    assert found.max_context < 10**6 and f"made for {found.max_context:,} tokens" in str(found)
    assert "22.4 GiB" in str(found)
    with pytest.raises(glyd.InvalidArgumentError, match="did you mean 24GB"):
        glyd.fit(MODELS[NAME], gpu=24)


def test_fit():
    found = glyd.fit(MODELS[NAME], gpu="48GB", context=1000, batch=2)
    assert found.context == 1000 and found.batch == 2 and found.kv_cache_bytes > 0
    assert found.row("small").weights_bytes < found.row("fast").weights_bytes < found.row("bf16").weights_bytes
    assert found.row("bf16").fits is True and found.to_dict()["rows"][0]["layout"] == "bf16"
    text = str(found)
    assert all(word in text for word in ("bf16", "fast", "small", "44.7 GiB", "yes"))
    assert glyd.fit(MODELS[NAME], gpu="1GB").row("small").fits is False
    with pytest.raises(glyd.InvalidArgumentError, match="H200"):
        glyd.fit(MODELS[NAME], gpu="toaster")


class FakeHub(types.ModuleType):
    """huggingface_hub with one repo, whose headers are those of the model in the repo."""

    def __init__(self):
        super().__init__("huggingface_hub")
        self.asked = []

    def hf_hub_download(self, repo_id, filename, revision=None, token=None):
        self.asked.append((repo_id, filename, revision, token))
        return str(MODELS[NAME] / filename)

    def get_safetensors_metadata(self, repo_id, revision=None, token=None):
        if repo_id != "someone/some-model":
            raise RuntimeError("404 no such repo")
        data = (MODELS[NAME] / "model.safetensors").read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        header.pop("__metadata__", None)
        tensors = {
            name: types.SimpleNamespace(dtype=t["dtype"], shape=t["shape"], data_offsets=tuple(t["data_offsets"]))
            for name, t in header.items()
        }
        file = types.SimpleNamespace(tensors=tensors)
        return types.SimpleNamespace(sharded=False, weight_map={}, files_metadata={"model.safetensors": file})


@pytest.fixture
def hub(monkeypatch, tmp_path):
    fake = FakeHub()
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty-cache"))
    return fake


def test_fit_reads_headers_from_the_hub(hub):
    found = glyd.fit("someone/some-model", gpu="48GB", context=512, revision="v1", token="t")
    local = glyd.fit(MODELS[NAME], gpu="48GB", context=512)
    assert found.model == "someone/some-model" and hub.asked == [("someone/some-model", "config.json", "v1", "t")]
    assert found.kv_cache_bytes == local.kv_cache_bytes
    assert [row.weights_bytes for row in found.rows] == [row.weights_bytes for row in local.rows]


def test_fit_of_an_unknown_repo(hub):
    with pytest.raises(glyd.NotFoundError, match="someone/else.*404"):
        glyd.fit("someone/else", gpu="48GB")


def test_fit_of_a_missing_directory_does_not_ask_the_hub(hub, tmp_path):
    with pytest.raises(glyd.NotFoundError):
        glyd.fit(tmp_path / "nothing", gpu="48GB")
    assert hub.asked == []


def test_the_program_is_named_where_it_is_missing(monkeypatch):
    from glyd import __main__ as program

    monkeypatch.setattr(program, "program_path", lambda: Path("/nowhere/glyd"))
    with pytest.raises(SystemExit, match="pip install"):
        program.main()
