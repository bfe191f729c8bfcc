#!/usr/bin/env bash
# Everything that runs without a mount: formatting, lints, tests, doc tests, documentation.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/setup.sh
. scripts/setup.sh
need_system_packages
need_cargo

say "formatting"
cargo fmt --check
say "lints"
cargo clippy --quiet --all-targets -- -D warnings
say "lints without remote stores"
# Of the library and the program; what tests add is the same with remote stores and without.
cargo clippy --quiet --no-default-features -- -D warnings
say "tests and doc tests"
cargo test --quiet
say "thousands of schedules of threads"
# Locks and threads of a model checker. ZARR_MOUNT_SCHEDULES is how many of each test. A lock that the checker does not
# know can wait for ever.
model=(--quiet --no-default-features --features model --lib)
cargo test "${model[@]}" --no-run
timeout 600 cargo test "${model[@]}" schedules::
say "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps
