//! Data types of one number or string, as every version spells them.

use serde_json::{Value, json};

/// The data type of one item, or of one field of an item.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Bool,
    Int(usize),
    Unsigned(usize),
    Float(usize),
    BrainFloat,
    Complex(usize),
    /// `m` or `M`, unit, multiplier.
    Time(char, &'static str, u32),
    Bytes(usize),
    Text(usize),
    Raw(usize),
}

use Kind::{Bool, BrainFloat, Bytes, Complex, Float, Int, Raw, Text, Time, Unsigned};

const UNITS: [&str; 3] = ["ns", "s", "D"];
impl Kind {
    pub fn size(&self) -> usize {
        match *self {
            Bool => 1,
            Int(size) | Unsigned(size) | Float(size) | Complex(size) | Bytes(size) | Raw(size) => {
                size
            }
            BrainFloat => 2,
            Time(..) => 8,
            Text(chars) => 4 * chars,
        }
    }

    /// The bytes that change places with the byte order.
    pub fn unit(&self) -> usize {
        match *self {
            Bool | Bytes(_) | Raw(_) => 1,
            Complex(size) => size / 2,
            Text(_) => 4,
            _ => self.size(),
        }
    }

    pub fn typestr(&self, big: bool) -> String {
        let order = match (self.unit(), big) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        let rest = match *self {
            Bool => "b1".to_owned(),
            Int(size) => format!("i{size}"),
            Unsigned(size) => format!("u{size}"),
            Float(size) => format!("f{size}"),
            BrainFloat => unreachable!("not in NumPy"),
            Complex(size) => format!("c{size}"),
            Time(letter, unit, 1) => format!("{letter}8[{unit}]"),
            Time(letter, unit, scale) => format!("{letter}8[{scale}{unit}]"),
            Bytes(size) => format!("S{size}"),
            Text(chars) => format!("U{chars}"),
            Raw(size) => format!("V{size}"),
        };
        format!("{order}{rest}")
    }

    pub fn of_typestr(text: &str) -> (Kind, bool) {
        let big = text.starts_with('>');
        let letter = text.as_bytes()[1] as char;
        let rest = &text[2..];
        if let 'm' | 'M' = letter {
            let inside = rest.strip_prefix("8[").unwrap().strip_suffix(']').unwrap();
            let digits = inside.len() - inside.trim_start_matches(char::is_numeric).len();
            let scale = inside[..digits].parse().unwrap_or(1);
            let unit = UNITS.into_iter().find(|unit| *unit == &inside[digits..]);
            return (Time(letter, unit.unwrap(), scale), big);
        }
        let size = rest.parse().unwrap();
        let kind = match letter {
            'b' => Bool,
            'i' => Int(size),
            'u' => Unsigned(size),
            'f' => Float(size),
            'c' => Complex(size),
            'S' => Bytes(size),
            'U' => Text(size),
            'V' => Raw(size),
            _ => panic!("typestring {text}"),
        };
        (kind, big)
    }

    pub fn v3(&self) -> Value {
        match *self {
            Bool => json!("bool"),
            Int(size) => json!(format!("int{}", 8 * size)),
            Unsigned(size) => json!(format!("uint{}", 8 * size)),
            Float(size) => json!(format!("float{}", 8 * size)),
            BrainFloat => json!("bfloat16"),
            Complex(size) => json!(format!("complex{}", 8 * size)),
            Time(letter, unit, scale) => {
                let name = if letter == 'M' {
                    "datetime64"
                } else {
                    "timedelta64"
                };
                let configuration = json!({"unit": unit, "scale_factor": scale});
                json!({"name": format!("numpy.{name}"), "configuration": configuration})
            }
            Bytes(size) => named("null_terminated_bytes", size),
            Text(chars) => named("fixed_length_utf32", 4 * chars),
            Raw(size) => named("raw_bytes", size),
        }
    }

    pub fn of_v3(value: &Value) -> Kind {
        let name = value
            .as_str()
            .unwrap_or_else(|| value["name"].as_str().unwrap());
        let configuration = &value["configuration"];
        let length = || usize::try_from(configuration["length_bytes"].as_u64().unwrap()).unwrap();
        let bits = |prefix: &str| -> Option<usize> {
            let bits: usize = name.strip_prefix(prefix)?.parse().ok()?;
            Some(bits / 8)
        };
        match name {
            "bool" => Bool,
            "bfloat16" => BrainFloat,
            "null_terminated_bytes" => Bytes(length()),
            "fixed_length_utf32" => Text(length() / 4),
            "raw_bytes" => Raw(length()),
            "numpy.datetime64" | "numpy.timedelta64" => {
                let letter = if name == "numpy.datetime64" { 'M' } else { 'm' };
                let unit = UNITS
                    .into_iter()
                    .find(|unit| configuration["unit"] == *unit);
                let scale = configuration["scale_factor"].as_u64().unwrap();
                Time(letter, unit.unwrap(), u32::try_from(scale).unwrap())
            }
            _ => None
                .or_else(|| bits("int").map(Int))
                .or_else(|| bits("uint").map(Unsigned))
                .or_else(|| bits("float").map(Float))
                .or_else(|| bits("complex").map(Complex))
                .or_else(|| bits("r").map(Raw))
                .unwrap_or_else(|| panic!("data type {value}")),
        }
    }

    /// Some item, another for each `seed`.
    pub fn item(&self, seed: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < self.size() {
            bytes.extend(super::mix(seed ^ bytes.len() as u64).to_le_bytes());
        }
        bytes.truncate(self.size());
        match self {
            Bool => bytes[0] &= 1,
            Text(_) => {
                for unit in bytes.chunks_exact_mut(4) {
                    let at = unit[0] as usize % 4;
                    unit.copy_from_slice(&u32::from(['a', 'é', '漢', '🙂'][at]).to_le_bytes());
                }
            }
            _ => {}
        }
        bytes
    }
}

fn named(name: &str, length: usize) -> Value {
    json!({"name": name, "configuration": {"length_bytes": length}})
}
