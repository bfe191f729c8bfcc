//! The dimensions of a group's arrays. Arrays share a dimension if name *and* length are the same.
//!
//! ```text
//! time(time: 8)              time      the coordinate variable's length keeps the name
//! air(time: 8, y: 4)         time, y
//! normals(time: 12)          time_12
//! (3, 3), no names           dim_3, dim_3
//! ```

use std::collections::HashMap;

use super::names::Names;
use crate::plain::{Array, Group};

/// The widest text element in bytes, because an element is transformed as a whole.
pub(in crate::plain) const MOST_TEXT: u64 = 64 << 10;

/// The name of the dimension of the two parts of complex numbers.
pub(in crate::plain) const COMPLEX: &str = "ri";

/// The name of the dimension of text of `bytes` bytes.
pub(in crate::plain) fn text_dimension(bytes: u64) -> String {
    format!("string{bytes}")
}

/// A dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plain) struct Dimension {
    /// Its name, which is unique in the file.
    pub(in crate::plain) name: String,
    /// Its length.
    pub(in crate::plain) len: u64,
}

/// The dimensions of a file, in the order of their first use.
#[derive(Debug, Clone, Default)]
pub(in crate::plain) struct Dimensions {
    list: Vec<Dimension>,
    /// For each stored name, the length of the dimension that bears it without a suffix.
    keeps: HashMap<String, u64>,
    found: HashMap<(Option<String>, u64), usize>,
    names: Names,
}

impl Dimensions {
    /// Starts without dimensions. Where `arrays` has a coordinate variable, the dimension of its
    /// length bears its name without a suffix. No dimension gets the name of an array without
    /// dimensions: xarray does not open such a file.
    pub(in crate::plain) fn new<'a>(arrays: impl Iterator<Item = &'a Array>) -> Dimensions {
        let arrays: Vec<&Array> = arrays.collect();
        let mut names = Names::default();
        for scalar in arrays.iter().filter(|array| array.rank() == 0) {
            names.take(&scalar.name);
        }
        let coordinates = arrays.into_iter().filter(|array| is_coordinate(array));
        let keeps = coordinates.filter_map(|array| {
            let len = array.shape.first()?;
            Some((array.name.clone(), *len))
        });
        Dimensions {
            keeps: keeps.collect(),
            names,
            ..Dimensions::default()
        }
    }

    /// All dimensions.
    pub(in crate::plain) fn list(&self) -> &[Dimension] {
        &self.list
    }

    /// The index of the dimension with the stored name `name` and the length `len`, if it exists.
    pub(in crate::plain) fn find(&self, name: Option<&str>, len: u64) -> Option<usize> {
        let key = (name.map(str::to_owned), len);
        self.found.get(&key).copied()
    }

    /// The index of the dimension with the stored name `name` and the length `len`, which is added
    /// if it does not exist.
    pub(in crate::plain) fn take(&mut self, name: Option<&str>, len: u64) -> usize {
        if let Some(index) = self.find(name, len) {
            return index;
        }
        let wanted = match name {
            Some(name) => {
                let keeper = self.keeps.entry(name.to_owned()).or_insert(len);
                if *keeper == len {
                    name.to_owned()
                } else {
                    format!("{name}_{len}")
                }
            }
            None => format!("dim_{len}"),
        };
        let index = self.list.len();
        self.list.push(Dimension {
            name: self.names.take(&wanted),
            len,
        });
        self.found.insert((name.map(str::to_owned), len), index);
        index
    }
}

/// The arrays of `group`, coordinate variables first: that is where people and programs look for
/// them.
pub(in crate::plain) fn coordinates_first(group: &Group) -> impl Iterator<Item = &Array> {
    let (coordinates, others): (Vec<&Array>, Vec<&Array>) =
        group.arrays.iter().partition(|array| is_coordinate(array));
    coordinates.into_iter().chain(others)
}

/// Whether `array` is a coordinate variable: it has one dimension and bears its name.
pub(in crate::plain) fn is_coordinate(array: &Array) -> bool {
    match array.dimension_names.as_slice() {
        [Some(name)] => array.rank() == 1 && *name == array.name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::testing::array;

    #[test]
    fn the_length_of_the_coordinate_keeps_the_name() {
        let mut time = array("time", "\"<f8\"", &[8]);
        assert!(!is_coordinate(&time));
        time.dimension_names = vec![Some("time".to_owned())];
        assert!(is_coordinate(&time));
        let mut dimensions = Dimensions::new(std::iter::once(&time));
        let mut name = |name, len| {
            let index = dimensions.take(name, len);
            assert_eq!(dimensions.find(name, len), Some(index));
            dimensions.list()[index].name.clone()
        };
        assert_eq!(name(Some("time"), 12), "time_12");
        assert_eq!(name(Some("time"), 8), "time");
        assert_eq!(name(Some("time"), 12), "time_12");
        assert_eq!(name(Some("y"), 4), "y");
        assert_eq!(name(Some("y"), 5), "y_5");
        assert_eq!(name(Some("dim_3"), 7), "dim_3");
        assert_eq!(name(None, 3), "dim_3_2");
        assert_eq!(name(None, 3), "dim_3_2");
        assert_eq!(name(Some("-a"), 1), "_a");
        assert_eq!(name(Some("(a"), 1), "_a_2");
        assert_eq!(dimensions.list().len(), 8);
        let scalar = array("ri", "\"<f8\"", &[]);
        let mut dimensions = Dimensions::new(std::iter::once(&scalar));
        let index = dimensions.take(Some("ri"), 2);
        assert_eq!(dimensions.list()[index].name, "ri_2");
    }
}
