//! The type of a file, by its name.
//!
//! The files of a store are not trusted, and no browser may run them. So the server names only types that browsers do
//! not run, and it forbids browsers to guess another type (`nosniff`).

/// Types by the ends of names.
const TYPES: [(&str, &str); 11] = [
    (".json", JSON),
    (".zarray", JSON),
    (".zattrs", JSON),
    (".zgroup", JSON),
    (".zmetadata", JSON),
    (".jsonl", "application/jsonl"),
    (".png", "image/png"),
    (".tif", "image/tiff"),
    (".nc", "application/x-netcdf"),
    (".h5", "application/x-hdf5"),
    (".txt", "text/plain; charset=utf-8"),
];

/// JSON documents, which are sent compressed if the client likes.
pub(super) const JSON: &str = "application/json";

/// The type of the file called `name`.
pub(super) fn of_name(name: &[u8]) -> &'static str {
    let found = TYPES.iter().find(|(end, _)| name.ends_with(end.as_bytes()));
    found.map_or("application/octet-stream", |(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_browser_would_run_has_its_type() {
        for (name, expected) in [
            ("zarr.json", JSON),
            (".zattrs", JSON),
            ("t.png", "image/png"),
            ("t.npy", "application/octet-stream"),
            ("t.html", "application/octet-stream"),
            ("t.svg", "application/octet-stream"),
            ("t.js", "application/octet-stream"),
            ("t.xml", "application/octet-stream"),
            ("0.0", "application/octet-stream"),
        ] {
            assert_eq!(of_name(name.as_bytes()), expected, "{name}");
        }
    }
}
