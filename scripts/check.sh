#!/usr/bin/env bash
# Everything that runs without a mount: formatting, lints, tests, doc tests, documentation.
# usage: scripts/check.sh [lints|tests]
#   lints   formatting and lints only
#   tests   the rest only
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/setup.sh
. scripts/setup.sh
case ${1-} in
    "" | lints | tests) ;;
    *) fail "usage: scripts/check.sh [lints|tests]" ;;
esac
need_system_packages
need_cargo

if [ "${1-}" != tests ]; then
    say "formatting"
    cargo fmt --check
    say "lints"
    cargo clippy --quiet --all-targets -- -D warnings
    say "lints without remote stores"
    # These are of the library and the program only, because what tests add is the same with remote stores and without.
    cargo clippy --quiet --no-default-features -- -D warnings
fi
# The model checker runs locks and threads. ZARR_MOUNT_SCHEDULES is the number of schedules of each test. A lock that the checker
# does not know can wait for ever.
schedules() {
    local model=(--quiet --no-default-features --features model --lib)
    cargo test "${model[@]}" --no-run
    timeout 600 cargo test "${model[@]}" schedules::
}

if [ "${1-}" != lints ]; then
    say "tests and doc tests"
    cargo test --quiet --no-run
    # Some tests wait, so that the model checker compiles and runs beside them.
    log=$(mktemp)
    schedules >"$log" 2>&1 &
    beside=$! failed=
    cargo test --quiet || failed="tests"
    say "schedules of threads"
    wait "$beside" || failed="${failed:+$failed and }schedules of threads"
    cat "$log"
    rm "$log"
    [ -z "$failed" ] || fail "$failed failed"
    say "documentation"
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps
fi
