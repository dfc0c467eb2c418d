"""The tools of developers start, explain themselves, and without a GPU say so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
BENCHES = ("startup", "executor", "memory", "commands")


def run(*words, **environment):
    """Run a tool in a new process and return how it ended."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


def test_the_benchmarks_explain_themselves():
    done = run(TOOLS / "bench", "--help")
    assert done.returncode == 0, done.stderr
    for name in BENCHES:
        assert f"\n{name}:\n" in done.stdout


def test_an_unknown_benchmark_is_a_usage_error():
    done = run(TOOLS / "bench", "speed")
    assert done.returncode == 2
    assert "invalid choice: 'speed'" in done.stderr


def test_a_benchmark_prints_rows_of_a_table():
    done = run(TOOLS / "bench", "executor", "--pairs", "1", "--tasks", "20", "--thread-tasks", "20")
    assert done.returncode in (0, 1), done.stderr  # 1 where a bar is not met: so few tasks say nothing about speed
    header, ruler, *rows = done.stdout.splitlines()
    assert len(rows) == 3
    assert {line.count("|") for line in (header, ruler, *rows)} == {7}


def test_the_ratio_of_a_row_is_the_median_of_its_pairs():
    code = (
        "from measure import Row\n"
        "row = Row('x', [1, 4, 9], [1, 2, 3], 's', 1.9)\n"
        "assert (row.value, row.met) == (2, False)\n"
        "assert Row('x', [1, 4, 9], [1, 2, 3], 's', 2.0).met\n"
        "assert Row('x', [3, 5, 4], [], 'us', 4).met\n"
        "assert not Row('x', [3, 5, 4], [], 'us', 3.9).met\n"
    )
    done = run("-c", code, PYTHONPATH=str(TOOLS / "bench"))
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the system does not tell memory shares")
def test_the_memory_of_a_process_tree_is_seen_from_outside(tmp_path):
    """100 MiB in a grandchild are found; what a fork shares with its parent counts once."""
    script = tmp_path / "grandchild.py"
    script.write_text(
        "import os, time\n"
        "block = bytearray(100 * 2**20)\n"
        "if os.fork() == 0:\n"
        "    time.sleep(0.6)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    code = f"import tree, sys; print(tree.run([sys.executable, {str(script)!r}]).peak_mib)"
    done = run("-c", code, PYTHONPATH=str(TOOLS / "bench"))
    assert done.returncode == 0, done.stderr
    assert 100 < float(done.stdout) < 150


def test_gpu_check_lists_its_checks_without_a_gpu():
    done = run(TOOLS / "gpu_check.py", "--list")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 10
    assert run(TOOLS / "gpu_check.py", "--help").returncode == 0


def test_gpu_check_without_a_gpu_says_so_at_once():
    """A17: also on a machine that has one, which CUDA_VISIBLE_DEVICES can hide."""
    start = time.monotonic()
    done = run(TOOLS / "gpu_check.py", CUDA_VISIBLE_DEVICES="")
    assert time.monotonic() - start < 5
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("gpu_check: no GPU")
    assert len(done.stderr.splitlines()) == 1
