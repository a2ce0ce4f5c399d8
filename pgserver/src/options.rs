//! What a database can be told when it is opened.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::thread::available_parallelism;

/// How to open a database in this process.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many hosts share the work, each with an engine of its own. Default 1.
    pub hosts: NonZeroU32,
    /// How many workers each host runs. Default: as many as there are processors.
    pub workers: NonZeroU32,
    /// Where temporary directories are made. Default: the system's place for such.
    pub temporary_directory: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let processors = available_parallelism().ok();
        let workers = processors.and_then(|processors| processors.try_into().ok());
        Self {
            hosts: NonZeroU32::MIN,
            workers: workers.unwrap_or(NonZeroU32::MIN),
            temporary_directory: None,
        }
    }
}
