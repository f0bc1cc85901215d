"""The exported folder: loaded by transformers alone, it gives the tokens that `genorder predict` gives."""

import json
from pathlib import Path

import pytest
import torch
from export_helpers import program_of_card, trained

from genorder.data import SequenceDataset, Vocabulary, write_jsonl
from genorder.data.encoding import SPECIAL_NAMES
from genorder.errors import InputError
from genorder.evaluation import evaluate, predict
from genorder.export import export_run
from genorder.export.tokenizer import word_of
from genorder.models import GPT, GPTConfig, SavedModel, load_model
from genorder.models.gpt2 import from_gpt2, gpt2_files, to_gpt2
from genorder.orders import Order
from genorder.runs import read_finished_run
from genorder.seeding import torch_generator
from genorder.tasks import Split, make_task, task_dataset

transformers = pytest.importorskip("transformers")

CPU = torch.device("cpu")
FILES = {
    "README.md", "config.json", "generation_config.json", "genorder.json", "model.safetensors", "tokenizer.json",
    "tokenizer_config.json",
}  # fmt: skip


def inputs_of(length: str, samples: int) -> list[list[str]]:
    dataset = task_dataset(make_task("relu", length), Split.TEST, samples, seed=5)
    return [dataset.input(row) for row in range(samples)]


