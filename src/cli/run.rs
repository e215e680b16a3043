//! `hookonce run`: the gateway, in the foreground, until it is told to stop.

use std::path::PathBuf;

use clap::Args;

use super::Failure;

#[derive(Args)]
pub struct Options {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let config = super::load_with_warnings(&options.config)?;
    hookonce::server::run(config).map_err(|error| Failure {
        errors: vec![error.to_string()],
        hint: error.hint().map(str::to_owned),
        exit: error.exit_code(),
    })
}
