//! Fill values, as JSON spells them.

use serde_json::{Value, json};

use super::kind::Kind::{
    self, Bool, BrainFloat, Bytes, Complex, Float, Int, Raw, Text, Time, Unsigned,
};

impl Kind {
    /// Items that are hard to spell.
    pub fn fills(&self) -> Vec<Vec<u8>> {
        let size = self.size();
        match *self {
            Bool => vec![vec![0], vec![1]],
            Int(_) | Unsigned(_) => {
                let mut least = vec![0; size];
                least[size - 1] = 0x80;
                vec![vec![0; size], vec![0xff; size], least]
            }
            Float(_) | BrainFloat => floats(self).map(|(_, bits)| bits).to_vec(),
            Complex(_) => {
                let parts = floats(&Float(size / 2));
                [(0, 0), (3, 1), (4, 2)]
                    .map(|(a, b)| [parts[a].1.clone(), parts[b].1.clone()].concat())
                    .to_vec()
            }
            Time(..) => vec![vec![0; 8], i64::MIN.to_le_bytes().to_vec()],
            Bytes(_) | Raw(_) => vec![vec![0; size], b"ab\xffd"[4 - size.min(4)..].to_vec()],
            Text(chars) => {
                let mut text = vec![0; size];
                text[..4].copy_from_slice(&u32::from('漢').to_le_bytes());
                vec![vec![0; size], text, self.item(chars as u64)]
            }
        }
    }

    pub fn fill_v2(&self, fill: &[u8]) -> Value {
        match *self {
            Bool => json!(fill[0] != 0),
            Int(_) | Time(..) => json!(integer(fill, true)),
            Unsigned(_) => json!(u64::try_from(integer(fill, false)).unwrap()),
            Float(_) | BrainFloat => spell_float(self, fill),
            Complex(size) => {
                let half = Float(size / 2);
                let (re, im) = fill.split_at(size / 2);
                json!([spell_float(&half, re), spell_float(&half, im)])
            }
            Bytes(_) => {
                let end = fill
                    .iter()
                    .rposition(|&byte| byte != 0)
                    .map_or(0, |at| at + 1);
                json!(base64(&fill[..end]))
            }
            Raw(_) => json!(base64(fill)),
            Text(_) => json!(text(fill)),
        }
    }

    pub fn fill_v3(&self, fill: &[u8]) -> Value {
        match *self {
            Time(..) if integer(fill, true) == i128::from(i64::MIN) => json!("NaT"),
            _ => self.fill_v2(fill),
        }
    }

