import numpy as np
import pytest

from genorder.dependencies import relations
from genorder.dependencies.relations import SameToken, Screen
from genorder.dependencies.samples import SampleTable
from made_data import encoded

TOKENS = (2, 3, 40)  # of the target: with many, all pairs of samples are screened, with few a part of them


@pytest.mark.parametrize("tokens", TOKENS)
def test_rates_and_times_are_those_of_all_pairs_of_samples_screened(
    tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "_ENTRIES", 4_000)  # 1,000 of 8,000 pairs, by the least that is taken
    monkeypatch.setattr(relations, "_CHUNK", 700)
    monkeypatch.setattr(relations, "_FEW_SAME", 100)
    rng = np.random.default_rng(tokens)
    inputs_NW = rng.integers(4, size=(2_000, 3))
    noisy_N = np.where(rng.random(2_000) < 0.2, inputs_NW[:, 0] % 2, rng.integers(tokens, size=2_000))
    targets_NL = np.stack([noisy_N, inputs_NW[:, 1]], axis=1)
    table = SampleTable(encoded(inputs_NW, targets_NL), 2_000, np.random.default_rng(0))
    screened = Screen(table, 8_000, np.random.default_rng(1))
    relation = SameToken(table, 0)
    everything = np.arange(5)
    rate_PP, times_PP = screened.rates(relation, everything, everything)
    pairs_2M = screened._many.pairs_2M if tokens == 40 else screened._few.pairs_2M
    agree_MP, weighted_MP = table.agreement(pairs_2M)
    same_M = ~relation.violated(pairs_2M)
    for p in range(3):
        for q in range(3):
            assert times_PP[p, q] == (agree_MP[:, p] & agree_MP[:, q]).sum()
            weight_M = weighted_MP[:, p] * weighted_MP[:, q]
            rate = 1 - weight_M[same_M].sum() / weight_M.sum()
            expected = relations.judged(np.array(rate), times_PP[p, q], relation.base_rate, 5.0)
            assert rate_PP[p, q] == pytest.approx(float(expected), abs=1e-5)
    assert (rate_PP[3] == np.float32(relation.base_rate)).all()  # the target tells nothing of itself
    part_RK, _ = screened.rates(relation, np.array([2]), np.array([0, 4]))
    assert part_RK == pytest.approx(rate_PP[np.ix_([2], [0, 4])], abs=1e-6)


def test_what_was_seen_without_a_violation_is_clean() -> None:
    rng = np.random.default_rng(0)
    inputs_NW = rng.integers(3, size=(3_000, 3))
    targets_NL = ((inputs_NW[:, :1] + inputs_NW[:, 1:2]) % 3).repeat(2, axis=1)
    targets_NL[:, 1] = rng.integers(3, size=3_000)
    table = SampleTable(encoded(inputs_NW, targets_NL), 3_000, np.random.default_rng(0))
    screened = Screen(table, 20_000, np.random.default_rng(1))
    relation = SameToken(table, 0)
    clean_PP = screened.clean(relation, *screened.rates(relation, np.arange(5), np.arange(5)))
    assert np.argwhere(np.triu(clean_PP)).tolist() == [[0, 1]]
