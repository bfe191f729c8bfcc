//! Any group: the partition of the file is exact, and a reader finds every element.

use proptest::prelude::*;

use super::*;
use crate::plain::testing::counting;

const TYPES: [&str; 9] = [
    "|b1", "|i1", "|u1", "<i2", "<u4", "<f4", "<c16", "|S3", "<i8",
];

fn arrays() -> impl Strategy<Value = Vec<Array>> {
    let length = prop_oneof![12 => 1..5_u64, 1 => Just(0)];
    let axis = (length, prop::sample::select(vec!["", "t", "y", "x"]));
    let array = (
        prop::sample::select(TYPES.to_vec()),
        prop::collection::vec(axis, 0..5),
    );
    prop::collection::vec(array, 0..6).prop_map(|drawn| {
        let arrays = drawn.into_iter().enumerate().map(|(id, (typestr, axes))| {
            let (mut shape, names): (Vec<u64>, Vec<&str>) = axes.into_iter().unzip();
            // The name `t` has one length, so that several arrays share a record dimension.
            for (length, name) in shape.iter_mut().zip(&names) {
                if *name == "t" {
                    *length = 3;
                }
            }
            let mut array = named(&format!("v{id}"), &format!("\"{typestr}\""), &shape, &names);
            array.id = id;
            array
        });
        arrays.collect()
    })
}

/// The values that the reader must find for the decoded elements.
fn big_endian(array: &Array, elements: &[u8]) -> Vec<u8> {
    if array.data_type.name.contains("b1") {
        return elements.iter().map(|&byte| u8::from(byte != 0)).collect();
    }
    let unit = array.data_type.swap_unit();
    let numbers = elements.chunks(unit);
    numbers
        .flat_map(|number| number.iter().rev().copied())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_byte_has_one_source(arrays in arrays(), records: bool, newest: bool) {
        let group = group(arrays);
        let elements: Vec<Vec<u8>> = group
            .arrays
            .iter()
            .map(|array| counting(array, u8::try_from(array.id).unwrap()))
            .collect();
        let version = if newest { Cdf::Five } else { Cdf::Two };
        let options = if records { unlimited("t") } else { Options::default() };
        // Of these types and shapes, only arrays without elements can be refused.
        let Ok(_) = classic_file(&group, version, &options) else {
            prop_assert!(group.arrays.iter().all(|array| array.shape.contains(&0)));
            return Ok(());
        };
        let (bytes, header, made) = made(&group, version, &options, &elements);
        prop_assert_eq!(header.variables.len() + made.omitted.len(), group.arrays.len());
        for left in &made.omitted {
            let array = group.arrays.iter().find(|array| array.name == left.name).unwrap();
            prop_assert!(array.shape.contains(&0));
        }

        let mut taken = vec![(0, header.header_len as u64)];
        for variable in &header.variables {
            let array = group.arrays.iter().find(|array| array.name == variable.name).unwrap();
            let shape = header.shape(variable);
            prop_assert_eq!(&shape[..array.rank()], array.shape.as_slice());
            let found = header.values(&bytes, variable);
            prop_assert_eq!(found, big_endian(array, &elements[array.id]));
            prop_assert!(variable.dimensions.iter().skip(1).all(|&i| header.dimensions[i].1 > 0));
            taken.extend(header.slabs(variable).iter().filter(|(_, len)| *len > 0));
        }
        taken.sort_unstable();
        let mut end = 0;
        for (begin, len) in taken {
            prop_assert!(begin >= end, "overlap at {}", begin);
            let gap = &bytes[usize::try_from(end).unwrap()..usize::try_from(begin).unwrap()];
            prop_assert!(gap.iter().all(|&byte| byte == 0));
            end = begin + len;
        }
        let rest = &bytes[usize::try_from(end).unwrap()..];
        prop_assert!(rest.iter().all(|&byte| byte == 0));
        prop_assert!(rest.len() < 4 || header.n_records == 0);
    }
}
