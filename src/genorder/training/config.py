"""How a model is trained."""

from pydantic import BaseModel, ConfigDict, Field


class TrainingConfig(BaseModel):
    """AdamW with linear warm-up, then a stable rate, then linear decay to zero at the last step."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    steps: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    stable_steps: int = Field(default=0, ge=0)  # with the warm-up, after which the rate decays; 0: right after it
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    clip_norm: float = Field(default=1.0, gt=0)

    def learning_rate_at(self, step: int) -> float:
        """The rate of 0-based `step`: a function of the step alone, so resuming needs no state.

        A run no longer than its warm-up ends while the rate still rises.
        """
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        stable = max(self.warmup_steps, self.stable_steps)
        if step < stable:
            return self.learning_rate
        return self.learning_rate * (self.steps - step) / (self.steps - stable)
