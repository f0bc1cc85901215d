"""What users ask of orders: which are allowed, how others are repaired, and what cannot be asked for."""

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genorder.errors import InputError
from genorder.orders import Constraints, Order, parse_before
from genorder.seeding import numpy_generator


@st.composite
def feasible(draw: st.DrawFn, longest: int = 7) -> tuple[Constraints, int]:
    """Constraints, made around an order that meets them, and its length."""
    first, last, size = draw(st.integers(0, 3)), draw(st.integers(0, 3)), draw(st.integers(1, 3))
    blocks = draw(st.integers(0, max(0, (longest - first - last) // size)))
    length = first + last + size * blocks
    if length == 0:
        return Constraints(), 1
    middle = [first + size * block + place for block in draw(st.permutations(range(blocks))) for place in range(size)]
    order = [*range(first), *middle, *range(length - last, length)]
    steps = st.lists(st.tuples(st.integers(0, length - 1), st.integers(0, length - 1)), max_size=5)
    pairs = tuple((order[min(pair)], order[max(pair)]) for pair in draw(steps) if pair[0] != pair[1])
    return Constraints(keep_first=first, keep_last=last, groups=size, before=pairs), length


@st.composite
def feasible_with_order(draw: st.DrawFn) -> tuple[Constraints, Order]:
    constraints, length = draw(feasible())
    return constraints, Order.of(draw(st.permutations(range(length))))


def meets(order: tuple[int, ...], constraints: Constraints) -> bool:
    """The definition, read off the order itself."""
    length, first, last = len(order), constraints.keep_first, constraints.keep_last
    middle = order[first : length - last]
    size = constraints.groups
    blocks = [middle[at : at + size] for at in range(0, len(middle), size)]
    return (
        list(order[:first]) == list(range(first))
        and list(order[length - last :]) == list(range(length - last, length))
        and all((block[0] - first) % size == 0 for block in blocks)
        and all(list(block) == list(range(block[0], block[0] + size)) for block in blocks)
        and all(order.index(one) < order.index(other) for one, other in constraints.before)
    )


@given(feasible_with_order())
def test_repaired_orders_are_allowed_and_allowed_ones_stay(case: tuple[Constraints, Order]) -> None:
    constraints, order = case
    repaired = constraints.repaired(order)
    assert sorted(repaired) == list(range(len(order)))
    assert meets(repaired.indices, constraints)
    assert constraints.allows(repaired)
    assert constraints.allows(order) == meets(order.indices, constraints) == (repaired == order)
    assert constraints.repaired(repaired) == repaired


@given(feasible(longest=6))
def test_all_allowed_orders(case: tuple[Constraints, int]) -> None:
    constraints, length = case
    expected = {indices for indices in permutations(range(length)) if meets(indices, constraints)}
    found = [order.indices for order in constraints.all_orders(length)]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert constraints.count(length, 10_000) == len(expected)
    assert constraints.count(length, 2) == min(2, len(expected))
    everything = constraints.random_orders(length, 10_000, numpy_generator(0))
    assert sorted(order.indices for order in everything) == sorted(expected)


@given(feasible(), st.integers(0, 5), st.integers(1, 4))
def test_random_orders_are_allowed(case: tuple[Constraints, int], seed: int, count: int) -> None:
    constraints, length = case
    rng = numpy_generator(seed)
    orders = [*constraints.random_orders(length, count, rng), constraints.random(length, rng)]
    assert all(meets(order.indices, constraints) for order in orders)
    assert len(set(orders[:-1])) == len(orders) - 1 <= count


def test_every_allowed_order_can_be_drawn() -> None:
    constraints = Constraints(keep_first=1, groups=2, before=((1, 5),))
    rng = numpy_generator(0)
    drawn = Counter(constraints.random(9, rng) for _ in range(2000))
    assert set(drawn) == set(constraints.all_orders(9))


@pytest.mark.parametrize(
    ("constraints", "order", "repaired"),
    [
        (Constraints(keep_first=2), (3, 1, 4, 0, 2), (0, 1, 3, 4, 2)),
        (Constraints(keep_last=2), (3, 1, 4, 0, 2), (1, 0, 2, 3, 4)),
        (Constraints(groups=2), (0, 5, 1, 4, 3, 2), (0, 1, 4, 5, 2, 3)),
        (Constraints(groups=2), (5, 2, 0, 1, 3, 4), (4, 5, 2, 3, 0, 1)),  # equal means: the earliest first
        (Constraints(groups=2), (5, 4, 2, 1, 3, 0), (4, 5, 2, 3, 0, 1)),
        (Constraints(keep_first=1, groups=2), (3, 4, 0, 1, 2), (0, 3, 4, 1, 2)),
        (Constraints(before=((0, 3),)), (3, 1, 0, 2), (1, 0, 3, 2)),
        (Constraints(before=((0, 1), (1, 2))), (2, 1, 0, 3), (0, 1, 2, 3)),
    ],
)
def test_repairs(constraints: Constraints, order: tuple[int, ...], repaired: tuple[int, ...]) -> None:
    assert constraints.repaired(Order(order)) == Order(repaired)


@given(feasible_with_order(), st.data())
def test_renamed_columns_give_the_renamed_repair(case: tuple[Constraints, Order], data: st.DataObject) -> None:
    """Where the constraints can be renamed too: pairs alone."""
    pairs, order = Constraints(before=case[0].before), case[1]
    names = Order.of(data.draw(st.permutations(range(len(order)))))
    renamed = Constraints(before=tuple((names[one], names[other]) for one, other in pairs.before))
    assert renamed.repaired(names.compose(order)) == names.compose(pairs.repaired(order))


@given(feasible_with_order(), st.integers(1, 7))
def test_shorter_samples_keep_what_was_asked_for(case: tuple[Constraints, Order], shorter: int) -> None:
    constraints, length = case[0], min(shorter, len(case[1]))
    order = constraints.repaired(case[1]).restrict(length)
    places = order.inverse()
    first, end = constraints.keep_first, len(case[1]) - constraints.keep_last
    assert list(order)[: min(first, length)] == list(range(min(first, length)))
    assert list(order)[min(end, length) :] == list(range(end, length))
    for column in range(first, min(end, length) - 1):
        if (column + 1 - first) % constraints.groups:
            assert places[column + 1] == places[column] + 1
    for one, other in constraints.before:
        if max(one, other) < length:
            assert places[one] < places[other]


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        (Constraints(keep_first=4, keep_last=3), "--keep-first 4 and --keep-last 3 keep more columns than the 6 there"),
        (Constraints(keep_first=7), "--keep-first 7 and --keep-last 0 keep more columns than the 6"),
        (Constraints(groups=4), "--groups 4: the 6 free columns .* are not a whole number of blocks of 4"),
        (Constraints(keep_first=1, groups=2), "--groups 2: the 5 free columns"),
        (Constraints(before=((0, 6),)), "--before 0<6: there is no column 6; the targets have 0 to 5"),
        (Constraints(before=((-1, 2),)), "there is no column -1"),
        (Constraints(before=((0, 1), (1, 0))), "--before (0<1, 1<0|1<0, 0<1): they form a cycle"),
        (Constraints(before=((4, 2), (2, 0), (0, 4), (1, 3))), "(?=.*4<2)(?=.*2<0)(?=.*0<4)(?!.*1<3).*form a cycle"),
        (Constraints(groups=2, before=((0, 3), (2, 1))), "(?=.*0<3)(?=.*2<1).*form a cycle"),
        (Constraints(keep_first=2, before=((1, 0),)), "--before 1<0 contradicts --keep-first 2"),
        (Constraints(keep_first=2, before=((4, 0),)), "--before 4<0 contradicts --keep-first 2, by which column 0"),
        (Constraints(keep_last=2, before=((5, 4),)), "--before 5<4 contradicts --keep-last 2"),
        (Constraints(keep_last=2, before=((4, 1),)), "--before 4<1 contradicts --keep-last 2, by which column 1"),
        (Constraints(groups=3, before=((5, 3),)), "--before 5<3 contradicts --groups 3, by which column 3"),
    ],
)
def test_what_no_order_can_meet_is_refused(constraints: Constraints, reason: str) -> None:
    for asked in (
        constraints.check,
        lambda length: constraints.allows(Order.forward(length)),
        lambda length: constraints.repaired(Order.reverse(length)),
        lambda length: constraints.random(length, numpy_generator(0)),
    ):
        with pytest.raises(InputError, match=reason) as caught:
            asked(6)
        assert "\n" not in str(caught.value)


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6))
def test_pairs_are_refused_if_and_only_if_no_order_meets_them(length: int, drawn: list[tuple[int, int]]) -> None:
    pairs = tuple((one % length, other % length) for one, other in drawn if one % length != other % length)
    constraints = Constraints(before=pairs)
    if any(meets(indices, constraints) for indices in permutations(range(length))):
        constraints.check(length)
    else:
        with pytest.raises(InputError, match="form a cycle"):
            constraints.check(length)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"keep_first": -1}, "--keep-first -1: expected a number of columns, at least 0"),
        ({"keep_last": True}, "--keep-last True: expected"),
        ({"groups": 0}, "--groups 0: expected a number of columns, at least 1"),
        ({"groups": 2.0}, "--groups 2.0: expected"),
        ({"before": ((1, 1),)}, "--before 1<1: a column cannot come before itself"),
        ({"before": ("1<2",)}, "--before '1<2': expected a pair of columns"),
        ({"before": 3}, "--before 3: expected pairs"),
        ({"before": ((1, 2, 3),)}, "expected a pair of columns"),
    ],
)
def test_what_no_data_can_have_is_refused_at_once(asked: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Constraints(**asked)  # type: ignore[arg-type]


def test_one_value_however_it_is_written() -> None:
    constraints = Constraints(keep_first=1, groups=2, before=((7, 3), (2, 5), (7, 3)))
    assert constraints == Constraints(keep_first=1, groups=2, before=parse_before(["2<5", "7 < 3"]))
    assert constraints == Constraints.from_dict(constraints.to_dict())
    assert str(constraints) == "--keep-first 1 --groups 2 --before 2<5 --before 7<3"
    assert (bool(constraints), bool(Constraints()), bool(Constraints(groups=1, keep_last=0))) == (True, False, False)


def test_pairs_as_text() -> None:
    assert parse_before([]) == ()
    assert parse_before(["3<7, 2<5", "0<1"]) == ((3, 7), (2, 5), (0, 1))


@pytest.mark.parametrize("text", ["", "3", "3<", "<3", "3>7", "3<7<9", "-1<2", "a<b", "3<7,", "3<7;2<5", "1.5<2"])
def test_text_that_names_no_pair(text: str) -> None:
    with pytest.raises(InputError, match="expected two columns such as 3<7"):
        parse_before([text])
