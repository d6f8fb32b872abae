#!/usr/bin/env bash
# Builds one fuzz target and runs it: fuzz/run.sh TARGET [libFuzzer argument...]
#
# A stable toolchain and a C++ compiler are enough: the coverage hooks are an LLVM pass that rustc can be
# told to run, and libFuzzer comes as source with its crate. With SANITIZER=address in the environment the
# build is watched by AddressSanitizer too, for which rustc has to be told to accept unstable flags.
set -euo pipefail
cd "$(dirname "$0")"

[ $# -ge 1 ] || { echo "usage: fuzz/run.sh TARGET [libFuzzer argument...]" >&2; exit 2; }
target=$1
shift
[ -f "src/bin/$target.rs" ] || { echo "no such target: $target" >&2; exit 2; }

# An explicit --target keeps these flags away from build scripts, which do not link libFuzzer.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing
 -Cpasses=sancov-module
 -Cllvm-args=-sanitizer-coverage-level=4
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
 -Cllvm-args=-sanitizer-coverage-pc-table
 -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS=${RUSTFLAGS//$'\n'/}
unset CARGO_ENCODED_RUSTFLAGS
export CARGO_TARGET_DIR=target
if [ -n "${SANITIZER:-}" ]; then
  export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$RUSTFLAGS -Zsanitizer=$SANITIZER" CARGO_TARGET_DIR="target/$SANITIZER"
fi
cargo build --quiet ${CI:+--locked} --release --target "$host" --bin "$target"

# New inputs go to the first directory; the committed ones are only read.
new=${NEW_INPUTS:-target/corpus/$target}
mkdir -p "$new" "artifacts/$target" "corpus/$target"
exec "$CARGO_TARGET_DIR/$host/release/$target" \
  -dict=mcp.dict -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=10 -print_final_stats=1 \
  -artifact_prefix="artifacts/$target/" "$@" "$new" "corpus/$target"
