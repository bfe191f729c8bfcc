//! The filters of elements, and the types between them.

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
    /// What it takes, and what it makes.
    types: Option<[Named; 2]>,
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
        let mut types = None;
        if let Some((takes, makes)) = members(id) {
            let taken = named(configuration, takes, &self.made, ByteOrder::Little)?;
            let made = named(configuration, makes, &taken.data_type, taken.order)?;
            self.made = made.data_type.clone();
            types = Some([taken, made]);
        } else if matches!(id, "packbits" | "categorize") {
            self.made = DataType::unsigned(1);
        }
        self.filters.push(Filter {
            id,
            configuration,
            types,
        });
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
            if let (Some([_, made]), Some(order)) = (&mut filter.types, order) {
                made.order = order;
            }
            texts.push(filter.text()?);
            if let Some([taken, _]) = &filter.types {
                order = Some(taken.order);
            }
        }
        texts.reverse();
        Ok((order, texts))
    }
}

impl Filter<'_> {
    fn text(&self) -> Result<String, FormatError> {
        let mut types = Vec::new();
        for named in self.types.iter().flatten() {
            types.push((named.member, named.data_type.spell_v2(named.order)?));
        }
        let without: Vec<&str> = types.iter().map(|(member, _)| *member).collect();
        config(self.id, &types, self.configuration, &without)
    }
}

/// The type that a member of a configuration names; without it, `data_type` in `order`.
fn named(
    configuration: &Object<'_>,
    member: &'static str,
    data_type: &DataType,
    order: ByteOrder,
) -> Result<Named, FormatError> {
    let named = configuration.read_some(member, DataType::parse_v2);
    let named = named.map_err(|error| error.within("codecs"))?;
    let (data_type, order) = named.unwrap_or_else(|| (data_type.clone(), order));
    Ok(Named {
        member,
        data_type,
        order,
    })
}
