//! Data types: numbers, records of them, and strings of any length. An item is kept
//! little-endian throughout, the fields of a record too.

use serde_json::{Value, json};

use super::fill::{base64, floats, of_base64};
use super::kind::Kind::{
    self, Bool, BrainFloat, Bytes, Complex, Float, Int, Raw, Text, Time, Unsigned,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// Stored big-endian.
    pub big: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    Plain(Field),
    Record(Vec<Field>),
    Strings,
    ByteStrings,
}

/// Names of fields in the records of these tests.
const NAMES: [&str; 4] = ["r", "g", "b b", "é"];

impl Type {
    /// All types that a test may choose; the plain ones come first.
    pub fn all(big: bool, mixed: bool) -> Vec<Type> {
        let mut kinds = vec![Unsigned(1), Bool];
        kinds.extend([1, 2, 4, 8].map(Int));
        kinds.extend([2, 4, 8].map(Unsigned));
        kinds.extend([2, 4, 8].map(Float));
        kinds.extend([8, 16].map(Complex));
        kinds.extend([Time('M', "ns", 1), Time('M', "s", 25), Time('m', "D", 1)]);
        kinds.extend([Bytes(1), Bytes(3), Text(2), Raw(1), Raw(4), BrainFloat]);
        let plain = kinds.into_iter().map(|kind| {
            Type::Plain(Field {
                name: "",
                kind,
                big,
            })
        });
        let record = |kinds: &[Kind]| {
            let fields = kinds
                .iter()
                .zip(NAMES)
                .enumerate()
                .map(|(i, (kind, name))| Field {
                    name,
                    kind: kind.clone(),
                    big: kind.unit() > 1 && (big ^ (mixed && i % 2 == 1)),
                });
            Type::Record(fields.collect())
        };
        plain
            .chain([
                record(&[Unsigned(1), Int(2), Float(8)]),
                record(&[Text(2), Time('M', "ns", 1), Bool, Bytes(3)]),
                record(&[Unsigned(1), Bytes(2)]),
                record(&[Complex(8), Float(4), Raw(3), Int(8)]),
                Type::Strings,
                Type::ByteStrings,
            ])
            .collect()
    }

    pub fn fields(&self) -> &[Field] {
        match self {
            Type::Plain(field) => std::slice::from_ref(field),
            Type::Record(fields) => fields,
            Type::Strings | Type::ByteStrings => &[],
        }
    }

    pub fn is_variable(&self) -> bool {
        self.fields().is_empty()
    }

    pub fn size(&self) -> usize {
        self.fields().iter().map(|field| field.kind.size()).sum()
    }

    /// Between little-endian and the stored byte order, either way.
    pub fn swap(&self, item: &mut [u8]) {
        let mut at = 0;
        for field in self.fields() {
            let bytes = &mut item[at..][..field.kind.size()];
            at += bytes.len();
            if field.big {
                bytes
                    .chunks_exact_mut(field.kind.unit())
                    .for_each(<[u8]>::reverse);
            }
        }
    }

    /// The byte order of all numbers of more than a byte: `Err` when they differ, `None` when
    /// there are none.
    pub fn order(&self) -> Result<Option<bool>, ()> {
        let mut found = None;
        for field in self.fields().iter().filter(|field| field.kind.unit() > 1) {
            if found.is_some_and(|big| big != field.big) {
                return Err(());
            }
            found = Some(field.big);
        }
        Ok(found)
    }

    pub fn with_order(&self, big: bool) -> Type {
        let mut this = self.clone();
        match &mut this {
            Type::Plain(field) => field.big = big,
            Type::Record(fields) => {
                for field in fields {
                    field.big = big && field.kind.unit() > 1;
                }
            }
            Type::Strings | Type::ByteStrings => {}
        }
        this
    }

    /// The type without its byte order.
    pub fn plain(&self) -> Type {
        self.with_order(false)
    }

    pub fn v2(&self) -> Value {
        match self {
            Type::Plain(field) => json!(field.kind.typestr(field.big)),
            Type::Record(fields) => fields
                .iter()
                .map(|field| json!([field.name, field.kind.typestr(field.big)]))
                .collect(),
            Type::Strings | Type::ByteStrings => json!("|O"),
        }
    }

    /// `object`: the id of the object codec, of `|O`.
    pub fn of_v2(value: &Value, object: Option<&str>) -> Type {
        let field = |name, text: &Value| {
            let (kind, big) = Kind::of_typestr(text.as_str().unwrap());
            Type::Plain(Field { name, kind, big }).fields()[0].clone()
        };
        match (value, object) {
            (Value::Array(list), _) => Type::Record(
                list.iter()
                    .map(|pair| {
                        let name = NAMES.into_iter().find(|name| pair[0] == *name);
                        field(name.unwrap(), &pair[1])
                    })
                    .collect(),
            ),
            (_, Some("vlen-utf8")) => Type::Strings,
            (_, Some("vlen-bytes")) => Type::ByteStrings,
            _ => Type::Plain(field("", value)),
        }
    }

    pub fn v3(&self) -> Value {
        match self {
            Type::Plain(field) => field.kind.v3(),
            Type::Record(fields) => {
                let fields: Value = fields
                    .iter()
                    .map(|field| json!({"name": field.name, "data_type": field.kind.v3()}))
                    .collect();
                json!({"name": "struct", "configuration": {"fields": fields}})
            }
            Type::Strings => json!("string"),
            Type::ByteStrings => json!("bytes"),
        }
    }

