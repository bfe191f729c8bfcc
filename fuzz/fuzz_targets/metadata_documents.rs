#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::metadata_documents::run(data));
