"""The tables of a report, against numbers that can be checked by hand."""

import dataclasses
from collections import Counter

import numpy as np
from reports_helpers import BY_MODEL, MINED, dependency, finished_job, judged, known_run, ranked_run, with_result

from genorder.orders import Order
from genorder.reports.dependencies import dependency_graph, dependency_matrix, dependency_table, direction_text
from genorder.reports.tables import (
    Token,
    candidate_curves,
    command,
    configuration_table,
    curve_table,
    order_table,
    path_table,
    position_table,
    race_curves,
    ranking_table,
    samples_of,
    thinned,
    time_table,
    training_curves,
)

FOUND, GIVEN = Order((1, 2, 0)), Order((0, 1, 2))


def test_order() -> None:
    table = order_table(known_run())
    assert table is not None
    assert [column.name for column in table.columns] == ["step", "target", "place in the given order", "true index"]
    assert table.rows == [(0, "y1", 1, 0), (1, "y2", 2, 1), (2, "y0", 0, 2)]
    assert order_table(known_run(result={})) is None


def test_targets_go_by_the_names_of_the_data() -> None:
    run = known_run()
    named = dataclasses.replace(run, config={**run.config, "labels": {"target_names": ["mass", "speed", "a\nb"]}})
    table = order_table(named)
    assert table is not None
    assert table.column("target") == ["speed", "a\\nb", "mass"]
    assert named.order_text([1, 2, 0], 2) == "speed a\\nb … (3 targets)"


def test_dependencies_turn_triangular_in_the_found_order() -> None:
    run = known_run()
    table = dependency_table(run)
    assert table is not None
    assert [column.name for column in table.columns] == ["step", "recipe", "found by", "loss given these"]
    assert table.rows == [
        (0, "y1 <- x0", "a trained model", 0.2),
        (1, "y2 <- y1", "a trained model", 0.3),
        (2, "y0 <- x1, y2", "a trained model", 0.1),
    ]
    found, given = dependency_matrix(run, FOUND), dependency_matrix(run, GIVEN)
    assert found is not None
    assert given is not None
    assert found.names == ["y1", "y2", "y0"]
    assert found.values == [[0, 0, 0], [2.0, 0, 0], [0, 5.0, 0]]
    assert given.values == [[0, 0, 5.0], [0, 0, 0], [0, 2.0, 0]]
    assert direction_text(run, FOUND) == "every dependency points to an earlier target"
    assert direction_text(run, GIVEN) == "1 of 2 dependencies point to later targets"
    other = with_result(run, dependencies=[])
    assert dependency_table(other) is None
    assert dependency_matrix(other, GIVEN) is None


def test_the_recipe_holds_its_evidence() -> None:
    noisy = [BY_MODEL, MINED[1], {**MINED[2], "pairs": 1000, "violations": 98}]
    table = dependency_table(judged("order found", dependencies=noisy))
    assert table is not None
    assert [column.name for column in table.columns] == [
        "step", "recipe", "found by", "pairs compared", "violations", "violation rate", "loss given these",
    ]  # fmt: skip
    assert table.rows == [
        (0, "y1 <- x0", "mining", 120_000, 0, 0.0, None),
        (1, "y2 <- y1", "mining", 1000, 98, 0.098, None),
        (2, "y0 <- x1, y2", "a trained model", None, None, None, 0.1),
    ]
    exact = dependency_table(judged("order found"))
    assert exact is not None
    assert [column.name for column in exact.columns][3:] == ["pairs compared", "violations"]
    assert dependency_table(judged("nothing learnt")) is None


def test_the_graph_holds_inputs_and_targets() -> None:
    run = judged("order found")
    found, given = dependency_graph(run, FOUND), dependency_graph(run, GIVEN)
    assert found is not None
    assert given is not None
    assert [node.name for node in found.targets] == ["y1", "y2", "y0"]
    assert [node.y for node in found.targets] == [0, 1, 2]  # from top to bottom
    assert [(node.name, node.hover, node.y) for node in found.inputs] == [("x0", "x0 -> y1", 0), ("x1", "x1 -> y0", 2)]
    assert Counter(edge.kind for edge in found.edges) == {"input": 2, "earlier": 2}
    assert Counter(edge.kind for edge in given.edges) == {"input": 2, "earlier": 1, "later": 1}
    assert found.left < min(node.x for node in found.inputs)
    assert found.right > max(x for edge in found.edges for x in edge.x)


