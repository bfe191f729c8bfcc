//! The map of the demo store: the heights of an island on a grid of 100 m, in UTM zone 28 north (EPSG:32628).
//!
//! `spatial_ref` is a number without a meaning. Its attributes have the coordinate system and the place of the grid.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{global, indices, insert};
use crate::store::MemoryStore;

const ELEVATION: &str = r#"{
  "zarr_format": 2,
  "shape": [50, 100],
  "chunks": [20, 40],
  "dtype": ">i4",
  "compressor": {"id": "zlib", "level": 6},
  "fill_value": 0,
  "order": "C",
  "filters": null,
  "dimension_separator": "."
}
"#;

const ELEVATION_ATTRIBUTES: &str = r#"{
  "_ARRAY_DIMENSIONS": ["y", "x"],
  "long_name": "height of an island above the sea",
  "units": "m",
  "grid_mapping": "spatial_ref"
}
"#;

const SPATIAL_REF: &str = r#"{
  "zarr_format": 2,
  "shape": [],
  "chunks": [],
  "dtype": "<i8",
  "compressor": null,
  "fill_value": null,
  "order": "C",
  "filters": null,
  "dimension_separator": "."
}
"#;

/// The upper left corner of the grid is 300 km east and 3630 km north.
const SPATIAL_REF_ATTRIBUTES: &str = r#"{
  "_ARRAY_DIMENSIONS": [],
  "crs_wkt": "PROJCS[\"WGS 84 / UTM zone 28N\",GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\",SPHEROID[\"WGS 84\",6378137,298.257223563,AUTHORITY[\"EPSG\",\"7030\"]],AUTHORITY[\"EPSG\",\"6326\"]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],UNIT[\"degree\",0.0174532925199433,AUTHORITY[\"EPSG\",\"9122\"]],AUTHORITY[\"EPSG\",\"4326\"]],PROJECTION[\"Transverse_Mercator\"],PARAMETER[\"latitude_of_origin\",0],PARAMETER[\"central_meridian\",-15],PARAMETER[\"scale_factor\",0.9996],PARAMETER[\"false_easting\",500000],PARAMETER[\"false_northing\",0],UNIT[\"metre\",1,AUTHORITY[\"EPSG\",\"9001\"]],AXIS[\"Easting\",EAST],AXIS[\"Northing\",NORTH],AUTHORITY[\"EPSG\",\"32628\"]]",
  "GeoTransform": "300000.0 100.0 0.0 3630000.0 0.0 -100.0"
}
"#;

/// The map. Its chunks are 20 x 40; those at the edges hang over, filled with sea.
pub(super) fn insert_map(store: &MemoryStore) {
    insert(store, "legacy/elevation/.zarray", ELEVATION);
    insert(store, "legacy/elevation/.zattrs", ELEVATION_ATTRIBUTES);
    insert(store, "legacy/spatial_ref/.zarray", SPATIAL_REF);
    insert(store, "legacy/spatial_ref/.zattrs", SPATIAL_REF_ATTRIBUTES);
    insert(store, "legacy/spatial_ref/0", 0_i64.to_le_bytes());
    for [y, x, _] in indices([3, 3, 1]) {
        let meters: Vec<i32> = indices([20, 40, 1])
            .map(|element| global([y, x, 0], [20, 40, 1], element))
            .map(|[y, x, _]| elevation(y.into(), x.into()))
            .collect();
        if meters.iter().all(|&meters| meters == 0) {
            continue;
        }
        let bytes: Vec<u8> = meters.into_iter().flat_map(i32::to_be_bytes).collect();
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
        let chunk = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        let chunk = chunk.expect("writing to memory does not fail");
        insert(store, &format!("legacy/elevation/{y}.{x}"), chunk);
    }
}

/// Metres above the sea: one mountain, 0 around it.
fn elevation(y: i32, x: i32) -> i32 {
    (1200 - 3 * (y - 18).pow(2) - (x - 36).pow(2)).max(0)
}
