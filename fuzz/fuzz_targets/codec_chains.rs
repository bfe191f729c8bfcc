#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::codec_chains::run(data));
