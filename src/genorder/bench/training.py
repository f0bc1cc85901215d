"""Our training loop against transformers' GPT2LMHeadModel, trained by its Trainer and in a bare loop.

Same sizes, same batches, same fused AdamW, in one process and in turns; each ratio is of the medians over the turns.
Trainer receives its samples as lists of integers, like those of a tokenised dataset; its start-up is not counted. Seeds
are fixed, because the time of a step does not depend on the values.
"""

import io
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from genorder.data import EncodedDataset
from genorder.data.encoding import IGNORED, SPECIAL_TOKENS
from genorder.errors import InputError
from genorder.models import GPT, GPTConfig
from genorder.models.losses import mean_loss
from genorder.seeding import numpy_generator, torch_generator
from genorder.training import BatchPlan, TrainingConfig, fit

_BATCH = 128
_TOKENS = 40  # as many as the recurrence tasks have, roughly


@final
@dataclass(frozen=True)
class TrainingRow:
    name: str
    baseline: str
    ratio: float  # how many times as fast as the baseline
    steps_per_second: float
    baseline_steps_per_second: float
    share_of_matmul_peak: float

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.ratio:.2f} x {self.baseline} ({self.steps_per_second:.1f} against "
            f"{self.baseline_steps_per_second:.1f} steps/s; {100 * self.share_of_matmul_peak:.0f} % of matmul peak)"
        )


@final
@dataclass(frozen=True)
class Size:
    name: str
    model: GPTConfig
    length: int
    steps: int  # per turn
    turns: int


_ONE_LAYER = GPTConfig(layers=1, heads=4, width=128, feedforward=512)
SIZES = (
    *(Size(f"1 layer, d 128, L {length}", _ONE_LAYER, length, 20, 7) for length in (10, 20, 40)),
    Size("1 layer, d 128, L 20, exact GELU", _ONE_LAYER.model_copy(update={"activation": "gelu"}), 20, 20, 7),
    Size("6 layers, d 512, L 20", GPTConfig(layers=6, heads=8, width=512, feedforward=2048), 20, 3, 3),
)


def bench_training(device: torch.device) -> Iterator[TrainingRow]:
    """Raises InputError if transformers is missing, and for a device other than the CPU."""
    if device.type != "cpu":
        raise InputError("the training benchmark compares float32 on a CPU; use --device cpu")
    for size in SIZES:
        peak = matmul_gflops(device)
        speeds = _measure(size, device)
        share = speeds["genorder"] * _step_flops(size) / 1e9 / peak
        for baseline in ("transformers Trainer", "transformers bare loop"):
            yield TrainingRow(
                name=size.name,
                baseline=baseline,
                ratio=speeds["genorder"] / speeds[baseline],
                steps_per_second=speeds["genorder"],
                baseline_steps_per_second=speeds[baseline],
                share_of_matmul_peak=share,
            )


def matmul_gflops(device: torch.device, size: int = 1024, repeats: int = 20) -> float:
    """Measured float32 matrix-multiply speed, the best of three rounds."""
    left, right = torch.ones(size, size, device=device), torch.ones(size, size, device=device)

    def round_seconds() -> float:
        started = time.perf_counter()
        for _ in range(repeats):
            product = left @ right
        product[0, 0].item()  # waits for the device
        return time.perf_counter() - started

    round_seconds()
    return 2 * size**3 * repeats / min(round_seconds() for _ in range(3)) / 1e9


def _measure(size: Size, device: torch.device) -> dict[str, float]:
    """Median steps per second of each loop, over alternating turns."""
    encoded = random_data(size, device)
    loops = {
        "genorder": _our_loop(size, encoded, device),
        "transformers bare loop": _bare_loop(size, encoded, device),
        "transformers Trainer": trainer_loop(size, encoded, device),
    }
    times: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(size.turns + 1):
        for name, run in loops.items():
            seconds = run(size.steps)
            if turn > 0:  # the first turn warms up
                times[name].append(seconds / size.steps)
    return {name: 1 / statistics.median(seconds) for name, seconds in times.items()}


def random_data(size: Size, device: torch.device) -> EncodedDataset:
    rng = numpy_generator(0)
    rows = torch.from_numpy(rng.integers(0, _TOKENS, size=(4096, 2 * size.length)) + SPECIAL_TOKENS)
    return EncodedDataset(
        rows[:, : size.length].contiguous(),
        rows[:, size.length :].contiguous(),
        torch.full((len(rows),), size.length),
        _TOKENS + SPECIAL_TOKENS,
    ).to(device)