    /// Without its byte order, which is a codec's.
    pub fn of_v3(value: &Value) -> Type {
        let plain = |name, value: &Value| Field {
            name,
            kind: Kind::of_v3(value),
            big: false,
        };
        if value == "string" {
            return Type::Strings;
        }
        if ["bytes", "variable_length_bytes"]
            .iter()
            .any(|name| value == name)
        {
            return Type::ByteStrings;
        }
        // `structured` is what zarr-python 3.1 called records, its fields pairs.
        if value["name"] != "struct" && value["name"] != "structured" {
            return Type::Plain(plain("", value));
        }
        let fields = value["configuration"]["fields"].as_array().unwrap().iter();
        Type::Record(
            fields
                .map(|field| {
                    let (spelled, data_type) = match field.as_array() {
                        Some(pair) => (&pair[0], &pair[1]),
                        None => (&field["name"], &field["data_type"]),
                    };
                    let name = NAMES.into_iter().find(|name| spelled == name);
                    plain(name.unwrap(), data_type)
                })
                .collect(),
        )
    }

    pub fn item(&self, seed: u64) -> Vec<u8> {
        let words: [&[u8]; 4] = [b"", b"a", "bcé".as_bytes(), "漢🙂 long enough".as_bytes()];
        let bytes: [&[u8]; 4] = [b"", b"\0", b"\xff\xfe", b"abcdefghij"];
        let at = (super::mix(seed) % 4) as usize;
        match self {
            Type::Strings => words[at].to_vec(),
            Type::ByteStrings => bytes[at].to_vec(),
            _ => {
                let items = self.fields().iter().zip(0..);
                items
                    .flat_map(|(field, i)| field.kind.item(seed ^ i << 40))
                    .collect()
            }
        }
    }

    pub fn fill(&self, pick: usize) -> Vec<u8> {
        if self.is_variable() {
            return self.item(pick as u64);
        }
        let of = |field: &Field| {
            let fills = field.kind.fills();
            fills[pick % fills.len()].clone()
        };
        self.fields().iter().flat_map(of).collect()
    }

    /// An element of an array without a fill value, as Zarr libraries read it.
    pub fn no_fill(&self) -> Vec<u8> {
        if self.is_time() {
            i64::MIN.to_le_bytes().to_vec()
        } else {
            vec![0; self.size()]
        }
    }

    pub fn is_brain_float(&self) -> bool {
        matches!(self, Type::Plain(field) if field.kind == BrainFloat)
    }

    pub fn is_time(&self) -> bool {
        matches!(self, Type::Plain(field) if matches!(field.kind, Time(..)))
    }

    /// Whether v2 cannot say this fill value: a NaN that is not the usual one.
    pub fn has_odd_nan(&self, fill: &[u8]) -> bool {
        let Type::Plain(field) = self else {
            return false;
        };
        matches!(field.kind, Float(_) | BrainFloat) && fill == floats(&field.kind)[7].1
    }

    pub fn fill_v2(&self, fill: &[u8]) -> Value {
        match self {
            Type::Plain(field) => field.kind.fill_v2(fill),
            Type::Record(_) => {
                let mut stored = fill.to_vec();
                self.swap(&mut stored);
                json!(base64(&stored))
            }
            Type::Strings => json!(String::from_utf8(fill.to_vec()).unwrap()),
            Type::ByteStrings => json!(base64(fill)),
        }
    }

    pub fn of_fill_v2(&self, value: &Value) -> Vec<u8> {
        match (self, value) {
            // zarr-python 2 says 0 of objects.
            (Type::Strings | Type::ByteStrings, Value::Null | Value::Number(_)) => Vec::new(),
            (_, Value::Null) => self.no_fill(),
            (Type::Plain(field), _) => field.kind.of_fill(value),
            (Type::Record(_), _) => {
                let mut item = of_base64(value);
                self.swap(&mut item);
                item
            }
            (Type::Strings, _) => value.as_str().unwrap().as_bytes().to_vec(),
            (Type::ByteStrings, _) => of_base64(value),
        }
    }

    pub fn fill_v3(&self, fill: &[u8]) -> Value {
        match self {
            Type::Plain(field) => field.kind.fill_v3(fill),
            Type::Record(fields) => {
                let mut at = 0;
                let spelled = fields.iter().map(|field| {
                    let bytes = &fill[at..][..field.kind.size()];
                    at += bytes.len();
                    (field.name.to_owned(), field.kind.fill_v3(bytes))
                });
                Value::Object(spelled.collect())
            }
            Type::Strings => self.fill_v2(fill),
            Type::ByteStrings => json!(fill),
        }
    }

    pub fn of_fill_v3(&self, value: &Value) -> Vec<u8> {
        match self {
            Type::Plain(field) => field.kind.of_fill(value),
            Type::Record(_) if value.is_string() => self.of_fill_v2(value),
            Type::Record(fields) => {
                let values = fields
                    .iter()
                    .map(|field| field.kind.of_fill(&value[field.name]));
                values.flatten().collect()
            }
            Type::ByteStrings if value.is_array() => {
                let bytes = value.as_array().unwrap().iter();
                bytes.map(|byte| byte.as_u64().unwrap() as u8).collect()
            }
            _ => self.of_fill_v2(value),
        }
    }
}
