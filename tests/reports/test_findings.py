"""What a program reads of a discovery, of this version and of earlier ones."""

from reports_helpers import MINED, judged, known_run, of_an_earlier_version

from genorder.dependencies.graph import TargetDependency
from genorder.outcomes import DiscoveryOutcome
from genorder.reports.dependencies import recipe
from genorder.reports.run import ReportedRun
from genorder.results import DiscoveryResult


def found_in(run: ReportedRun) -> DiscoveryResult:
    assert isinstance(run.outcome, DiscoveryOutcome)
    return DiscoveryResult(run.outcome)


def test_the_findings_of_a_result() -> None:
    found = found_in(judged("order found"))
    assert (found.verdict, found.advice) == ("order found", "Do this.")
    assert found.order_in_names == ["y1", "y2", "y0"]
    assert found.dependencies[0] == TargetDependency(
        target=0, inputs=(1,), targets=(2,), found_by="counting", pairs=99_639, violations=0
    )
    assert found.dependencies[0].violation_rate == 0.0


def test_the_findings_of_an_earlier_version() -> None:
    found = found_in(of_an_earlier_version(known_run()))
    assert (found.verdict, found.advice) == ("order found", "Good.")
    assert found.order_in_names == ["y1", "y2", "y0"]
    first = found.dependencies[0]
    assert (first.found_by, first.pairs, first.violations, first.pointer) == ("model", None, None, False)
    assert (first.loss, first.loss_without, first.violation_rate) == (0.1, {"x1": 3.0, "y2": 5.0}, None)


def test_a_strategy_that_judges_nothing() -> None:
    found = found_in(judged(None, None, []))
    assert (found.verdict, found.advice, found.dependencies) == (None, None, [])
    named = found_in(judged(None, None, [], target_names=["mass", "speed", "force"]))
    assert named.order_in_names == ["speed", "force", "mass"]


def test_mined_dependencies_are_kept_in_the_result_whatever_the_verdict() -> None:
    assert len(found_in(judged("nothing learnt")).dependencies) == len(MINED)


def test_consecutive_inputs_are_a_range_unless_they_have_names() -> None:
    many = TargetDependency(target=7, inputs=(0, 1, 2, 3, 6, 8, 9), targets=(5,))
    assert recipe(many, "y{}".format, "x{}".format) == "y7 <- x0-x3, x6, x8, x9, y5"
    assert recipe(many, "s{}".format, "q{}".format) == "s7 <- q0, q1, q2, q3, q6, q8, q9, s5"
