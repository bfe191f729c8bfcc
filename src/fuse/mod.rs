//! stub
pub mod mount_table;
pub mod session;
mod session_mount;
pub mod session_unmount;
