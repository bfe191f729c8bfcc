#!/usr/bin/env bash
# Everything that runs without a mount: formatting, lints, tests, doc tests, the model checker, documentation.
# usage: scripts/check.sh [tests|more]
#   tests   formatting, tests, doc tests and schedules of threads, with the lints of all that is compiled for them
#   more    lints of the program without remote stores; documentation
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/setup.sh
. scripts/setup.sh
part=${1-}
case $part in
    "" | tests | more) ;;
    *) fail "usage: scripts/check.sh [tests|more]" ;;
esac
need_system_packages
need_cargo

# is_wanted PART: whether this part is the given one, or all parts are wanted.
is_wanted() { [ -z "$part" ] || [ "$part" = "$1" ]; }
failed=()
# run NAME COMMAND...: runs a part. The parts that failed are named at the end.
run() {
    say "$1"
    "${@:2}" || failed+=("$1")
}

lints() { cargo clippy --quiet "$@" -- -D warnings; }
# The model checker runs each test in ZARR_MOUNT_SCHEDULES different schedules of its threads and locks. A lock that the checker
# does not know can wait for ever, so there is a time limit. The other features are those of the tests above, so that no
# dependency is compiled again.
schedules() {
    local model=(--quiet --features model --lib)
    with_lints cargo test "${model[@]}" --no-run && with_lints timeout 600 cargo test "${model[@]}" schedules::
}
documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps; }

if is_wanted tests; then
    say "formatting"
    cargo fmt --check
    say "lints, tests and doc tests"
    with_lints cargo test --quiet --no-run
    # Many tests spend most of their time waiting, so everything else is compiled and run beside them. Cargo compiles for one
    # command at a time, so no other command begins before the tests run.
    log=$(mktemp)
    with_lints cargo test --quiet >"$log" 2>&1 &
    tests=$!
    trap 'kill "$tests"; exit 130' INT TERM
    while [ ! -s "$log" ] && kill -0 "$tests" 2>/dev/null; do sleep 0.1; done
fi
# Only the library and the program are examined, because the code of the tests is the same with remote stores and without.
if is_wanted more; then run "lints without remote stores" lints --no-default-features; fi
if is_wanted tests; then run "schedules of threads" schedules; fi
if is_wanted more; then run "documentation" documentation; fi
if is_wanted tests; then
    say "waiting for the tests"
    wait "$tests" || failed+=("tests")
    cat "$log"
    rm "$log"
fi
[ ${#failed[@]} = 0 ] || fail "failed: ${failed[*]}"
