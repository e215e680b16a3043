//! `hookonce check`: everything that is wrong with a configuration file, at once, without starting anything.

use std::path::PathBuf;

use clap::Args;
use hookonce::config::Store;

use super::Failure;

#[derive(Args)]
pub struct Options {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let config = super::load_with_warnings(&options.config)?;
    let store = match config.store {
        Store::Redis(_) => "redis",
        Store::Embedded(_) => "embedded",
    };
    let routes = match config.routes.len() {
        1 => "1 route".to_owned(),
        many => format!("{many} routes"),
    };
    super::show(&format!("ok: {} ({routes}, {store} store)\n", options.config.display()));
    Ok(())
}
