"""`genorder inspect`: what a data file contains, and what to know before a run."""

from genorder.cli import options
from genorder.cli.console import emit_json, say
from genorder.data import ReadOptions, check_dataset, summarise_dataset
from genorder.data.inspection import LengthSummary, token_preview
from genorder.data.readers import display_name, read_file
from genorder.runs.source import finding_lines, summary_lines

_BAR = 40  # characters of the longest one


@options.with_read_options("--split", "--split-tokens")
def inspect(reading: ReadOptions, data: options.DataToInspect, json: options.Json = False) -> None:
    """Show what a data file contains: lengths, tokens, one sample, and what to know before a run.

    Example: genorder inspect problems.txt --separator "#"
    """
    file = read_file(data, reading)
    summary = summarise_dataset(file.dataset)
    findings = check_dataset(file.dataset, file.blank_lines)
    if json:
        listed = [finding.to_dict() for finding in findings]
        emit_json({"data": display_name(data), "format": file.format, **summary.to_dict(), "findings": listed})
        return
    for line in summary_lines(data, file.format, summary):
        say(line)
    for name, lengths in (("input", summary.inputs), ("target", summary.targets)):
        _show_lengths(name, lengths)
    say("most frequent tokens:")
    for token, count in summary.frequent_tokens:
        say(f"  {token_preview([token]):20}  {count}")
    for line in finding_lines(findings) or ["nothing to remark on"]:
        say(line)


def _show_lengths(name: str, lengths: LengthSummary) -> None:
    say(f"{name} lengths, {lengths.mean:.1f} on average:")
    most = max(samples for _, _, samples in lengths.histogram)
    for first, last, samples in lengths.histogram:
        label = str(first) if first == last else f"{first}-{last}"
        say(f"  {label:>11}  {samples:>9}  {'#' * round(_BAR * samples / most)}".rstrip())
