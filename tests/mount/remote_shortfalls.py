"""What remote stores are to do, and do not do yet: the tests that say so are expected to fail, for the reason given here."""

ONE_REQUEST = "a chunk that was not listed is asked for by HEAD before it is read"
SHARDS = "a shard whose index is at its start, or that is opened for a part, takes a request more"
NAMES = "a name is asked for as an object and as a prefix, and names are listed again when a listing is opened again"

SHORTFALLS = {
    "test_a_chunk_is_one_request": ONE_REQUEST,
    "test_an_absent_chunk_is_one_request": ONE_REQUEST,
    "test_sixty_four_readers_wait_for_one_round_trip": ONE_REQUEST,
    "test_readers_of_the_same_chunk_share_one_request": ONE_REQUEST,
    "test_an_index_at_the_start_is_two_requests": SHARDS,
    "test_the_header_of_an_array_is_no_request_and_its_first_data_as_of_a_chunk": SHARDS,
    "test_a_key_is_two_requests": NAMES,
    "test_a_key_that_was_listed_is_one_request": NAMES,
    "test_names_are_listed_by_pages_of_a_thousand": NAMES,
    "test_nothing_is_asked_within_the_time_to_live": NAMES,
    "test_a_store_that_never_changes_is_asked_once": NAMES,
    "test_the_first_listing_without_it": NAMES,
    "test_names_of_chunks_are_not_listed": "the contract can be read either way",
    "test_absent_chunks_one_after_the_other": "each absent chunk is a request",
    "test_after_it_a_document_is_asked_for_by_its_version": "a document is asked for by HEAD, and read again when it changed",
    "test_a_zip_is_two_requests_and_one_for_each_entry": "zip files on servers are not read yet",
    "test_an_unknown_region_is_one_more": "the server of the test is no AWS, whose servers alone are asked for the region",
    "test_ranges_of_a_server_without_versions": "an object without any version is read only with --immutable",
    "test_credentials_that_expired": "only GET has a body that tells that credentials have expired, and the first request is HEAD",
    "test_a_clock_that_is_wrong": "only GET has a body that tells that the clock is wrong, and the first request is HEAD",
    "test_a_private_bucket_of_moto": "the answer to the first request denies a document, and its message names that",
    "test_faults_that_stay": "some cases give ESTALE for EIO, or need --ttl to pass before what a wrong answer said is forgotten",
}
