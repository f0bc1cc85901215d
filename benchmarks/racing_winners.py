"""Claim: racing finds the same winner as scoring everything. Cost: about a minute per seed at L = 10, 9 at L = 20.

    python benchmarks/racing_winners.py [--seeds 10] [--long] [--unconditioned]

For every seed, a model is trained on the mixture of all block orders of a random parent; racing's winner is the best of
exact scoring, or ties with it within the standard error of the paired difference.
"""

import argparse

import torch

from genorder.bench.scoring import ScoringCase, winner_agrees
from genorder.profiling import RacingConfig, exact_scores, racing_scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--long", action="store_true", help="T = 10,080, L = 20 instead of T = 1,440, L = 10")
    parser.add_argument(
        "--unconditioned", action="store_true", help="the paper's model, which does not know what comes next"
    )
    options = parser.parse_args()
    blocks, length = (7, 20) if options.long else (6, 10)
    agreed = 0
    for seed in range(options.seeds):
        case = ScoringCase.trained(
            torch.device("cpu"), blocks, length, order_conditioned=not options.unconditioned, seed=seed
        )
        racing = racing_scores(case.model, case.validation, case.orders, RacingConfig())
        agrees = winner_agrees(exact_scores(case.model, case.validation, case.orders), racing)
        agreed += agrees
        print(f"{case.name}, seed {seed}: {'same winner' if agrees else 'ANOTHER WINNER'}", flush=True)
    print(f"{agreed} of {options.seeds}")


if __name__ == "__main__":
    main()
