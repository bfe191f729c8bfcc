#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::shard_indices::run(data));
