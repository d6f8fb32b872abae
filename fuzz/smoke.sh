#!/usr/bin/env bash
# Runs every fuzz target for so many seconds: fuzz/smoke.sh SECONDS [TARGET...]
#
# The seed is fixed and nothing is kept from one time to the next, so that the same build tries the same inputs:
# a change is judged by what it changed, and new ground is for longer runs (fuzz/run.sh).
#
# One line a target. Exits with 1 if one of them found something, did not build, or is not instrumented.
set -uo pipefail
cd "$(dirname "$0")"

seconds=${1:?usage: fuzz/smoke.sh SECONDS [TARGET...]}
shift
[ $# -gt 0 ] || set -- $(cd src/bin && ls -- *.rs | sed 's/\.rs$//')

mkdir -p target
failed=0
for target in "$@"; do
  log=target/$target.log
  rm -rf "target/smoke/$target"
  if ! NEW_INPUTS=target/smoke/$target ./run.sh "$target" -seed=1 -max_total_time="$seconds" -verbosity=1 >"$log" 2>&1; then
    echo "$target: FAILED"
    tail -n 40 "$log"
    echo "to repeat it: fuzz/run.sh $target artifacts/$target/NAME (the name is above)"
    failed=1
    continue
  fi
  counters=$(sed -n 's/^INFO: Loaded 1 modules *(\([0-9]*\) inline 8-bit counters).*/\1/p' "$log")
  if [ "${counters:-0}" -lt 100 ]; then
    echo "$target: FAILED: built without coverage, so it finds nothing"
    failed=1
    continue
  fi
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  runs=$(sed -n 's/^Done \([0-9]*\) runs in.*/\1/p' "$log")
  echo "$target: ok, $runs runs, $covered of $counters edges"
done
exit $failed
