"""The host's own commands: list, info, plugins, check, quicklook, view, run, status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moraine_core.cli.result import Result
from moraine_core.errors import UsageError
from moraine_core.plugins import PluginHost  # noqa: TC001 - typer evaluates the annotations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Variables = Annotated[
    list[str] | None,
    typer.Option("--var", help="a variable of the file: NAME=VALUE (repeatable)", metavar="NAME=VALUE"),
]
Workdir = Annotated[
    str | None, typer.Option(help="work directory; by default as the file says, else the file's own", metavar="DIR")
]
PipelineFile = Annotated[str, typer.Argument(help="pipeline file (TOML)", metavar="FILE", show_default=False)]


def list_(host: PluginHost) -> Result:
    """List all commands, by family."""
    commands = host.commands()
    fields = [{"name": c.name, "module": c.module, "summary": c.summary} for c in commands]
    width = max((len(c.name) for c in commands), default=0)
    lines = []
    for family in sorted({c.family for c in commands}):
        lines += [family, *(f"  {c.name:<{width}}  {c.summary}" for c in commands if c.family == family)]
    bad = [f"  {r.name} of {r.owner}: {r.status}: {r.reason}" for r in host.records() if r.status != "ok"]
    return Result("\n".join([*lines, *(["not usable", *bad] if bad else [])]), {"commands": fields})


def plugins(
    host: PluginHost, *, strict: Annotated[bool, typer.Option("--strict", help="fail if one is not ok")] = False
) -> Result:
    """List all plugins with distribution, version and state; what is wrong with one is said with the reason."""
    records = host.records()
    fields = [
        {
            "name": r.name,
            "group": r.group,
            "distribution": r.distribution,
            "version": r.version,
            "status": r.status,
            "reason": r.reason,
        }
        for r in records
    ]
    lines = [f"{r.owner:<24} {r.name:<24} {r.status}" + (f": {r.reason}" if r.reason else "") for r in records]
    lines += [r.trace.rstrip() for r in records if r.trace]
    bad = [r.name for r in records if r.status != "ok"] if strict else []
    text = "\n".join(lines) or "no plugins are installed"
    return Result(text, {"plugins": fields, **_failed("not ok", bad)}, ok=not bad)


def info(
    host: PluginHost,
    path: Annotated[
        list[str], typer.Argument(help="arrays, pyramids, directories or files", metavar="PATH...", show_default=False)
    ],
) -> Result:
    """Say what is at each path: kind, shape, dtype, statistics, and which command made it."""
    from moraine_core.provenance import made_by
    from moraine_core.summary import describe, summarize

    summaries = [summarize(p, host) for p in path]
    lines = []
    for summary in summaries:
        lines.append(describe(summary))
        made = made_by(summary["path"]) if "error" not in summary else {}
        if made:
            arguments = ", ".join(f"{name}={value}" for name, value in made["arguments"].items())
            lines.append(f"  made by {made['command']} {made['version']}: {arguments}")
    return Result("\n".join(lines), {"summaries": summaries})


def check(
    host: PluginHost,
    path: Annotated[
        list[str], typer.Argument(help="arrays, or directories of arrays", metavar="PATH...", show_default=False)
    ],
    n_workers: Annotated[int | None, typer.Option(help="threads; by default the usable cores (count)")] = None,
) -> Result:
    """Read every chunk of stores and list those that are missing, unreadable or unfinished."""
    from moraine_core.check import check_store, is_whole
    from moraine_core.executor import Executor

    with Executor(n_workers=n_workers) as executor:
        found = [check_store(p, executor) for p in path]
    lines = []
    for store in found:
        state = "whole" if is_whole(store) else "NOT whole"
        lines.append(f"{store['path']}: {state}, {store['arrays']} arrays, {store['chunks']} chunks")
        for kind in ("missing", "unreadable", "unfinished"):
            lines += [f"  {kind}: {text}" for text in store[kind]]
    bad = [store["path"] for store in found if not is_whole(store)]
    return Result("\n".join(lines), {"checks": found, **_failed("not whole", bad)}, ok=not bad)


def _failed(what: str, names: Sequence[str]) -> dict[str, str]:
    """Return the field that every failure has in JSON, if there is one."""
    return {"error": f"{what}: {', '.join(names)}"} if names else {}


def quicklook(
    host: PluginHost,
    pyramid: Annotated[str, typer.Argument(help="a pyramid", metavar="PYRAMID", show_default=False)],
    output: Annotated[str | None, typer.Option("--output", "-o", help="the picture; <pyramid>.png by default")] = None,
    show: Annotated[str | None, typer.Option(help="phase, intf_0, intf_seq, intf_all, coh or coh_abs")] = None,
    index: Annotated[
        list[str] | None, typer.Option(help="values of the sliders, in order (numbers)", metavar="INT...")
    ] = None,
    width: Annotated[int, typer.Option(help="width of the data in the picture (pixels)")] = 1000,
    extent: Annotated[
        list[str] | None,
        typer.Option(
            help="west south east north (degrees) on a map; range_min azimuth_min range_max azimuth_max",
            metavar="NUMBER NUMBER NUMBER NUMBER",
        ),
    ] = None,
    dates: Annotated[str | None, typer.Option(help="meta.toml with the dates of the images")] = None,
    image_pairs: Annotated[
        str | None, typer.Option(help="file of the image pairs of a coherence that does not hold all of them")
    ] = None,
) -> Result:
    """Draw a picture of a pyramid."""
    from moraine_core.quicklook import draw, quicklook_options

    given = {"show": show, "index": index, "width": width, "extent": extent, "dates": dates, "image_pairs": image_pairs}
    png = Path(output or f"{pyramid.rstrip('/')}.png")
    drawn = draw(host, pyramid, png, quicklook_options("quicklook", given))
    return Result(f"{drawn}", {"png": str(drawn)})


def view(
    host: PluginHost,
    path: Annotated[
        list[str],
        typer.Argument(help="pyramids, or folders with pyramids", metavar="PATH...", show_default=False),
    ],
    port: Annotated[int, typer.Option(help="port of this machine to listen on; 0 takes a free one (number)")] = 0,
    browser: Annotated[  # noqa: FBT002 - an option of the command line
        bool, typer.Option("--browser/--no-browser", help="open a browser where there is a screen")
    ] = True,
    basemap: Annotated[
        str | None, typer.Option(help="PMTiles archive with pictures behind points on the map", metavar="FILE")
    ] = None,
    show: Annotated[str | None, typer.Option(help="phase, intf_0, intf_seq, intf_all, coh or coh_abs")] = None,
    dates: Annotated[str | None, typer.Option(help="meta.toml with the dates of the images")] = None,
    image_pairs: Annotated[
        str | None, typer.Option(help="file of the image pairs of stacks that count pairs and do not hold all of them")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="write a notebook (.ipynb) that shows the same, and end")
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(help="write a folder that any file server can show, without this program, and end", metavar="DIR"),
    ] = None,
    export_levels: Annotated[
        str, typer.Option(help="levels of rasters in the export, such as 1.. or 1..4; 0 is the data", metavar="A..B")
    ] = "0..",
    export_dates: Annotated[
        str | None,
        typer.Option(
            help="dates of stacks in the export, such as 20200106,20200118..20200330; all by default",
            metavar="DATE,A..B",
        ),
    ] = None,
    max_size: Annotated[str, typer.Option(help="largest size of the export (bytes, or with kB, MB, GB)")] = "2GB",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace notebook or export")] = False,  # noqa: FBT002
) -> Result:
    """Show pyramids in a browser, from this machine alone; Ctrl-C ends."""
    from moraine_core.quicklook import view as shown

    options = {
        "port": port,
        "browser": browser,
        "basemap": basemap,
        "show": show,
        "dates": dates,
        "image_pairs": image_pairs,
        "output": output,
        "export": export,
        "export_levels": export_levels,
        "export_dates": export_dates,
        "max_size": max_size,
        "overwrite": overwrite,
        "say": _say,
    }
    fields = shown(host, path, options)
    return Result(fields["notebook"] or fields["export"] or "", fields)


def _say(line: str) -> None:
    """Tell something before the result is there, whatever is logged."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def run(
    host: PluginHost,
    file: PipelineFile,
    workdir: Workdir = None,
    var: Variables = None,
    only: Annotated[list[str] | None, typer.Option(help="run just this step (repeatable)", metavar="STEP")] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="run this step and all later ones", metavar="STEP")
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="run all steps")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would run, and why")] = False,
    check: Annotated[bool, typer.Option("--check", help="validate all steps and their inputs; run nothing")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="do not continue interrupted steps")] = False,
    executor: Annotated[
        str | None, typer.Option(help="a named executor for all steps; see moraine executors", metavar="NAME")
    ] = None,
    no_quicklook: Annotated[bool, typer.Option("--no-quicklook", help="draw no pictures of pyramids")] = False,
) -> Result:
    """Run a pipeline: the steps whose arguments or inputs have changed, in the order of the file."""
    from moraine_core import pipeline

    loaded = pipeline.load(file, variables(var), workdir)
    result = pipeline.run(
        loaded,
        host,
        only=tuple(only or ()),
        start=from_,
        force=force,
        dry_run=dry_run,
        check=check,
        quicklook=not no_quicklook,
        fresh=fresh,
        executor=executor,
    )
    return Result(result.text, result.fields, ok=result.ok)


