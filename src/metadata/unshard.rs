//! The codecs of the innermost chunks of a sharded array.

use super::codecs;
use super::json::Extension;
use crate::error::FormatError;

/// The codecs before the sharding codec of each level, and all codecs of the last level. The codecs
/// after a sharding codec encode the whole shard, so the inner chunks do not have them.
///
/// # Errors
///
/// When a codec before the sharding codec mixes elements of different inner chunks: encoding an
/// inner chunk by itself would give other bytes.
pub(super) fn innermost(mut specs: Vec<Extension<'_>>) -> Result<Vec<Extension<'_>>, FormatError> {
    let mut chain = Vec::new();
    loop {
        let Some(at) = specs.iter().position(codecs::is_sharding) else {
            chain.extend(specs);
            return Ok(chain);
        };
        let inner = match specs.get(at) {
            Some(sharding) => codecs::list(sharding.configuration.require("codecs")?)?,
            None => Vec::new(),
        };
        specs.truncate(at);
        if let Some(mixing) = specs.iter().find(|spec| !keeps_elements_apart(&spec.name)) {
            let name = format!("{} before sharding_indexed", mixing.name);
            return Err(FormatError::unsupported("codecs", "codec", name));
        }
        chain.extend(std::mem::replace(&mut specs, inner));
    }
}

/// Whether a codec from array to array encodes each element by itself.
fn keeps_elements_apart(name: &str) -> bool {
    let name = name.strip_prefix("numcodecs.").unwrap_or(name);
    matches!(
        name,
        "transpose"
            | "bitround"
            | "https://codec.zarrs.dev/array_to_array/bitround"
            | "https://codec.zarrs.dev/array_to_bytes/bitround"
            | "categorize"
            | "quantize"
            | "fixedscaleoffset"
            | "astype"
            | "scale_offset"
            | "cast_value"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DataType;

    #[test]
    fn chains_agree_on_what_is_split() {
        let bits = r#"{"keepbits": 3}"#;
        for (name, configuration, data_type) in [
            ("transpose", r#"{"order": [0]}"#, "float32"),
            ("bitround", bits, "float32"),
            ("numcodecs.bitround", bits, "float32"),
            (
                "https://codec.zarrs.dev/array_to_array/bitround",
                bits,
                "float32",
            ),
            (
                "https://codec.zarrs.dev/array_to_bytes/bitround",
                bits,
                "float32",
            ),
            (
                "numcodecs.quantize",
                r#"{"digits": 1, "dtype": "<f4"}"#,
                "float32",
            ),
            (
                "numcodecs.astype",
                r#"{"encode_dtype": "<f8", "decode_dtype": "<f4"}"#,
                "float32",
            ),
            (
                "numcodecs.fixedscaleoffset",
                r#"{"offset": 0, "scale": 2, "dtype": "<f4"}"#,
                "float32",
            ),
            ("numcodecs.delta", r#"{"dtype": "<f4"}"#, "float32"),
            ("numcodecs.packbits", "{}", "bool"),
            (
                "numcodecs.categorize",
                r#"{"labels": ["a"], "dtype": "<U2"}"#,
                "fixed_length_utf32",
            ),
            ("scale_offset", "{}", "float32"),
            ("cast_value", r#"{"data_type": "float64"}"#, "float32"),
            ("reshape", r#"{"shape": [-1]}"#, "float32"),
        ] {
            let text = format!(
                r#"[{{"name": "{name}", "configuration": {configuration}}},
                {{"name": "bytes", "configuration": {{"endian": "little"}}}}]"#
            );
            let data_type = match data_type {
                "fixed_length_utf32" => {
                    r#"{"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}"#
                        .to_owned()
                }
                name => format!("\"{name}\""),
            };
            let data_type = DataType::parse_v3(serde_json::from_str(&data_type).unwrap()).unwrap();
            let specs = codecs::list(codecs::parse(&text).unwrap()).unwrap();
            let chain = codecs::chain(&specs, &data_type, &[4]).unwrap();
            let splits = chain.array_to_array[0].can_be_split();
            assert_eq!(keeps_elements_apart(name), splits, "{name}");
        }
    }
}
