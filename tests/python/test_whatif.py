"""`whatif` returns the answer of the command."""

from pathlib import Path

import pyarrow as pa
import pytest

from warp_ssd import WarpError, whatif


FEW_UNITS = {"geometry.reclaim_unit_bytes": "16GiB", "geometry.channels": 1, "geometry.dies_per_channel": 1}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Sequential pages beside random pages, each on its own volume, with a second between
    requests."""
    state, lines = 1, []
    for index in range(12_000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        disk, page, pages = (0, index * 2 % 2048, 4) if index % 2 == 0 else (1, (state >> 33) % 2048, 1)
        lines.append(f"{128166372003061629 + index * 10**7},host,{disk},Write,{page * 4096},{pages * 4096},1")
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_an_answer_is_a_sentence_and_a_table(trace: Path, tmp_path: Path) -> None:
    answer = whatif(
        str(trace), drive_bytes=3_840_000_000_000, over_provisioning=0.07, overrides=FEW_UNITS
    )
    assert answer.headline in str(answer)
    table = pa.table(answer.placements())
    names = table["placement"].to_pylist()
    assert names[0] == "none" and {"by volume", "SepBIT", "MiDAS", "WARCIP", "oracle"} <= set(names)
    rows = {row["placement"]: row for row in table.to_pylist()}
    assert rows["oracle"]["write_amplification"] < rows["none"]["write_amplification"]
    assert answer.to_dict()["headline"] == answer.headline
    assert answer.best in names and answer.how
    answer.report(tmp_path / "report.html")
    assert answer.headline.split(" (")[0] in (tmp_path / "report.html").read_text()


def test_what_does_not_fit_is_refused(trace: Path) -> None:
    with pytest.raises(WarpError, match="more than the .* of the drive"):
        whatif(str(trace), drive_bytes=1 << 23)
    with pytest.raises(WarpError, match="drive_bytes = '5': 5 means 5 bytes. Give a unit, for example 5TB"):
        whatif(str(trace), drive_bytes="5")
    with pytest.raises(WarpError, match="drive_bytes = 1.5: give bytes as a whole number"):
        whatif(str(trace), drive_bytes=1.5)
    with pytest.raises(WarpError, match="did you mean kvcache_202210"):
        whatif("kvcache_202207")
