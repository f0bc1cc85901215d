"""Which way of constructing an order from one trained routed model gets it right most often, and at what price?

    python benchmarks/constructors.py [--tasks relu mlp ...] [--seeds 2] [--steps 100 200 400] [--ways greedy graph ...]

Trains one model for each task, hidden order and number of steps (few steps make it hard), and constructs from it:

greedy       emit next the target of least loss
graph        sort the graph of pairwise gains, then least loss first
better       of these two, by the loss: what the search does
beam         of partial orders, always the eight of least loss so far
insertion    from the better of both, move one or two targets while that lowers the loss of 128 samples

Prints the mean cost ratio, in how many runs it was optimal, the mean loss under the model and the seconds, by steps.
"""

import argparse
import time
from collections.abc import Callable
from statistics import fmean

import torch

from genorder import Order, cost_ratio, make_task
from genorder.data import encode_for_exploring
from genorder.profiling.any_order import AnyOrderConfig, AnyOrderOracle, fit_any_order, routed_model, with_steps
from genorder.profiling.construction import greedy_order, pairwise_gains
from genorder.search.reading import graph_order
from genorder.seeding import derive_seed
from genorder.tasks import task_splits

TASKS = ("relu", "square", "triangle", "mlp", "sine", "cubic")
WAYS = ("greedy", "graph", "better", "beam", "insertion")
BEAM, SEGMENT, FEW = 8, 2, 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", nargs="+", type=int, default=[100, 200, 400])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| steps | constructed by | cost ratio | optimal | loss | seconds |\n|---|---|---|---|---|---|")
    for steps in options.steps:
        rows: dict[str, list[tuple[float, float, float]]] = {}
        for task in options.tasks:
            for seed in range(options.seeds):
                for name, row in compared(task, options.length, seed, steps, options.ways).items():
                    rows.setdefault(name, []).append(row)
        for name, row in rows.items():
            costs, losses, seconds = zip(*row, strict=True)
            optimal = f"{sum(cost == 1.0 for cost in costs)} of {len(costs)}"
            print(
                f"| {steps} | {name} | {fmean(costs):.3f} | {optimal} | {fmean(losses):.4f} | {fmean(seconds):.1f} |",
                flush=True,
            )


def compared(task: str, length: int, seed: int, steps: int, wanted: list[str]) -> dict[str, tuple[float, float, float]]:
    """By the way of constructing: cost ratio, loss and seconds."""
    data = task_splits(make_task(task, str(length)), train=100_000, validation=1_000, test=1, hidden_order_seed=seed)
    train, validation = encode_for_exploring(data.splits, torch.device("cpu"))
    config = with_steps(AnyOrderConfig(), steps)
    model = routed_model(train, config, derive_seed(seed, "model"))
    fit_any_order(model, train, config, seed=derive_seed(seed, "training"))
    oracle = AnyOrderOracle(model, validation, config.validation_samples)
    found: dict[str, Order] = {}

    def construct(name: str) -> Order:
        if name not in found:
            found[name] = ways[name]()
        return found[name]

    def better() -> Order:
        return min((construct("greedy"), construct("graph")), key=lambda order: loss_of(oracle, order))

    ways: dict[str, Callable[[], Order]] = {
        "greedy": lambda: greedy_order(oracle),
        "graph": lambda: graph_order(oracle, pairwise_gains(oracle)),
        "better": better,
        "beam": lambda: beam_order(oracle),
        "insertion": lambda: inserted(oracle, construct("better")),
    }
    rows = {}
    for name in wanted:
        started = time.monotonic()
        construct(name)
        seconds = time.monotonic() - started
        rows[name] = (cost_ratio(found[name], data.graph_of_columns()), loss_of(oracle, found[name]), seconds)
    return rows


def loss_of(oracle: AnyOrderOracle, order: Order) -> float:
    return float(oracle.mean_of_order(order).mean())


def beam_order(oracle: AnyOrderOracle) -> Order:
    beams: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    for _ in range(oracle.targets):
        longer: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for emitted, (so_far, order) in beams.items():
            rest = [target for target in range(oracle.targets) if target not in emitted]
            for target, loss in zip(rest, oracle.mean_given(order, rest), strict=True):
                reached = (so_far + float(loss), (*order, target))
                longer[emitted | {target}] = min(reached, longer.get(emitted | {target}, reached))
        beams = dict(sorted(longer.items(), key=lambda item: item[1])[:BEAM])
    return Order(next(iter(beams.values()))[1])


def inserted(oracle: AnyOrderOracle, order: Order) -> Order:
    """Every segment goes where it costs least, again and again, until nothing moves."""
    quick = AnyOrderOracle(oracle.model, oracle.validation, FEW)
    best, least, moved = list(order), loss_of(quick, order), True
    while moved:
        moved = False
        for size in range(1, SEGMENT + 1):
            for start in range(len(best) - size + 1):
                segment, rest = best[start : start + size], best[:start] + best[start + size :]
                tried = [rest[:place] + segment + rest[place:] for place in range(len(rest) + 1) if place != start]
                losses = [loss_of(quick, Order(tuple(one))) for one in tried]
                if min(losses) < least - 1e-6:
                    best, least, moved = tried[losses.index(min(losses))], min(losses), True
    return Order(tuple(best))


if __name__ == "__main__":
    main()
