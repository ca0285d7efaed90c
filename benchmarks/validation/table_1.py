"""Table I of Wei et al. by the prober: verdicts of the audits of `examples/providers/audit.sh` as a table.

    python -m benchmarks.validation.table_1 build/cdma-i build/cdma-ii build/gprs-i -o papers/wei/audited/table1.csv

Each directory holds the `audit.json` of one provider. `pepscope reproduce wei` shows the table beside the
published one.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pepscope
from pepscope.whole_file import write_whole

#: Applications of table I by what an audit calls them.
APPLICATIONS = {"ftp": "FTP", "http-data": "HTTP data", "http-image": "HTTP image", "tcp": "TCP"}
PROVIDERS = ("CDMA-I", "CDMA-II", "GPRS-I")


def table(directories: Sequence[Path]) -> str:
    """CSV of the downloads: provider, application, verdict, probability. Raises OSError, ValueError, KeyError."""
    text = StringIO()
    day = datetime.datetime.fromtimestamp(_started_s(directories[0]), datetime.UTC).date()
    text.write(
        "# Verdicts of pepscope audit on the providers of table I, rebuilt with pepscope proxy in namespaces.\n"
        f"# pepscope {pepscope.__version__}, {day}: examples/providers/audit.sh, then python -m"
        " benchmarks.validation.table_1.\n"
    )
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("provider", "application", "verdict", "probability"))
    for provider, directory in zip(PROVIDERS, directories, strict=True):
        (run,) = json.loads((directory / "audit.json").read_text(encoding="utf-8"))["runs"]
        for cell in run["cells"]:
            name = APPLICATIONS.get(cell["application"])
            if name is not None and cell["direction"] == "down":
                probability = cell["probability"][cell["verdict"]]
                writer.writerow((provider, name, cell["verdict"], f"{probability:.4f}"))
    return text.getvalue()


def _started_s(directory: Path) -> float:
    (run,) = json.loads((directory / "audit.json").read_text(encoding="utf-8"))["runs"]
    return float(run["started_unix_ns"]) * 1e-9


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs=3, type=Path, metavar="DIR", help="of CDMA-I, CDMA-II and GPRS-I")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="FILE")
    arguments = parser.parse_args()
    write_whole(arguments.output, table(arguments.directories))


if __name__ == "__main__":
    main()
