"""What remote stores are to do, and do not do yet: the tests that say so are expected to fail, for the reason given here."""

SHORTFALLS = {
    "test_a_zip_is_two_requests_and_one_for_each_entry": "zip files on servers are not read yet",
}
