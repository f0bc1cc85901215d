"""What was data_report of a data file, in the lines that a user reads before a run."""

from genorder.data import Finding, Summary, check_dataset, summarise
from genorder.data.readers import FileContents, shown_name
from genorder.data.summary import shortened_tokens
from genorder.errors import InputError


def data_report(path: str, reading: FileContents) -> tuple[str, ...]:
    """Raises InputError, with all that stands in the way, for data that no run can be made of."""
    findings = check_dataset(reading.dataset, reading.blank_lines)
    refusals = [finding.message for finding in findings if finding.prevents]
    if refusals:
        raise InputError(f"{shown_name(path)}: {'; '.join(refusals)}")
    return (*summary_lines(path, reading.format, summarise(reading.dataset)), *finding_lines(findings))


def summary_lines(path: str, format: str, summary: Summary) -> list[str]:
    inputs, targets = (shortened_tokens(tokens) for tokens in summary.sample)
    return [
        f"{shown_name(path)} ({format}): {summary.samples} samples, inputs of {summary.inputs} and targets of "
        f"{summary.targets} tokens, {summary.vocabulary} different tokens",
        f"the first one: {inputs} -> {targets}",
    ]


def finding_lines(findings: list[Finding]) -> list[str]:
    return [f"{'problem' if finding.prevents else 'note'}: {finding.message}" for finding in findings]
