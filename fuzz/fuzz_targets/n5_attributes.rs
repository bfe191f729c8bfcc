#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::n5_attributes::run(data));
