"""Working outwards from the inputs, on sums that can be solved for any of their terms."""

import copy
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from any_order_helpers import SMALL, task_data

from genorder.data import EncodedDataset
from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.models.routed import RoutedModel
from genorder.orders import Constraints, Order, cost_ratio
from genorder.profiling.any_order import AnyOrderConfig, AnyOrderOracle, routed_model
from genorder.profiling.blind import blind_loss, blind_losses
from genorder.profiling.dependencies import learned_dependencies
from genorder.profiling.outward import OutwardTraining, fit_outward
from genorder.search.reading import Reading, chosen, read_outward, verdict
from genorder.training import CheckpointFolder
from made_data import TOKENS, encoded

INPUTS, TARGETS = 5, 12
HIDDEN = Order((5, 2, 7, 10, 0, 3, 9, 6, 1, 11, 4, 8))  # column c holds the target HIDDEN[c]
CONFIG = SMALL.model_copy(update={"training": SMALL.training.model_copy(update={"steps": 400})})


def with_outward(**changes: Any) -> AnyOrderConfig:
    return CONFIG.model_copy(update={"outward": CONFIG.outward.model_copy(update=changes)})


@cache
def splits(kind: str) -> tuple[EncodedDataset, EncodedDataset]:
    """sums: y_j = y_(j-4) + y_(j-5), where the inputs come before y_0: most targets stand in three relations."""
    rng = np.random.default_rng(0)
    parts = []
    for samples in (4_000, 400):
        inputs_NW = rng.integers(TOKENS, size=(samples, INPUTS))
        columns = list(inputs_NW.T)
        for target in range(TARGETS):
            if kind == "sums":
                columns.append((columns[-4] + columns[-5]) % TOKENS)
            elif kind == "independent":
                columns.append((inputs_NW[:, 0] * (target + 1) + inputs_NW[:, 1]) % TOKENS)
            else:
                columns.append(rng.integers(TOKENS, size=samples))
        targets_NL = np.stack(columns[INPUTS:], axis=1)[:, list(HIDDEN)]
        lengths_N = np.full(samples, TARGETS - 1) if kind == "short" else None
        parts.append(encoded(inputs_NW, targets_NL, lengths_N))
    return parts[0], parts[1]


def fitted(kind: str, config: AnyOrderConfig = CONFIG, **options: Any) -> tuple[list[int], int, AnyOrderOracle]:
    """A plain training is done once for all tests that ask for the same; each has a model of its own."""
    known, steps, model = _fitted(kind, config, **options) if options else copy.deepcopy(_fitted_once(kind, config))
    return known, steps, AnyOrderOracle(model, splits(kind)[1], 400)


@cache
def _fitted_once(kind: str, config: AnyOrderConfig) -> tuple[list[int], int, RoutedModel]:
    return _fitted(kind, config)


def _fitted(kind: str, config: AnyOrderConfig, **options: Any) -> tuple[list[int], int, RoutedModel]:
    train, validation = splits(kind)
    model = routed_model(train, config, 0)
    known, steps, seconds = fit_outward(model, train, validation, config, seed=0, **options)
    assert seconds > 0
    return known, steps, model


def reading_of(kind: str, constraints: Constraints = Constraints(), random: np.ndarray | None = None) -> Reading:
    train, validation = splits(kind)
    known, _, oracle = fitted(kind)
    blind = blind_loss(train, validation)
    random_CN = np.full((1, 400), blind) if random is None else random
    return read_outward(oracle, known, constraints, blind_losses(train, validation), blind, random_CN)


def test_sums_that_can_be_solved_for_any_term_become_known() -> None:
    reading = reading_of("sums")
    assert verdict(reading)[0] == "order found"
    assert reading.best < 0.1 * reading.blind
    assert reading.others_CN.mean() > 0.2 * reading.blind  # the last ones are sums of many inputs


def test_what_tokens_point_to_is_read_by_a_pointer_alone() -> None:
    """y_0 = x_0, then y_j = x[y_(j-1)]."""
    data, train, validation = task_data("index:d=1", "7", 0)
    losses, orders = [], []
    for pointer in (False, True):
        config = CONFIG.model_copy(update={"model": CONFIG.model.model_copy(update={"pointer": pointer})})
        model = routed_model(train, config, 0)
        known, _, _ = fit_outward(model, train, validation, config, seed=0)
        oracle = AnyOrderOracle(model, validation, 400)
        losses.append(oracle.mean_of_order(data.true_of_column.inverse()).mean())
        orders.append(known)
    assert losses[1] < 0.1 < 0.5 < losses[0]
    first = list(data.true_of_column.inverse())[:4]  # later on many samples go round in circles
    assert orders[1][:4] == first
    graph = {row.target: row for row in learned_dependencies(oracle, data.true_of_column.inverse())}
    for parent, target in pairwise(first[1:]):  # y_0 and x_0 are the same
        assert graph[target].targets == (parent,)
        assert sorted(graph[target].inputs) == list(range(7))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["delay-modular", "delay-sine"])
