//! The command line: what a person or a service manager types.
//!
//! One file per command. Data goes to stdout; warnings, errors and logs go to stderr. An error is one line,
//! `error: …`, followed by `hint: …` where there is a way out; a configuration with several mistakes gives a line for
//! each. Exit codes: 0, 1 for what failed, 2 for a command line that cannot be read, 78 (`EX_CONFIG`) for a
//! configuration that cannot work, so that a service manager does not start it again and again. `keys` has two more.

mod check;
mod delivery;
mod diff;
mod echo;
mod explain;
mod keys;
mod run;
mod saved;
mod schema;
mod stress;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use delivery::{find_route, parse_header, path_of, read_file, with_given};
use hookonce::config::{self, Loaded, Problem, Problems};

/// `EX_CONFIG` of sysexits.h.
const EXIT_CONFIG: u8 = 78;

/// A reverse proxy for webhooks that lets each event reach its handler once
#[derive(Parser)]
#[command(name = "hookonce", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway. It reads its routes anew when the configuration changes, and at SIGHUP
    Run(run::Options),
    /// Tell every mistake of a configuration file
    Check(check::Options),
    /// Show what a route makes of a delivery: is it authentic, which events are in it, what are their keys
    Explain(explain::Options),
    /// Show what the store remembers of an event, or make it forget
    #[command(subcommand)]
    Keys(keys::Command),
    /// Send one delivery many times at once, and tell whether exactly one was first
    Stress(Box<stress::Options>),
    /// Compare two deliveries of one event: what changed must stay out of its key
    Diff(diff::Options),
    /// Print the JSON Schema of the configuration, for editors
    Schema,
    /// Run a sample handler that prints, and saves, what it gets
    Echo(echo::Options),
}

/// Why a command failed, in the words a person gets to read.
#[derive(Debug)]
struct Failure {
    /// A line each.
    errors: Vec<String>,
    hint: Option<String>,
    exit: u8,
}

impl Failure {
    fn new(error: impl Into<String>) -> Self {
        Self { errors: vec![error.into()], hint: None, exit: 1 }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Reads the arguments, does what they say and gives the exit code.
pub fn main() -> ExitCode {
    let done = match CommandLine::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Keys(command) => return end(keys::run(&command)),
        Command::Stress(options) => stress::run(&options),
        Command::Diff(options) => diff::run(&options),
        Command::Schema => {
            schema::run();
            Ok(())
        }
        Command::Echo(options) => echo::run(options),
    };
    end(done.map(|()| ExitCode::SUCCESS))
}

/// Tells why a command failed, and gives the exit code.
fn end(done: Result<ExitCode, Failure>) -> ExitCode {
    let failure = match done {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    for error in &failure.errors {
        tell(&format!("error: {error}"));
    }
    if let Some(hint) = &failure.hint {
        tell(&format!("hint: {hint}"));
    }
    ExitCode::from(failure.exit)
}

/// Loads a configuration, with what is merely unwise in it.
fn load(path: &Path) -> Result<Loaded, Failure> {
    config::load(path).map_err(unusable)
}

fn unusable(problems: Problems) -> Failure {
    Failure { errors: problems.0.iter().map(ToString::to_string).collect(), hint: None, exit: EXIT_CONFIG }
}

/// The same for whoever is about to rely on it: the warnings are told on stderr.
fn load_with_warnings(path: &Path) -> Result<config::Config, Failure> {
    let Loaded { config, warnings } = load(path)?;
    warn(&warnings);
    Ok(config)
}

fn warn(warnings: &[Problem]) {
    for warning in warnings {
        tell(&format!("warning: {warning}"));
    }
}

/// A line on stderr, in one piece, since others write there too. That nobody reads it (a closed pipe) is no reason to stop.
fn tell(line: &str) {
    drop(std::io::stderr().write_all(format!("{line}\n").as_bytes()));
}

/// The same line again, on a terminal.
fn tell_in_place(line: &str) {
    drop(std::io::stderr().write_all(format!("\r{line}").as_bytes()));
}

/// One JSON document on a line of its own.
fn json(document: &impl serde::Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string(document).map_err(|error| Failure::new(format!("this is no JSON: {error}")))?;
    Ok(format!("{json}\n"))
}

/// Text on stdout, at once. That nobody reads it (a closed pipe) is no reason to stop.
fn show(text: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        super::CommandLine::command().debug_assert();
    }
}
