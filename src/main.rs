//! The `hookonce` command.

mod cli;

/// Deliveries are many small allocations on many threads, which this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