def test_the_order_of_a_delay_network_is_optimal(task: str) -> None:
    data, train, validation = task_data(task, "20", 0, train=50_000)
    model = routed_model(train, AnyOrderConfig(), 0)
    known, _, _ = fit_outward(model, train, validation, AnyOrderConfig(), seed=0)
    assert cost_ratio(Order.of(known), data.graph_of_columns()) == 1.0


def test_an_order_that_is_no_better_than_random_ones_of_another_model_is_not_preferred() -> None:
    best_N = reading_of("sums").losses_CN[0]
    reading = reading_of("sums", random=best_N[None] + 0.001)
    assert verdict(reading)[0] == "no order preferred"


def made_reading(*losses: float) -> Reading:
    """Of two constructions; the others are blind guesses."""
    orders = [Order.forward(10), Order.reverse(10)][: len(losses)]
    losses_CN = np.repeat(np.array(losses)[:, None], 100, axis=1)
    return Reading(orders, losses_CN, np.full((1, 100), 2.0), 2.0, None, None)


def test_a_settled_reading_is_chosen_only_if_it_is_hardly_worse() -> None:
    best, worse, near = made_reading(0.30, 1.30), made_reading(0.38), made_reading(0.33)
    assert [reading.settled for reading in (best, worse, near)] == [False, True, True]
    assert chosen([best, worse]) is best
    assert chosen([best, worse, near]) is near


def test_targets_of_the_inputs_alone_prefer_no_order() -> None:
    known, steps, _ = fitted("independent")
    assert sorted(known) == list(range(TARGETS))
    assert steps < CONFIG.outward_training().steps
    assert verdict(reading_of("independent"))[0] == "no order preferred"


def test_of_random_targets_none_becomes_known() -> None:
    known, steps, _ = fitted("random", with_outward(give_up=0.25))
    assert (known, steps) == ([], 100)
    assert verdict(reading_of("random"))[0] == "nothing learnt"


def with_all_known(config: AnyOrderConfig, spoilt: int | None) -> OutwardTraining:
    """All is known, but one target has come to read a single input."""
    known, _, oracle = fitted("sums")
    assert sorted(known) == list(range(TARGETS))
    with torch.no_grad():
        if spoilt is not None:
            oracle.model.routing_LHP[spoilt] = 0.0
            oracle.model.routing_LHP[spoilt, :, 0] = 20.0
    training = OutwardTraining(oracle.model, *splits("sums"), config, seed=0)
    training.known_L.copy_(torch.tensor(known))
    training.most.fill_(TARGETS)
    return training


@pytest.mark.parametrize("restarts", [0, 2])
def test_once_all_are_known_one_that_is_worse_than_most_begins_anew(restarts: int) -> None:
    training = with_all_known(with_outward(restarts=restarts, restart_every=0.5), spoilt=3)
    before_LHP = training.model.routing_LHP.detach().clone()
    training.after_step(25)
    begun_L = (training.model.routing_LHP != before_LHP).flatten(1).any(dim=1)
    assert begun_L.nonzero().flatten().tolist() == ([3] if restarts else [])
    assert training.model.routing_LHP[3].abs().max() < 1 or not restarts
    assert training.weak_L.nonzero()[:, 0].tolist() == [3]
    known, _, oracle = fitted("sums")
    if restarts:  # it has moved back, but not behind those that read it
        readers = {row.target for row in learned_dependencies(oracle, Order.of(known)) if 3 in row.targets}
        assert training.known.index(3) >= known.index(3)
        assert all(training.known.index(reader) > training.known.index(3) for reader in readers)
        assert sorted(training.known) == list(range(TARGETS))
    else:
        assert training.known == known
    for waited, ends in ((299, False), (300, True)):  # 0.75 rounds
        training.waited.fill_(int(training.restarted) + waited)
        assert training.enough() == ends


