//! Credentials and settings of the clouds, as their users have them: in variables, in files, from
//! programs and from metadata servers.

pub(super) mod access;
pub(super) mod aws;
mod aws_ini;
mod aws_profile;
mod aws_settings;
pub(super) mod azure;
mod azure_cli;
pub(super) mod cloud_options;
mod command;
mod command_words;
pub(super) mod configured;
pub(super) mod credential_error;
mod credential_process;
mod endpoint;
mod env_file;
pub(super) mod environment;
pub(super) mod gcs;
mod instance;
pub(super) mod region;
pub(super) mod renewed;
pub(super) mod secret_check;
mod small_file;
mod static_credentials;
pub(super) mod timestamp;
