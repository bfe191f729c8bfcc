"""The report: tables as Markdown and JSON, and how the figures compare with the goals."""
import json
import os
import platform
import subprocess
from pathlib import Path


class Table:
    """Columns, rows of cells, and the raw figures behind each row."""

    def __init__(self, title, columns, note=""):
        self.title, self.columns, self.note = title, columns, note
        self.rows, self.figures = [], []

    def add(self, cells, **figures):
        self.rows.append([cell if isinstance(cell, str) else number(cell) for cell in cells])
        self.figures.append({"row": self.rows[-1][0], **figures})

    def markdown(self):
        lines = [f"### {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines += ["| " + " | ".join(self.columns) + " |", "| " + " | ".join("---" for _ in self.columns) + " |"]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


class Report:
    """Tables in the order in which they were made."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.load = os.getloadavg()[0]
        self.tables, self.goals = [], Table("What is wanted", ["what", "figure", "wanted", ""])

    def table(self, *args, **kwargs):
        self.tables.append(Table(*args, **kwargs))
        return self.tables[-1]

    def at_least(self, what, figure, wanted):
        self._goal(what, figure, f"at least {wanted:g}", figure >= wanted)

    def at_most(self, what, figure, wanted):
        self._goal(what, figure, f"at most {wanted:g}", figure <= wanted)

    def _goal(self, what, figure, wanted, met):
        self.goals.add([what, figure, wanted, "yes" if met else "**no**"], figure=figure, wanted=wanted, met=bool(met))

    def write(self):
        """Writes report.md and report.json; returns the Markdown."""
        tables = ([self.goals] if self.goals.rows else []) + self.tables
        text = f"# zarr-mount benchmark\n\n{self.machine()}\n\n" + "\n".join(t.markdown() for t in tables)
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "report.md").write_text(text)
            whole = {"machine": self.machine(),
                     "tables": [{"title": t.title, "columns": t.columns, "rows": t.figures} for t in tables]}
            (self.folder / "report.json").write_text(json.dumps(whole, indent=1))
        return text

    def machine(self):
        """The machine and the options on which the figures depend, in a few words."""
        cpu = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                    if line.startswith("model name")), platform.machine())
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
        return (f"{os.cpu_count()} CPUs ({cpu}), Linux {platform.release()}, commit {commit or 'unknown'}; "
                f"data sets of {self.options.size} MiB, medians of {self.options.rounds} rounds, ratios within a round; "
                "the store is in the page cache unless a row says cold, every mount is fresh. "
                f"Load of the machine before: {self.load:.1f}; idle is best.")


def number(value):
    """A number with three significant digits."""
    if value is None:
        return "–"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
