//! `hookonce run`: the gateway, in the foreground, until it is told to stop.

use std::path::PathBuf;

use clap::Args;
use hookonce::config::{self, Loaded};

use super::Failure;

#[derive(Args)]
pub struct Options {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let (loaded, sources) = config::load_watched(&options.config);
    let Loaded { config, warnings } = loaded.map_err(super::unusable)?;
    super::warn(&warnings);
    hookonce::server::run(&options.config, config, sources).map_err(|error| Failure {
        errors: vec![error.to_string()],
        hint: error.hint().map(str::to_owned),
        exit: error.exit_code(),
    })
}
