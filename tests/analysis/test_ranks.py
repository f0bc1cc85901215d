import math

import pytest

from genorder.analysis.ranks import RankAgreement, agreement, identification_rates, pairs_in_sequence, rank_of


@pytest.mark.parametrize(
    ("losses", "candidate", "rank"),
    [
        ([0.1], 0, 1),
        ([0.3, 0.1, 0.2], 1, 1),
        ([0.3, 0.1, 0.2], 2, 2),
        ([0.3, 0.1, 0.2], 0, 3),
        ([0.1, 0.1, 0.2], 0, 2),  # the worst place of a tie
        ([0.1, 0.1, 0.2], 1, 2),
        ([0.1, 0.1, 0.1], 1, 3),
        ([math.inf, 0.5, 0.7], 0, 3),
        ([math.nan, 0.5, 0.7], 0, 3),
        ([-math.inf, 0.5, 0.7], 0, 3),
        ([math.nan, math.inf, 0.7], 0, 3),
        ([math.nan, math.inf, 0.7], 2, 1),
    ],
)
def test_rank(losses: list[float], candidate: int, rank: int) -> None:
    assert rank_of(losses, candidate) == rank


def test_identification() -> None:
    rates = identification_rates([1, 1, 4, 10, 50])
    assert rates == {"top_1": 0.4, "top_5": 0.6, "top_10": 0.8, "median_rank": 4.0}
    assert identification_rates([1, 2], tops=(1, 2)) == {"top_1": 0.5, "top_2": 1.0, "median_rank": 1.5}
    with pytest.raises(ValueError, match="no ranks were given"):
        identification_rates([])


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [([0, 1, 2], [0, 1, 2], 1), ([0, 1, 2], [2, 1, 0], 0), ([2, 0, 1], [0, 2, 1], 2 / 3), ([1, 2, 0], [2, 0, 1], 1 / 3),
     ([0], [0], 1)],
)  # fmt: skip
def test_pairs_in_the_same_sequence(one: list[int], other: list[int], share: float) -> None:
    assert pairs_in_sequence(one, other) == pairs_in_sequence(other, one) == pytest.approx(share)


def test_full_agreement() -> None:
    found = agreement([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    assert found.spearman == pytest.approx(1)
    assert found.pearson == pytest.approx(-1)
    assert found.top_5_overlap == 1
    assert found.mean_rank_gap == 0


def test_full_disagreement() -> None:
    found = agreement([0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2, 0.3])
    assert found.spearman == pytest.approx(-1)
    assert found.pearson == pytest.approx(1)
    assert found.top_5_overlap == 1  # there are but four
    assert found.mean_rank_gap == pytest.approx((3 + 1 + 1 + 3) / 4)


def test_by_hand() -> None:
    """Ranks 1 2 3 4 5 against 2 1 4 3 5: 1 - 6 * 4 / (5 * 24)."""
    found = agreement([1.0, 2.0, 3.0, 4.0, 5.0], [0.8, 0.9, 0.4, 0.5, 0.0])
    assert found.spearman == pytest.approx(0.8)
    assert found.mean_rank_gap == pytest.approx(0.8)
    # Sums of products about the means 3 and 0.52: -2 * 0.28 - 0.38 + 0 * ... - 0.02 - 2 * 0.52 = -2.0
    spread = math.sqrt(10 * (0.28**2 + 0.38**2 + 0.12**2 + 0.02**2 + 0.52**2))
    assert found.pearson == pytest.approx(-2.0 / spread)


def test_the_papers_correlation_of_the_relu_delay_network() -> None:
    """Success 73.3, 100, 84.6, 63.0, 0; the table says rho = 0.90, so one pair of neighbours is swapped."""
    found = agreement([3.0, 1.0, 2.0, 4.0, 5.0], [73.3, 100.0, 84.6, 63.0, 0.0])
    assert found.spearman == pytest.approx(1.0)
    swapped = agreement([2.0, 1.0, 3.0, 4.0, 5.0], [73.3, 100.0, 84.6, 63.0, 0.0])
    assert swapped.spearman == pytest.approx(0.9)


def test_overlap_of_the_first_five() -> None:
    losses = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    rates = [0.9, 0.8, 0.7, 0.1, 0.1, 0.1, 0.1, 0.1, 0.6, 0.5]
    assert agreement(losses, rates).top_5_overlap == pytest.approx(3 / 5)


def test_ties_share_their_rank() -> None:
    found = agreement([0.1, 0.1, 0.3], [1.0, 1.0, 0.0])
    assert found.spearman == pytest.approx(1)
    assert found.mean_rank_gap == 0


@pytest.mark.parametrize(("losses", "rates"), [([1.0, 1.0, 1.0], [0.1, 0.2, 0.3]), ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])])
def test_no_correlation_with_a_constant(losses: list[float], rates: list[float]) -> None:
    found = agreement(losses, rates)
    assert math.isnan(found.spearman)
    assert math.isnan(found.pearson)
    assert found.mean_rank_gap == pytest.approx(2 / 3)


def test_losses_that_are_not_finite_rank_last_and_leave_pearson_alone() -> None:
    found = agreement([0.1, math.nan, 0.2, math.inf], [0.9, 0.0, 0.8, 0.0])
    assert found.spearman == pytest.approx(1)
    assert found.pearson == pytest.approx(-1)
    none = agreement([math.inf, math.nan], [0.5, 0.2])
    assert math.isnan(none.spearman)
    assert math.isnan(none.pearson)
    assert isinstance(none, RankAgreement)


@pytest.mark.parametrize(("losses", "rates"), [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([], [])])
def test_sizes_must_match(losses: list[float], rates: list[float]) -> None:
    with pytest.raises(ValueError, match="expected as many losses as success rates, two or more"):
        agreement(losses, rates)