def test_inputs_of_a_graph_do_not_overlap() -> None:
    """Six inputs of one target, as many rows as inputs."""
    rows = [dependency(0, [1, 2, 3, 4, 5, 0], [2]), *MINED[1:]]
    graph = dependency_graph(judged("order found", dependencies=rows), FOUND)
    assert graph is not None
    assert graph.rows == 6
    assert sorted(node.y for node in graph.inputs) == [0, 1, 2, 3, 4, 5]
    assert [node.y for node in graph.targets] == [0.5, 2.5, 4.5]


def test_a_graph_of_too_many_rows_is_none() -> None:
    rows = [dependency(target, [], []) for target in range(100)]
    order = list(range(100))
    run = judged("order found", dependencies=rows, order=order, order_in_true_indices=order)
    assert dependency_graph(run, Order.forward(100)) is None


def test_ranking_of_a_race() -> None:
    table = ranking_table(known_run())
    assert table is not None
    assert table.rows == [
        (1, "y1 y2 y0", "found", 0.1, 0.01, True, 4, "0-2", 1.0),
        (2, "y0 y1 y2", "given", 2.0, 0.1, False, 2, "2 0 1", 1.5),
        (3, "y2 y1 y0", "given, reversed", None, None, False, 2, "1 0 2", 2.0),
    ]


def test_a_long_ranking_is_cut_and_says_so() -> None:
    row = {"order": [0, 1], "loss": 1.0, "standard_error": 0.1, "tied_with_best": False, "samples": 9, "curve": []}
    run = ranked_run([{**row, "rank": rank} for rank in range(1, 1001)], curve_steps=[])
    table = ranking_table(run)
    assert table is not None
    assert table.column("rank") == list(range(1, 201))
    assert table.column("validation samples") == [9] * 200
    assert table.note == "The first 200 of 1,000; all of them are in ranking.csv."


def test_curves() -> None:
    curves = race_curves(known_run())
    assert [(curve.name, curve.steps, curve.losses) for curve in curves] == [
        ("1: found", [1, 2, 3, 4], [3.0, 1.0, 1.0, 0.5]),
        ("2: given", [1, 2], [3.0, 2.0]),
    ]
    assert curve_table(curves).rows[0] == ("1: found", 4, 3.0, 1.0, 1.0, 0.5)
    (final,) = training_curves(known_run())
    assert (final.name, final.losses[0], final.losses[-1]) == ("found order", 10.0, 1.0)


def test_curves_of_candidates_leave_out_what_is_not_finite() -> None:
    row = {"order": [1, 0], "standard_error": 0.1, "tied_with_best": True, "samples": 9}
    ranking = [
        {**row, "rank": 1, "loss": 1.0, "curve": [3.0, 2.0]},
        {**row, "rank": 2, "loss": None, "curve": [3.0, None]},
    ]
    config = {"config": {"profiler": {"training": {"steps": 30}}}}
    (curve,) = candidate_curves(ranked_run(ranking, config=config, curve_steps=[10, 20]))
    assert (curve.name, curve.steps, curve.losses) == ("1: given, reversed", [10, 20, 30], [3.0, 2.0, 1.0])


def test_thinning_keeps_the_mean_and_the_last_step() -> None:
    losses = np.random.default_rng(0).uniform(0, 5, 1000).tolist()
    steps, means = thinned(losses, 100)
    assert steps == list(range(10, 1001, 10))
    assert np.allclose(means, np.array(losses).reshape(100, 10).mean(axis=1), rtol=1e-4)
    assert thinned([1.0, 2.0]) == ([1, 2], [1.0, 2.0])


def test_positions_stand_in_the_order_of_emission() -> None:
    table = position_table(known_run())
    assert table is not None
    assert table.rows == [
        (0, "y1", 0.1, 0.02, 0.6, 2.0),
        (1, "y2", 0.2, 0.03, 0.7, 3.0),
        (2, "y0", 0.0, 0.01, 0.5, 1.0),
    ]
    alone = position_table(with_result(known_run(), given=None))
    assert alone is not None
    assert [column.name for column in alone.columns] == ["step", "target", "error rate", "loss"]


