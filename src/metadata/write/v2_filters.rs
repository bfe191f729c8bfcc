//! The filters of elements, and the types between them.

use super::quoted;
use super::v2_codecs::{config, numcodecs_id};
use crate::dtype::json::{Extension, Object};
use crate::dtype::{ByteOrder, DataType};
use crate::error::FormatError;

/// Filters in the order of encoding.
pub(super) struct Filters<'a> {
    filters: Vec<Filter<'a>>,
    /// What the last one makes.
    made: DataType,
}

/// A filter and the types at its two ends, where it has any.
struct Filter<'a> {
    id: &'a str,
    configuration: &'a Object<'a>,
    takes: Option<Named>,
    makes: Option<Named>,
}

/// A type in the configuration of a filter.
struct Named {
    member: &'static str,
    data_type: DataType,
    order: ByteOrder,
}

/// The members that name what a filter takes and makes.
fn members(id: &str) -> Option<(&'static str, &'static str)> {
    match id {
        "delta" | "fixedscaleoffset" | "quantize" => Some(("dtype", "astype")),
        "astype" => Some(("decode_dtype", "encode_dtype")),
        _ => None,
    }
}

impl<'a> Filters<'a> {
    /// None yet, of elements of `data_type`.
    pub(super) fn new(data_type: &DataType) -> Filters<'a> {
        Filters {
            filters: Vec::new(),
            made: data_type.clone(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Bytes of an element that the filters make.
    pub(super) fn made_size(&self) -> u64 {
        self.made.item_size
    }

    /// Adds a filter. A type that it leaves out is the one that it is given: so zarr-python 3
    /// reads it, where numcodecs alone would refuse.
    pub(super) fn add(&mut self, spec: &'a Extension<'_>) -> Result<(), FormatError> {
        let id = numcodecs_id(spec)?;
        let configuration = &spec.configuration;
        let mut filter = Filter {
            id,
            configuration,
            takes: None,
            makes: None,
        };
        if let Some((takes, makes)) = members(id) {
            let taken = match named(configuration, takes)? {
                Some(named) => named,
                None => Named {
                    member: takes,
                    data_type: self.made.clone(),
                    order: ByteOrder::Little,
                },
            };
            let made = match named(configuration, makes)? {
                Some(named) => named,
                None => Named {
                    member: makes,
                    data_type: taken.data_type.clone(),
                    order: taken.order,
                },
            };
            self.made = made.data_type.clone();
            filter.takes = Some(taken);
            filter.makes = Some(made);
        } else if matches!(id, "packbits" | "categorize") {
            self.made = byte()?;
        }
        self.filters.push(filter);
        Ok(())
    }

    /// The byte order of the elements that the first filter is given, and the JSON of each, when
    /// the last one makes elements of `order`.
    pub(super) fn finish(
        self,
        order: Option<ByteOrder>,
    ) -> Result<(Option<ByteOrder>, Vec<String>), FormatError> {
        let mut order = order;
        let mut texts = Vec::new();
        for mut filter in self.filters.into_iter().rev() {
            if let (Some(made), Some(order)) = (&mut filter.makes, order) {
                made.order = order;
            }
            texts.push(filter.text()?);
            order = match &filter.takes {
                Some(taken) => Some(taken.order),
                None => order,
            };
        }
        texts.reverse();
        Ok((order, texts))
    }
}

impl Filter<'_> {
    fn text(&self) -> Result<String, FormatError> {
        let mut types = Vec::new();
        for named in [&self.takes, &self.makes].into_iter().flatten() {
            types.push((named.member, named.data_type.spell_v2(named.order)?));
        }
        let without: Vec<&str> = types.iter().map(|(member, _)| *member).collect();
        config(self.id, &types, self.configuration, &without)
    }
}

/// The type that a member of a configuration names.
fn named(configuration: &Object<'_>, member: &'static str) -> Result<Option<Named>, FormatError> {
    let Some(value) = configuration.get_some(member) else {
        return Ok(None);
    };
    let (data_type, order) =
        DataType::parse_v2(value).map_err(|error| error.within(member).within("codecs"))?;
    Ok(Some(Named {
        member,
        data_type,
        order,
    }))
}

/// The type of one byte.
fn byte() -> Result<DataType, FormatError> {
    let text = quoted("|u1");
    let value = serde_json::from_str(&text)
        .map_err(|error| FormatError::document("codecs", error.to_string()))?;
    DataType::parse_v2(value).map(|(data_type, _)| data_type)
}