def batch_plan(size: Size, encoded: EncodedDataset) -> BatchPlan:
    forward_1L = torch.arange(size.length, device=encoded.inputs_NW.device)[None]
    return BatchPlan(encoded, forward_1L, _BATCH, seed=0)


def _training_config(steps: int) -> TrainingConfig:
    return TrainingConfig(steps=steps, batch_size=_BATCH, learning_rate=1e-3, beta2=0.98)


def _our_loop(size: Size, encoded: EncodedDataset, device: torch.device) -> Callable[[int], float]:
    model = GPT(
        size.model, vocabulary=encoded.model_vocabulary, positions=2 * size.length + 1, rng=torch_generator(0)
    ).to(device)
    plan = batch_plan(size, encoded)

    def run(steps: int) -> float:
        return fit(model, lambda step: mean_loss(model, plan(step)), _training_config(steps), seed=0).seconds

    return run


def _their_model(size: Size, encoded: EncodedDataset, device: torch.device) -> nn.Module:
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        raise InputError("the training benchmark needs transformers: pip install 'genorder[bench]'") from None
    model: nn.Module = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=encoded.model_vocabulary, n_positions=2 * size.length + 1, n_embd=size.model.width,
            n_layer=size.model.layers, n_head=size.model.heads, n_inner=size.model.feedforward,
            activation_function=size.model.activation,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=2,
            loss_type="ForCausalLM",
        )
    )  # fmt: skip
    return model.to(device)


def _their_batch(plan: BatchPlan, step: int) -> dict[str, Tensor]:
    """The same tokens; each label is at the position of its own token, because the model shifts labels itself."""
    batch = plan(step)
    labels_BT = torch.full_like(batch.tokens_BT, IGNORED)
    labels_BT[:, -(batch.labels_BQ.shape[1] - 1) :] = batch.labels_BQ[:, :-1]
    return {"input_ids": batch.tokens_BT, "labels": labels_BT}


def _bare_loop(size: Size, encoded: EncodedDataset, device: torch.device) -> Callable[[int], float]:
    model = _their_model(size, encoded, device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
    plan = batch_plan(size, encoded)

    def run(steps: int) -> float:
        started = time.perf_counter()
        for step in range(steps):
            model(**_their_batch(plan, step)).loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - started

    return run


def trainer_loop(size: Size, encoded: EncodedDataset, device: torch.device) -> Callable[[int], float]:
    try:
        from transformers import Trainer, TrainerCallback, TrainingArguments
    except ImportError:
        raise InputError("the training benchmark needs transformers: pip install 'genorder[bench]'") from None
    model = _their_model(size, encoded, device)
    plan = batch_plan(size, encoded)

    class Stopwatch(TrainerCallback):  # type: ignore[misc]
        """Times complete steps from the second on, so that the start-up of Trainer is not counted."""

        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.ends.append(time.perf_counter())

    def run(steps: int) -> float:
        batches = [_their_batch(plan, step) for step in range(steps + 1)]
        samples = [
            {name: values[row].tolist() for name, values in batch.items()} for batch in batches for row in range(_BATCH)
        ]
        stopwatch = Stopwatch()
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder, max_steps=steps + 1, per_device_train_batch_size=_BATCH, learning_rate=1e-3,
                adam_beta2=0.98, optim="adamw_torch_fused", lr_scheduler_type="linear", logging_strategy="no",
                save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=device.type == "cpu", seed=0,
                dataloader_pin_memory=False,
            )  # fmt: skip
            with redirect_stdout(io.StringIO()):  # hides its summary
                Trainer(model=model, args=arguments, train_dataset=samples, callbacks=[stopwatch]).train()
        return stopwatch.ends[-1] - stopwatch.ends[0]

    return run


def _step_flops(size: Size) -> float:
    """Floating-point operations of the matrix products of one step: three times those of the forward pass."""
    width, inner, length = size.model.width, size.model.feedforward, size.length
    tokens, predictions = 2 * length + 1, length + 1
    queries = np.array([tokens] * (size.model.layers - 1) + [predictions])
    per_layer = (
        2 * tokens * 2 * width**2  # keys and values
        + 2 * queries * 2 * width**2  # queries and the attention's output
        + 2 * queries * 2 * width * inner
        + 2 * queries * 2 * tokens * width  # scores and mixing
    )
    logits = 2 * predictions * width * (_TOKENS + SPECIAL_TOKENS)
    return 3.0 * _BATCH * (float(per_layer.sum()) + logits)
