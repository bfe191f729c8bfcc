//! The filters of a v2 array, and the types of their inputs and outputs.

use super::v2_config::{config, numcodecs_id};
use crate::dtype::{ByteOrder, DataType};
use crate::error::FormatError;
use crate::metadata::json::{Extension, Members};

/// The filters in the order of encoding.
pub(super) struct FilterList<'a> {
    filters: Vec<TypedFilter<'a>>,
    /// The output type of the last filter.
    made: DataType,
}

/// A filter, and the types that its configuration names.
struct TypedFilter<'a> {
    id: &'a str,
    configuration: &'a Members<'a>,
    /// The types of its input and its output, where it names them.
    types: Option<[TypeMember; 2]>,
}

/// A type that a member of a filter's configuration names.
struct TypeMember {
    member: &'static str,
    data_type: DataType,
    order: ByteOrder,
}

/// The members that name the types of a filter's input and output.
fn members(id: &str) -> Option<(&'static str, &'static str)> {
    match id {
        "delta" | "fixedscaleoffset" | "quantize" | "categorize" => Some(("dtype", "astype")),
        "astype" => Some(("decode_dtype", "encode_dtype")),
        _ => None,
    }
}

impl<'a> FilterList<'a> {
    /// An empty list for elements of `data_type`.
    pub(super) fn new(data_type: &DataType) -> FilterList<'a> {
        FilterList {
            filters: Vec::new(),
            made: data_type.clone(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// The size of an element of the output, in bytes.
    pub(super) fn output_size(&self) -> u64 {
        self.made.item_size
    }

    /// Adds a filter. A type that its configuration leaves out is the type of its input, as in
    /// zarr-python 3; numcodecs alone would refuse it. The codes of `categorize` are bytes then.
    pub(super) fn add(&mut self, spec: &'a Extension<'_>) -> Result<(), FormatError> {
        let id = numcodecs_id(spec)?;
        let configuration = &spec.configuration;
        let mut types = None;
        if let Some((takes, makes)) = members(id) {
            let taken = named(configuration, takes, &self.made, ByteOrder::Little)?;
            let made = match id {
                "categorize" => named(
                    configuration,
                    makes,
                    &DataType::unsigned(1),
                    ByteOrder::Little,
                )?,
                _ => named(configuration, makes, &taken.data_type, taken.order)?,
            };
            self.made = made.data_type.clone();
            types = Some([taken, made]);
        } else if id == "packbits" {
            self.made = DataType::unsigned(1);
        }
        self.filters.push(TypedFilter {
            id,
            configuration,
            types,
        });
        Ok(())
    }

    /// The byte order of the first filter's input, and the JSON of each filter, when the output of
    /// the last one is in `order`.
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

impl TypedFilter<'_> {
    fn text(&self) -> Result<String, FormatError> {
        let mut types = Vec::new();
        for named in self.types.iter().flatten() {
            types.push((named.member, named.data_type.spell_v2(named.order)?));
        }
        let without: Vec<&str> = types.iter().map(|(member, _)| *member).collect();
        config(self.id, &types, self.configuration, &without)
    }
}

/// The type that `member` of a configuration names, or `data_type` in `order` when it is absent.
fn named(
    configuration: &Members<'_>,
    member: &'static str,
    data_type: &DataType,
    order: ByteOrder,
) -> Result<TypeMember, FormatError> {
    let named = configuration.read_some(member, DataType::parse_v2);
    let named = named.map_err(|error| error.within("codecs"))?;
    let (data_type, order) = named.unwrap_or_else(|| (data_type.clone(), order));
    Ok(TypeMember {
        member,
        data_type,
        order,
    })
}
