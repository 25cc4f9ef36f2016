"""The rows that a benchmark comes to: made against a goal, printed as a table, kept as JSON."""
import dataclasses
import json
import os
import pathlib
import subprocess
import time


@dataclasses.dataclass(frozen=True)
class Row:
    group: str
    figure: str
    ours: float
    unit: str
    peer: str           # Whom we are compared with; empty where a figure stands alone.
    peers: float | None   # What the peer reached, in the same unit.
    ratio: float | None
    goal: str           # In words; empty when the figure is told and not judged.
    holds: bool | None


def within(group, figure, ours, unit, most):
    """A figure with a bound of its own."""
    return Row(group, figure, ours, unit, "", None, None, f"at most {most:g} {unit}", ours <= most)


def at_most(group, figure, ours, unit, peer, peers, times):
    """A cost that may be so many times the peer's. The ratio is ours by theirs."""
    goal = "not above it" if times == 1 else f"at most {times:g} x"
    if peers is None:
        return Row(group, figure, ours, unit, f"{peer} (not here)", None, None, goal, None)
    return Row(group, figure, ours, unit, peer, peers, ours / peers, goal, ours <= times * peers)


def at_least(group, figure, ours, unit, peer, peers, times):
    """A cost that must be so many times smaller than the peer's. The ratio is theirs by ours."""
    goal = f"at least {times:g} x less"
    if peers is None:
        return Row(group, figure, ours, unit, f"{peer} (not here)", None, None, goal, None)
    return Row(group, figure, ours, unit, peer, peers, peers / ours, goal, ours * times <= peers)


def told(group, figure, ours, unit, peer="", peers=None):
    """A figure without a goal, for the reader."""
    ratio = ours / peers if peers else None
    return Row(group, figure, ours, unit, peer if peers or not peer else f"{peer} (not here)",
               peers, ratio, "", None)


def number(value):
    """Three digits that count, as people write them: 0.412, 4.12, 41.2, 412, 4120."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def cells(row):
    peer = f"{number(row.peers)} {row.unit}, {row.peer}" if row.peers is not None else row.peer
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
    holds = "" if not row.goal else "?" if row.holds is None else "yes" if row.holds else "NO"
    return [row.group, row.figure, f"{number(row.ours)} {row.unit}", peer, ratio, row.goal, holds]


def table(rows):
    lines = [["group", "figure", "ours", "peer", "ratio", "goal", "holds"], *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines]
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])


def write(path, rows, measured_groups):
    """Puts the rows into the file. Rows there of groups that were not measured now stay."""
    path = pathlib.Path(path)
    old = json.loads(path.read_text()) if path.exists() else {"measured": {}, "rows": []}
    kept = [row for row in old["rows"] if row["group"] not in measured_groups]
    measured = old["measured"] | {group: circumstances() for group in measured_groups}
    with_digits = [{name: round(value, 6) if isinstance(value, float) else value
                    for name, value in dataclasses.asdict(row).items()} for row in rows]
    text = json.dumps({"measured": measured, "rows": kept + with_digits}, indent=1)
    path.write_text(text + "\n")


def circumstances():
    """When and on what it was measured, as far as a reader needs it to compare."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    model = [line.partition(":")[2].strip() for line in
             pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            cwd=pathlib.Path(__file__).parent, check=False).stdout.strip()
    return {"date": time.strftime("%Y-%m-%d"), "commit": commit,
            "cpus": len(os.sched_getaffinity(0)), "cpu": model[0] if model else "",
            "memory_gib": round(memory / 2**30, 1)}
