"""What remote stores are to do, and do not do yet: the tests that say so are expected to fail, for the reason given here."""

SHORTFALLS = {
    "test_ranges_of_a_server_without_versions": "an object without any version is read only with --immutable",
    "test_credentials_that_expired": "only GET has a body that tells that credentials have expired, and the first request is HEAD",
    "test_a_clock_that_is_wrong": "only GET has a body that tells that the clock is wrong, and the first request is HEAD",
    "test_a_private_bucket_of_moto": "the answer to the first request denies a document, and its message names that",
    "test_faults_that_stay": "some cases give ESTALE for EIO, or need --ttl to pass before what a wrong answer said is forgotten",
}