@pytest.mark.parametrize(("name", "length"), [("fixed_run", "4"), ("variable_run", "3-6")])
def test_the_cards_program_gives_the_tokens_of_predict(
    request: pytest.FixtureRequest, name: str, length: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Token for token, on 1,000 test inputs; many of them right, so that they are no constant."""
    run_dir = request.getfixturevalue(name)
    exported = export_run(run_dir, "hf", "out")
    assert {*exported.files} == FILES == {path.name for path in Path("out").iterdir()}
    inputs = inputs_of(length, 1000)
    expected = predict(load_model(run_dir / "model", CPU), inputs)
    capsys.readouterr()
    _, from_transformers = program_of_card(Path("out"))
    shown = capsys.readouterr()
    assert "[transformers]" not in shown.err  # it has nothing to warn of
    assert from_transformers(inputs) == expected
    assert predict(load_model(Path("out"), CPU), inputs) == expected
    first_test_input = read_finished_run(run_dir).source.splits.test.input(0)
    assert shown.out == f"{from_transformers([first_test_input])}\n"
    dataset = task_dataset(make_task("relu", length), Split.TEST, 1000, seed=5)
    right = sum(guess == dataset.target(row) for row, guess in enumerate(expected))
    assert right > 100
    if "-" in length:
        assert {len(guess) for guess in expected} >= {3, 4, 5, 6}


def test_a_prompt_may_come_without_a_mask(variable_run: Path) -> None:
    """transformers must not take the padding of a short input for nothing: the model has learnt to read it."""
    export_run(variable_run, "hf", "out")
    model = transformers.AutoModelForCausalLM.from_pretrained("out")
    ids = torch.tensor([[5, 6, 7, 0, 0, 0, 1]])
    masked = model.generate(ids, attention_mask=torch.ones_like(ids))
    assert torch.equal(model.generate(ids), masked)
    hidden = model.generate(ids, attention_mask=(ids != 0).long())
    assert not torch.equal(hidden, masked)


def test_transformers_loads_every_weight(fixed_run: Path, caplog: pytest.LogCaptureFixture) -> None:
    export_run(fixed_run, "hf", "out")
    model, info = transformers.AutoModelForCausalLM.from_pretrained("out", output_loading_info=True)
    assert type(model).__name__ == "GPT2LMHeadModel"
    assert not any(info.values())
    ours = load_model(fixed_run / "model", CPU).model
    tokens = torch.tensor([[5, 9, 11, 4, 1, 7, 3, 8, 6]])
    torch.testing.assert_close(model(tokens).logits, ours(tokens), rtol=1e-4, atol=1e-5)
    # Whole sequences, EOS included, as transformers' own training feeds them.
    assert model(torch.cat([tokens, torch.tensor([[2]])], dim=1)).logits.shape[1] == ours.positions + 1


def test_weights_there_and_back() -> None:
    config = GPTConfig(layers=3, heads=2, width=8, feedforward=12)
    model = GPT(config, vocabulary=7, positions=9, rng=torch_generator(5))
    ours, back = model.state_dict(), from_gpt2(to_gpt2(model), layers=3)
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[name], ours[name]) for name in ours)


def test_the_export_is_the_model(fixed_run: Path) -> None:
    export_run(fixed_run, "hf", "out")
    first, second = (load_model(folder, CPU) for folder in (fixed_run / "model", Path("out")))
    assert (first.vocabulary, first.order) == (second.vocabulary, second.order)
    assert (first.input_width, first.shortest_input) == (second.input_width, second.shortest_input)
    assert first.model.config == second.model.config
    before, after = first.model.state_dict(), second.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_card(fixed_run: Path) -> None:
    export_run(fixed_run, "hf", "out")
    card = Path("out/README.md").read_text(encoding="utf-8")
    result = json.loads((fixed_run / "result.json").read_text())
    low, high = result["success_rate_interval"]
    for text in (
        "[2, 0, 3, 1]",
        "| data | the built-in task `relu`, length 4 |",
        "4000 train, 20 validation, 50 test",
        f"{100 * result['success_rate']:.1f} % ({100 * low:.1f} to {100 * high:.1f}) on 50 test samples",
        "| seed | 0 |",
        "All inputs have 4 tokens.",
    ):
        assert text in card
    assert "percent-encoded" not in card


ODD = ["a b", "a%20b", "%", "", "<eos>", "x<sep>y", "<pad", "\u3000", "\x1f", "#", "é", "\ud800", "7", "-3", "<", "\n"]


def test_words_of_odd_tokens_are_different_and_survive_the_tokenizer(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of(ODD)
    words = [word_of(token) for token in vocabulary.tokens]
    assert len(set(words)) == len(ODD)
    assert all(word.split() == [word] for word in words)
    assert not {*words} & {*SPECIAL_NAMES}
    assert [word_of(token) for token in ("7", "-3", "é", "#", "<", "<pad")] == ["7", "-3", "é", "#", "<", "<pad"]
    assert [word_of(token) for token in ("a b", "a%20b", "<eos>", "")] == ["a%20b", "a%2520b", "%3Ceos>", "%"]


@pytest.fixture(scope="session")
def odd_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Targets repeat the inputs, whose tokens hold all that a tokenizer might stumble over."""
    folder = tmp_path_factory.mktemp("odd")
    rng = torch_generator(0)
    rows = [[ODD[int(torch.randint(len(ODD), (1,), generator=rng))] for _ in range(3)] for _ in range(600)]
    write_jsonl(SequenceDataset.from_sequences(rows, rows), folder / "odd data.jsonl")
    return trained(folder / "run", folder / "odd data.jsonl", "--order", "1,2,0", steps=60)


def test_odd_tokens_through_transformers(odd_run: Path) -> None:
    export_run(odd_run, "hf", "out")
    saved = load_model(Path("out"), CPU)
    tokenizer = transformers.AutoTokenizer.from_pretrained("out")
    words = [word_of(token) for token in saved.vocabulary.tokens]
    ids = list(range(3 + len(words)))
    assert tokenizer(" ".join([*SPECIAL_NAMES, *words]))["input_ids"] == ids
    assert tokenizer.convert_ids_to_tokens(ids) == [*SPECIAL_NAMES, *words]
    assert tokenizer("  ".join(words), add_special_tokens=True)["input_ids"] == ids[3:]
    _, from_transformers = program_of_card(Path("out"))
    splits = read_finished_run(odd_run).source.splits
    inputs = [splits.test.input(row) for row in range(len(splits.test))]
    expected = predict(load_model(odd_run / "model", CPU), inputs)
    assert from_transformers(inputs) == expected
    assert len({token for target in expected for token in target}) > len(ODD) / 2
    card = Path("out/README.md").read_text(encoding="utf-8")
    assert "percent-encoded" in card
    assert "| data | `odd data.jsonl` |" in card
    assert str(odd_run.parent) not in card


def test_a_word_that_the_model_does_not_know_is_an_error(fixed_run: Path) -> None:
    export_run(fixed_run, "hf", "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained("out")
    with pytest.raises(Exception, match="UNK"):
        tokenizer("1 2 nonsense")


def test_damaged_exports_are_refused(fixed_run: Path) -> None:
    export_run(fixed_run, "hf", "out")
    weights = Path("out/model.safetensors")
    content = weights.read_bytes()
    weights.write_bytes(content[:-4] + b"\0\0\1\0")
    with pytest.raises(InputError, match=r"model.safetensors is damaged: .* genorder.json; export again"):
        load_model(Path("out"), CPU)
    weights.unlink()
    with pytest.raises(InputError, match=r"cannot read out/model.safetensors"):
        load_model(Path("out"), CPU)
    Path("out/genorder.json").write_text('{"format": "genorder-export/0"}')
    with pytest.raises(InputError, match="not of the format genorder-export/1"):
        load_model(Path("out"), CPU)


def test_what_is_there_is_not_replaced_unless_asked(fixed_run: Path, variable_run: Path) -> None:
    Path("out").mkdir()
    export_run(fixed_run, "hf", "out")  # an empty folder is taken
    with pytest.raises(InputError, match=r"holds an earlier export; .* --force"):
        export_run(variable_run, "hf", "out")
    Path("out/LICENSE").write_text("mine")
    export_run(variable_run, "hf", "out", force=True)
    assert len(load_model(Path("out"), CPU).order) == 6
    assert Path("out/LICENSE").read_text() == "mine"
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="no earlier export that --force could replace"):
        export_run(fixed_run, "hf", "mine", force=True)
    with pytest.raises(InputError, match="is a file"):
        export_run(fixed_run, "hf", "mine/thesis.tex", force=True)
    assert [path.name for path in Path("mine").iterdir()] == ["thesis.tex"]


def test_a_failed_export_leaves_nothing(fixed_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from genorder.export import huggingface

    written: list[Path] = []

    def full(path: Path, content: bytes) -> None:
        if written:
            raise InputError("cannot write: No space left on device")
        written.append(path)
        path.write_bytes(content)

    monkeypatch.setattr(huggingface, "write_bytes_atomic", full)
    with pytest.raises(InputError, match="No space left"):
        export_run(fixed_run, "hf", "parent/out")
    assert written
    assert list(Path("parent").iterdir()) == []


def test_dropout_and_widths_are_in_the_configuration() -> None:
    config = GPTConfig(layers=2, heads=4, width=16, feedforward=24, dropout=0.25)
    model = GPT(config, vocabulary=7, positions=6, rng=torch_generator(0))
    saved = SavedModel(model, Vocabulary.of("abcd"), Order((1, 0)), input_width=3, shortest_input=2)
    files = gpt2_files(saved, {"seed": 7})
    assert list(files)[-1] == "genorder.json"
    assert json.loads(files["genorder.json"])["seed"] == 7
    written = transformers.GPT2Config(**json.loads(files["config.json"]))
    assert (written.n_layer, written.n_head, written.n_embd, written.n_inner) == (2, 4, 16, 24)
    assert (written.n_positions, written.vocab_size, written.resid_pdrop) == (7, 7, 0.25)


def test_evaluation_of_an_export_is_that_of_the_run(fixed_run: Path) -> None:
    from genorder.data import encode

    export_run(fixed_run, "hf", "out")
    saved = load_model(Path("out"), CPU)
    test = read_finished_run(fixed_run).source.splits.test
    found = evaluate(saved.model, encode(test, input_width=4, target_width=4), saved.order)
    assert found.success_rate == json.loads((fixed_run / "result.json").read_text())["success_rate"]
