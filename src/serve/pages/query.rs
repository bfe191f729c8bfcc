//! The query of a page's address: where its list of names and its window of chunks begin. Anything else in it is ignored.

use percent_encoding::percent_decode_str;

/// The most dimensions of an array that a query has an index for. NumPy has at most 64.
const MOST_DIMENSIONS: usize = 64;

/// The values in a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// The number of names before the first one in the list (`from`).
    pub(super) from: u64,
    /// The name of a file in this directory whose array the page is about (`about`).
    pub(super) about: Option<Vec<u8>>,
    /// The indices of the first chunk in the window (`i0`, `i1` …).
    pub(super) first: Vec<u64>,
}

impl Query {
    /// Reads what follows the question mark of an address.
    pub(super) fn parse(text: &str) -> Query {
        let mut query = Query::default();
        for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "from" => query.from = value.parse().unwrap_or_default(),
                "about" => query.about = name_of(value),
                _ => query.add_index(name, value),
            }
        }
        query
    }

    fn add_index(&mut self, name: &str, value: &str) {
        let axis = name
            .strip_prefix('i')
            .and_then(|axis| axis.parse::<usize>().ok());
        let (Some(axis), Ok(index)) = (axis.filter(|&axis| axis < MOST_DIMENSIONS), value.parse())
        else {
            return;
        };
        if self.first.len() <= axis {
            self.first.resize(axis + 1, 0);
        }
        if let Some(place) = self.first.get_mut(axis) {
            *place = index;
        }
    }
}

/// The name that a form or a link sends, which is encoded twice.
fn name_of(value: &str) -> Option<Vec<u8>> {
    let field = percent_decode_str(value).decode_utf8().ok()?;
    Some(percent_decode_str(&field).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_ignored() {
        for (text, from, about, first) in [
            ("", 0, None, &[][..]),
            ("from=500", 500, None, &[]),
            (
                "from=-1&i1=7&i0=x&i64=1&i99999999999999999999=1&j=3",
                0,
                None,
                &[0, 7],
            ),
            (
                "about=a%2520b%252Fc%25ff&&=&from",
                0,
                Some(b"a b/c\xff".to_vec()),
                &[],
            ),
            ("about=%ff", 0, None, &[]),
            (
                "i2=18446744073709551615&i0=18446744073709551616",
                0,
                None,
                &[0, 0, u64::MAX],
            ),
        ] {
            let found = Query::parse(text);
            let first = first.to_vec();
            assert_eq!(found, Query { from, about, first }, "{text}");
        }
    }
}