def test_samples_mark_the_wrong_tokens() -> None:
    (sample,) = samples_of(known_run(), "model")
    assert (sample.row, sample.right, sample.inputs, sample.cut) == (4, False, ["a"], 0)
    assert sample.tokens == [
        Token("y1", "p", "p", True), Token("y2", "x", "q", False), Token("y0", "r", "r", True),
        Token("end", "<eos>", "<eos>", True),
    ]  # fmt: skip
    assert samples_of(known_run(), "given") == []


def test_tokens_that_differ_behind_the_cut_are_not_right() -> None:
    example = {"row": 0, "right": False, "input": [], "expected": ["p" * 99 + "1"], "generated": ["p" * 99 + "2"]}
    (sample,) = samples_of(with_result(known_run(), examples=[example]), "model")
    assert sample.tokens[0].generated == sample.tokens[0].expected
    assert not sample.tokens[0].right


def test_samples_that_are_cut_say_how_much_is_missing() -> None:
    kept = ["p"] * 256  # of 999 targets and their end, and of 300 inputs
    example = {"row": 0, "right": True, "input_length": 300, "length": 999, "input": kept, "expected": kept,
               "generated": kept}  # fmt: skip
    order = list(range(1200))[::-1]
    (sample,) = samples_of(
        with_result(known_run(), order=order, order_in_true_indices=order, examples=[example]), "model"
    )
    assert (len(sample.inputs), len(sample.tokens), sample.cut) == (64, 64, 300 - 64 + 1000 - 64)
    assert sample.tokens[0].target == "y998"  # the last of the sample's own targets, not of the longest sample's


def test_samples_shorter_than_the_order_use_it_restricted() -> None:
    example = {"row": 0, "right": True, "input": [], "expected": ["p", "q", "<eos>"], "generated": ["p", "q", "<eos>"]}
    (sample,) = samples_of(with_result(known_run(), examples=[example]), "model")
    assert [token.target for token in sample.tokens] == ["y1", "y0", "end"]


def test_time() -> None:
    table = time_table(known_run())
    assert table.rows == [("propose", 4.0, 0.2), ("race", 5.0, 0.25), ("train", 10.0, 0.5), ("evaluate", 1.0, 0.05)]
    jobs = [finished_job("race: 3 steps", {}), finished_job("race: 3 steps", {}), finished_job("train", {}, 12.0)]
    assert time_table(known_run(result={}, jobs=jobs)).rows == [("race: 3 steps", 4.0, 0.25), ("train", 12.0, 0.75)]


def test_path_of_a_finished_and_of_an_unfinished_search() -> None:
    table = path_table(known_run())
    assert table is not None
    assert table.rows == [("any-order 1", 2, 1, 0.2, "y1 y2 y0", 4.0)]
    profile = {
        "orders": [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]], "losses": [1.0, 0.5, None, 0.1],
        "samples": [8, 8, 8, 4], "train_seconds": 1.0, "score_seconds": 2.0, "errors": [0.1, 0.1, None, 0.1],
        "tied": [False, True, False, False], "curve_steps": [], "curves": [],
    }  # fmt: skip
    so_far = path_table(known_run(result={}, jobs=[finished_job("profile global 1", profile)]))
    assert so_far is not None
    # The lowest loss of those that stayed to the end: the last one left the scoring after four samples.
    assert so_far.rows == [("global 1", 4, None, 0.5, "y2 y1 y0", 3.0)]
    assert path_table(known_run(result={})) is None


def test_the_oracle_has_columns_of_its_own_until_a_search_is_finished() -> None:
    """It orders the targets that mining has left open: here the first and the last of three."""
    jobs = [
        finished_job("mine dependencies", {"known": [{"target": 1}]}),
        finished_job("any-order 1", {"proposals": [{"order": [1, 0], "loss": 0.5}]}, 2.0),
    ]
    table = path_table(known_run(result={}, jobs=jobs))
    assert table is not None
    assert table.rows == [("any-order 1", 1, None, 0.5, "y2 y0", 2.0)]


def test_configuration_and_command() -> None:
    table = configuration_table(known_run())
    assert ("data.samples.train", "5000") in table.rows
    assert ("race.first_rung", "2") in table.rows
    assert command(known_run()) == "genorder discover 'my data.jsonl'"
    assert command(known_run(starts=[])) is None
