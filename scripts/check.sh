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

lints() {
    say "lints"
    cargo clippy --quiet --all-targets -- -D warnings || return
    say "lints without remote stores"
    # These are of the library and the program only, because what tests add is the same with remote stores and without.
    cargo clippy --quiet --no-default-features -- -D warnings
}
# The model checker runs locks and threads. ZARR_MOUNT_SCHEDULES is the number of schedules of each test. A lock that the checker
# does not know can wait for ever.
schedules() {
    local model=(--quiet --no-default-features --features model --lib)
    say "schedules of threads"
    cargo test "${model[@]}" --no-run && timeout 600 cargo test "${model[@]}" schedules::
}
documentation() {
    say "documentation"
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps
}

if [ "${1-}" != tests ]; then
    say "formatting"
    cargo fmt --check
fi
if [ "${1-}" = lints ]; then
    lints
    exit
fi
say "tests and doc tests"
cargo test --quiet --no-run
# Many tests wait, so that everything else compiles and runs beside them. Cargo compiles for one command at a time: the tests must
# have begun before another command may compile.
log=$(mktemp)
cargo test --quiet >"$log" 2>&1 &
tests=$! failed=()
trap 'kill "$tests"; exit 130' INT TERM
while [ ! -s "$log" ] && kill -0 "$tests" 2>/dev/null; do sleep 0.1; done
[ "${1-}" = tests ] || lints || failed+=("lints")
schedules || failed+=("schedules of threads")
documentation || failed+=("documentation")
say "waiting for the tests"
wait "$tests" || failed+=("tests")
cat "$log"
rm "$log"
[ ${#failed[@]} = 0 ] || fail "failed: ${failed[*]}"
