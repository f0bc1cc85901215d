import pytest
import torch
from evaluation_helpers import generate_plainly, random_model

from genorder.data.encoding import EOS, PAD
from genorder.evaluation import generate_greedily
from genorder.seeding import torch_generator

WIDTH, LONGEST, VOCABULARY = 4, 6, 6


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_equals_a_plain_loop(seed: int, batch_size: int) -> None:
    model = random_model(VOCABULARY, WIDTH + LONGEST, seed=seed)
    inputs = torch.randint(3, VOCABULARY, (20, WIDTH), generator=torch_generator(seed), dtype=torch.int32)
    generated = generate_greedily(model, inputs, LONGEST, batch_size)
    assert generated.shape == (20, LONGEST)
    assert generated.dtype == torch.int64
    assert generated.tolist() == [generate_plainly(model, row, LONGEST) for row in inputs.tolist()]


def test_the_cases_compared_are_of_every_kind() -> None:
    """Some end early and some never, and outputs differ: else the comparison would say little."""
    outputs = []
    for seed in range(6):
        model = random_model(VOCABULARY, WIDTH + LONGEST, seed=seed)
        inputs = torch.randint(3, VOCABULARY, (20, WIDTH), generator=torch_generator(seed))
        outputs.extend(generate_greedily(model, inputs, LONGEST).tolist())
    ends = {row.index(EOS) if EOS in row else None for row in outputs}
    assert None in ends
    assert len(ends) >= 3
    assert len({tuple(row) for row in outputs}) > 20


def test_pad_after_eos_even_if_others_go_on() -> None:
    for seed in range(6):
        model = random_model(VOCABULARY, WIDTH + LONGEST, seed=seed)
        inputs = torch.randint(3, VOCABULARY, (20, WIDTH), generator=torch_generator(seed))
        for row in generate_greedily(model, inputs, LONGEST).tolist():
            if EOS in row:
                assert all(token == PAD for token in row[row.index(EOS) + 1 :])


def test_no_samples_and_no_inputs() -> None:
    model = random_model(VOCABULARY, WIDTH + LONGEST)
    assert generate_greedily(model, torch.empty((0, WIDTH), dtype=torch.int32), LONGEST).shape == (0, LONGEST)
    without_input = generate_greedily(model, torch.empty((2, 0), dtype=torch.int32), LONGEST)
    assert without_input.tolist() == [generate_plainly(model, [], LONGEST)] * 2


def test_sets_the_model_to_inference() -> None:
    model = random_model(VOCABULARY, WIDTH + LONGEST).train()
    generate_greedily(model, torch.full((1, WIDTH), 3), 2)
    assert not model.training
