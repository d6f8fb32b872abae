#!/usr/bin/env python3
"""CPU time per call of two clients, ours and rmcp's, against the same server: see README.md.

    python3 bench/clients.py [--repeat 5] [--calls 20000] [--server PROGRAM]
"""
import argparse, os, statistics, subprocess, sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target" / "bench"))
PEER = ("rmcp", "tokio", "legacy")
SUBJECTS = [("ours", runtime, era) for runtime in ("tokio", "smol") for era in ("legacy", "modern")] + [PEER]
DEPTH = 16


def build(name):
    """The program of a package that is no member of the workspace."""
    manifest = HERE / name / "Cargo.toml"
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest]
    subprocess.run(command, check=True, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
    return TARGET / "release" / f"bench-{name}"


def measure(program, runtime, era, calls, target):
    """Microseconds of CPU per call, of the client's process alone."""
    command = [program, runtime, era, str(DEPTH), str(calls), *target]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with status {ran.returncode}:\n{ran.stderr}")
    return float(ran.stdout)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--repeat", type=int, default=5, help="repetitions, of which the median counts")
    args.add_argument("--calls", type=int, default=20000, help="calls of one repetition; over HTTP half of them")
    args.add_argument("--server", default=HERE.parent / "target" / "release" / "mcp-conformance", help="the fixture")
    args = args.parse_args()
    programs = {name: build(name) for name in ("ours", "rmcp")}
    serve = [str(args.server), "serve", "--runtime", "tokio"]

    with subprocess.Popen([*serve, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as server:
        try:
            url = server.stderr.readline().removeprefix("listening on ").strip()
            transports = {"stdio": ([*serve, "--stdio"], args.calls), "HTTP": ([url], args.calls // 2)}
            taken = {}
            # Interleaved: whatever else the machine does, it does to all of them.
            for _ in range(args.repeat):
                for transport, (target, calls) in transports.items():
                    for subject in SUBJECTS:
                        name, runtime, era = subject
                        micros = measure(programs[name], runtime, era, calls, target)
                        taken.setdefault((transport, subject), []).append(micros)
        finally:
            server.kill()

    print(f"CPU of the client per call in microseconds, {DEPTH} calls at once, median of {args.repeat} (least to most)")
    print("\n| transport | client | runtime | era | µs per call | of rmcp |\n|---|---|---|---|---|---|")
    for transport in transports:
        peer = statistics.median(taken[transport, PEER])
        for subject in SUBJECTS:
            micros = taken[transport, subject]
            median = statistics.median(micros)
            span = f"{median:.1f} ({min(micros):.1f} to {max(micros):.1f})"
            print(f"| {transport} | {' | '.join(subject)} | {span} | {median / peer:.2f} |")


if __name__ == "__main__":
    main()