def status(host: PluginHost, file: PipelineFile, workdir: Workdir = None, var: Variables = None) -> Result:
    """Say of each step of a pipeline whether it is done, failed, pending or outdated."""
    from moraine_core import pipeline

    fields = pipeline.status(pipeline.load(file, variables(var), workdir), host)
    width = max((len(step["name"]) for step in fields["steps"]), default=0)
    lines = [f"{step['name']:<{width}}  {step['command']}: {step['status']}" for step in fields["steps"]]
    return Result("\n".join(lines), fields)


def variables(pairs: list[str] | None) -> dict[str, str]:
    """Return variables from ``NAME=VALUE`` words.

    Raises
    ------
    UsageError
        A word has no ``=`` or no name.
    """
    found = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            msg = f"--var {pair}; expected NAME=VALUE"
            raise UsageError(msg)
        found[name] = value
    return found


def executors(
    host: PluginHost,
    action: Annotated[str, typer.Argument(help="list, or check NAME", metavar="list|check")] = "list",
    name: Annotated[str | None, typer.Argument(help="the executor to check", metavar="NAME")] = None,
    *,
    cuda: Annotated[bool, typer.Option("--cuda", help="check its GPUs as well")] = False,
) -> Result:
    """List the named executors, or send one task to each slot of one and say what is there."""
    from moraine_core import tables
    from moraine_core.executor import check

    if (action, name is None) not in (("list", True), ("check", False)):
        msg = f"executors {' '.join(filter(None, (action, name)))}; expected: executors list, or executors check NAME"
        raise UsageError(msg)
    if name is not None:
        found = check.check_executor(host, name, cuda=cuda)
        return Result(check.describe(found), found)
    specs, named = host.executors()
    rows = [{"name": n, "kind": k, "from": str(tables.file()), "help": specs[k].help} for n, k in named.items()]
    rows += [{"name": s.name, "kind": "", "from": s.load, "help": s.help} for s in specs.values() if not s.schema]
    lines = [f"{row['name']:<16} {row['kind']:<10} {row['help']} ({row['from']})" for row in rows]
    kinds = ", ".join(name for name, spec in specs.items() if spec.schema) or "none is installed"
    empty = f"no executors; name one in {tables.file()}, kinds: {kinds}"
    return Result("\n".join(lines) or empty, {"executors": rows})


FUNCTIONS: tuple[Callable[..., Result], ...] = (list_, info, plugins, check, quicklook, view, run, status, executors)
"""All of them, in the order in which the help lists them."""