    /// The item that JSON in a v2 or v3 document says.
    pub fn of_fill(&self, value: &Value) -> Vec<u8> {
        let size = self.size();
        let padded = |mut bytes: Vec<u8>| {
            bytes.resize(size, 0);
            bytes
        };
        match *self {
            Bool => vec![u8::from(value.as_bool().unwrap())],
            Time(..) if value == "NaT" => i64::MIN.to_le_bytes().to_vec(),
            Int(_) | Time(..) => value.as_i64().unwrap().to_le_bytes()[..size].to_vec(),
            Unsigned(_) => value.as_u64().unwrap().to_le_bytes()[..size].to_vec(),
            Float(_) | BrainFloat => parse_float(self, value),
            Complex(_) => {
                let half = Float(size / 2);
                [parse_float(&half, &value[0]), parse_float(&half, &value[1])].concat()
            }
            Raw(_) if value.is_array() => value
                .as_array()
                .unwrap()
                .iter()
                .map(|byte| byte.as_u64().unwrap() as u8)
                .collect(),
            Bytes(_) | Raw(_) => padded(of_base64(value)),
            Text(_) => {
                let chars = value.as_str().unwrap().chars();
                padded(
                    chars
                        .flat_map(|char| u32::from(char).to_le_bytes())
                        .collect(),
                )
            }
        }
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn base64(bytes: &[u8]) -> String {
    let groups = bytes.chunks(3).flat_map(|group| {
        let bits = (0..3).fold(0, |bits, i| {
            bits << 8 | usize::from(*group.get(i).unwrap_or(&0))
        });
        let digit = move |i: usize| {
            if i <= group.len() {
                char::from(BASE64[bits >> (18 - 6 * i) & 63])
            } else {
                '='
            }
        };
        (0..4).map(digit)
    });
    groups.collect()
}

pub fn of_base64(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    assert_eq!(text.len() % 4, 0, "padding of {text}");
    let digits = text.trim_end_matches('=').bytes();
    let mut bits = digits.map(|digit| BASE64.iter().position(|known| *known == digit).unwrap());
    let mut bytes = Vec::new();
    let mut last = bits.next().unwrap_or(0);
    for (i, next) in bits.enumerate() {
        let taken = 2 * (i % 4 + 1);
        if taken <= 6 {
            bytes.push((last << taken | next >> (6 - taken)) as u8);
        }
        last = next;
    }
    bytes
}

fn integer(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes.last().unwrap() & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn text(units: &[u8]) -> String {
    let units = units
        .chunks_exact(4)
        .map(|unit| u32::from_le_bytes(unit.try_into().unwrap()));
    let text: String = units.map(|unit| char::from_u32(unit).unwrap()).collect();
    text.trim_end_matches('\0').to_owned()
}

/// Spelling and bits; the last has no spelling but its bits.
pub fn floats(kind: &Kind) -> [(Value, Vec<u8>); 8] {
    let half = [
        0, 0x8000, 0x3e00, 0xc080, 0x7e00, 0x7c00, 0xfc00, 0xfe01_u16,
    ];
    let single = [
        0.0,
        -0.0,
        1.5,
        -2.25,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ]
    .map(f32::to_bits);
    let texts = [
        json!(0.0),
        json!(-0.0),
        json!(1.5),
        json!(-2.25),
        json!("NaN"),
        json!("Infinity"),
        json!("-Infinity"),
        Value::Null,
    ];
    let mut at = 0;
    texts.map(|text| {
        let wide = single.get(at).copied().unwrap_or(0xffa1_0000);
        let bits = match kind {
            Float(2) => half[at].to_le_bytes().to_vec(),
            BrainFloat => wide.to_le_bytes()[2..].to_vec(),
            Float(4) => wide.to_le_bytes().to_vec(),
            _ if at == 4 => 0x7ff8_0000_0000_0000_u64.to_le_bytes().to_vec(),
            _ if at == 7 => 0xfff8_0000_0000_0001_u64.to_le_bytes().to_vec(),
            _ => f64::from(f32::from_bits(wide))
                .to_bits()
                .to_le_bytes()
                .to_vec(),
        };
        at += 1;
        (text, bits)
    })
}

fn spell_float(kind: &Kind, bits: &[u8]) -> Value {
    if let Some((text, _)) = floats(kind).into_iter().find(|(_, known)| known == bits)
        && !text.is_null()
    {
        return text;
    }
    let number = match *kind {
        Float(4) => f64::from(f32::from_le_bytes(bits.try_into().unwrap())),
        Float(8) => f64::from_le_bytes(bits.try_into().unwrap()),
        _ => f64::NAN,
    };
    if number.is_finite() {
        return json!(number);
    }
    let mut wide = [0; 8];
    wide[..bits.len()].copy_from_slice(bits);
    let digits = 2 * bits.len();
    json!(format!("0x{:0digits$x}", u64::from_le_bytes(wide)))
}

fn parse_float(kind: &Kind, value: &Value) -> Vec<u8> {
    if let Some(digits) = value.as_str().and_then(|text| text.strip_prefix("0x")) {
        let bits = u64::from_str_radix(digits, 16).unwrap();
        return bits.to_le_bytes()[..kind.size()].to_vec();
    }
    let same = |text: &Value| match (text.as_f64(), value.as_f64()) {
        (Some(a), Some(b)) => a.to_bits() == b.to_bits(),
        _ => text == value,
    };
    if let Some((_, bits)) = floats(kind).into_iter().find(|(text, _)| same(text)) {
        return bits;
    }
    let number = value.as_f64().unwrap();
    match *kind {
        Float(4) => (number as f32).to_le_bytes().to_vec(),
        Float(8) => number.to_le_bytes().to_vec(),
        _ => panic!("fill value {value} of {kind:?}"),
    }
}
