"""What remote stores are to do, and do not do yet: the tests that say so are expected to fail, for the reason given here."""

SHORTFALLS = {
    "test_memory_of_two_hundred_and_fifty_six_requests_in_flight": "readers of 256 chunks of 1 MiB took 279 MiB, not yet explained",
}
