"""Stand-ins for the programs of PBS, Torque, LSF and OAR.

They take a script as the real ones do, run it as a process of this machine with next to no environment, and answer in
the words of the real ones. One file is all of them: its name says which it is. ``FAKE_SCHEDULER`` names its folder.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

NAMES = ("qsub", "qstat", "qdel", "bsub", "bjobs", "bkill", "oarsub", "oarstat", "oardel")


def install(folder):
    """Put all programs into a folder, for the front of PATH; return it."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    for name in NAMES:
        program = programs / name
        program.write_text(f"#!{sys.executable}\n{pathlib.Path(__file__).read_text()}")
        program.chmod(0o755)
    return programs


def jobs(folder):
    """Return what is known of the jobs, by number."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.job"))}


def main(name, words):
    folder = pathlib.Path(os.environ["FAKE_SCHEDULER"])
    if (folder / "down").exists():
        sys.exit(f"{name}: cannot connect to server")
    if name.endswith("sub"):
        submit(folder, name, words)
    elif name in ("qdel", "bkill", "oardel"):
        for job in words:
            end(folder, job)
    else:
        tell(folder, name, words)


def say(text):
    sys.stdout.write(text + "\n")


def submit(folder, name, words):
    script = sys.stdin.read() if name == "bsub" else pathlib.Path(words[-1]).read_text()
    mark = {"qsub": "#PBS", "bsub": "#BSUB", "oarsub": "#OAR"}[name]
    directives = [line[len(mark) :].strip() for line in script.splitlines() if line.startswith(mark)]
    option = dict(line.partition(" ")[::2] for line in directives)
    if option.get("-q") == "nosuch":
        if name == "bsub":
            sys.stderr.write("nosuch: No such queue. Job not submitted.\n")
        else:
            sys.stderr.write(f"{name}: Unknown queue nosuch\n")
        sys.exit(170)
    number = str(101 + len(jobs(folder)))
    variable = {"qsub": "PBS_JOBID", "bsub": "LSB_JOBID", "oarsub": "OAR_JOB_ID"}[name]
    text = folder / f"{number}.sh"
    text.write_text(script)
    out, err = option[{"oarsub": "-O"}.get(name, "-o")], option[{"oarsub": "-E"}.get(name, "-e")]
    clean = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin", variable: number}
    # a node of its own, which does not see a folder of this machine
    hide = f"mount -t tmpfs none {os.environ['FAKE_HIDES']} && " if "FAKE_HIDES" in os.environ else ""
    line = f"{hide}bash {text} >{out} 2>{err}; echo $? >{folder}/{number}.code"
    process = subprocess.Popen(
        [*(["unshare", "--mount"] if hide else []), "bash", "-c", line],
        env=clean,
        cwd="/",
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (folder / f"{number}.job").write_text(json.dumps({"pid": process.pid, "script": script, "lines": directives}))
    if name == "qsub":
        say(f"{number}.server.example.org")
    elif name == "bsub":
        say(f"Job <{number}> is submitted to default queue <normal>.")
    else:
        say(f"[ADMISSION RULE] Modify resource description with type constraints\nOAR_JOB_ID={number}")


def end(folder, job):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(json.loads((folder / f"{job.partition('.')[0]}.job").read_text())["pid"], signal.SIGKILL)


def lives(folder, job):
    pid = json.loads((folder / f"{job}.job").read_text())["pid"]
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def tell(folder, name, words):
    wanted = [word.partition(".")[0] for word in words if re.match(r"\d", word)]
    code = 0
    if name == "qstat":
        say("Job id            Name             User              Time Use S Queue")
        say("----------------  ---------------- ----------------  -------- - -----")
    for job in wanted:
        runs = lives(folder, job)
        if name == "qstat" and runs:
            say(f"{job}.server        moraine          root              00:00:00 R workq")
        elif name == "qstat":
            sys.stderr.write(f"qstat: {job}.server.example.org Job has finished, use -x or -H to obtain its history\n")
            code = 35
        elif name == "bjobs":
            ended = "DONE" if (folder / f"{job}.code").exists() else "EXIT"
            say(f"{job} {'RUN' if runs else ended}")
        else:
            say(f"{job}: {'Running' if runs else 'Terminated'}")
    sys.exit(code)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[0]).name, sys.argv[1:])