def test_weak_ones_begin_anew_only_so_often_and_only_while_there_is_time() -> None:
    config = with_outward(restarts=2, restart_every=0.5)
    training = with_all_known(config, spoilt=3)
    times = []
    for done in range(25, config.outward_training().steps + 1, 25):
        training.waited.fill_(done - 1)
        training.after_step(done)
        if int(training.restarts) > len(times):
            times.append(done)
    assert times == [25, 225]
    late = with_all_known(config, spoilt=3)
    late.after_step(config.outward_training().steps - 275)
    assert int(late.restarts) == 0


def test_weak_ones_move_back_as_far_as_their_readers_allow() -> None:
    training = with_all_known(CONFIG, spoilt=None)
    first, second, third, fourth, *others = training.known
    with torch.no_grad():  # the third reads the second, the fourth the third, and nobody else reads anything
        training.model.routing_LHP.zero_()
        training.model.routing_LHP[:, :, -1] = 20.0
        training.model.routing_LHP[third, :, INPUTS + second] = 40.0
        training.model.routing_LHP[fourth, :, INPUTS + third] = 40.0
    oracle = AnyOrderOracle(training.model, splits("sums")[1], 100)
    assert training._moved_back([first, second], oracle, 0.1) == [*others, second, third, fourth, first]


def test_with_a_pointer_none_is_lost_when_weak_ones_begin_anew() -> None:
    config = CONFIG.model_copy(update={"model": CONFIG.model.model_copy(update={"pointer": True})})
    train, validation = splits("sums")
    training = OutwardTraining(routed_model(train, config, 0), train, validation, config, seed=0)
    training.known_L.copy_(torch.arange(TARGETS))
    training.most.fill_(TARGETS)
    training.after_step(25)
    assert sorted(training.known) == list(range(TARGETS))


def test_if_none_is_worse_than_most_it_ends_sooner() -> None:
    training = with_all_known(with_outward(restarts=4), spoilt=None)
    training.after_step(25)
    assert not training.weak_L.any()
    training.waited.fill_(300)
    assert training.enough()


def test_a_target_that_no_sample_has_is_never_known() -> None:
    known, _, _ = fitted("short", with_outward(give_up=0.25))
    assert TARGETS - 1 not in known


@pytest.mark.parametrize("constraints", [Constraints(keep_first=2), Constraints(before=((4, 3), (0, 7)))])
def test_orders_meet_the_constraints(constraints: Constraints) -> None:
    reading = reading_of("sums", constraints)
    assert all(constraints.allows(order) for order in reading.orders)


@pytest.mark.parametrize("after", [1, 3, 9])
def test_interrupted_and_continued_gives_the_same(tmp_path: Path, after: int) -> None:
    """Every stop is between two looks, and behind some of them."""
    config = with_outward(give_up=1.0, patience=0.15)
    known, steps, oracle = fitted("sums", config)
    stop, told = StopRequest(), 0

    def happened(_: object) -> None:
        nonlocal told
        told += 1
        stop.requested |= told == after

    checkpoints = CheckpointFolder(tmp_path)
    with pytest.raises(Interrupted):
        fitted("sums", config, checkpoints=checkpoints, stop=stop, on_progress=happened)
    for _ in range(2):  # the second time, nothing is left to do
        known_then, steps_then, continued = fitted("sums", config, checkpoints=checkpoints)
        assert (known_then, steps_then) == (known, steps)
        for name, value in oracle.model.state_dict().items():
            assert torch.equal(value, continued.model.state_dict()[name])


def test_interrupted_between_two_restarts_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = with_outward(polished_share=1e-6, restarts=2, restart_every=0.1, polish=0.15)
    polished, restarts, stop = OutwardTraining._polish, [0], StopRequest()

    def watched(training: OutwardTraining, *arguments: Any) -> None:
        polished(training, *arguments)
        restarts[0] = int(training.restarts)
        stop.requested |= restarts[0] == 1 and stopping

    monkeypatch.setattr(OutwardTraining, "_polish", watched)
    stopping = False
    known, steps, oracle = fitted("sums", config)
    assert restarts == [2]
    stopping = True
    checkpoints = CheckpointFolder(tmp_path)
    with pytest.raises(Interrupted):
        fitted("sums", config, checkpoints=checkpoints, stop=stop)
    assert restarts == [1]
    known_then, steps_then, continued = fitted("sums", config, checkpoints=checkpoints)
    assert (known_then, steps_then, restarts) == (known, steps, [2])
    for name, value in oracle.model.state_dict().items():
        assert torch.equal(value, continued.model.state_dict()[name])
