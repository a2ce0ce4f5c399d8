//! The program `stillframe`.

mod cli;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use cli::{Arguments, ServeError};

/// dbsp allocates much and on many threads; its own choice of an allocator is made for that. In
/// development builds it checks itself, and is slow.
#[cfg(not(debug_assertions))]
#[global_allocator]
static ALLOCATOR: stillframe_engine::Allocator = stillframe_engine::Allocator;

/// What is logged unless something else is said. That peers hang up is no news: they do so whenever
/// a circuit is replaced, or a process ends.
const LOG: &str = "warn,stillframe=info,dbsp=error,tarpc=error";

/// Planning a statement descends as deep as the statement is nested.
const STACK_BYTES: usize = 32 << 20;

fn main() -> ExitCode {
    let arguments = match Arguments::of(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("stillframe: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = log(arguments.log.as_deref()) {
        eprintln!("stillframe: {error}");
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build();
    let served = match runtime {
        // On one of its threads, which have the deep stacks.
        Ok(runtime) => runtime.block_on(async {
            let served = tokio::spawn(arguments.run()).await;
            served.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
        }),
        Err(error) => Err(ServeError::Runtime(error)),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stillframe: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Logs to standard error.
fn log(filter: Option<&str>) -> Result<(), String> {
    let wanted = filter.map(str::to_owned).or_else(|| std::env::var("RUST_LOG").ok());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(LOG))
        .map_err(|error| format!("the log filter is wrong: {error}"))?;
    let colors = io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colors);
    // The last layer sees an event when all others have.
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(stillframe_engine::LostTasks::layer())
        .init();
    Ok(())
}
