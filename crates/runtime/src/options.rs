// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options with which a router is built and run.

use crate::compiled::LoadCode;
pub use castanet_element::build::Shared as Given;
use castanet_element::{Clock, Seed};
use castanet_spec::Origin;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A function that the thread of each worker calls first. Its argument is the number of the worker.
pub type ThreadStart = Arc<dyn Fn(u32) + Send + Sync>;

/// The function that receives the messages of elements.
pub type Printer = Box<dyn Fn(&str) + Send + Sync>;

/// How a router continues after an element has panicked while it handled a packet, ran its task or ran a timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// The router stops in an orderly way.
    // This is the default, because the state of an element that has panicked may be inconsistent. Users notice that a
    // router has stopped. They may not notice that a router that continues gives wrong results.
    #[default]
    Stop,
    /// The router continues, and drops all packets that reach the element.
    Disable,
    /// The router continues, and still uses the element.
    Continue,
}

/// The options with which a router is built.
pub struct Options {
    /// The number of workers.
    pub workers: usize,
    /// The maximum number of packets in a batch, 1 to 256.
    pub batch: usize,
    /// The seed of random numbers, which overrides the seed in the configuration (RandomSeed). If neither is given in
    /// real time, random numbers come from the kernel, so that nobody can predict them. If neither is given under
    /// simulated time, the seed is 1, so that every run gives the same result.
    pub seed: Option<u64>,
    /// The clock. Under simulated time there is only one worker.
    pub clock: Clock,
    /// The function that receives the messages of elements.
    pub printer: Printer,
    /// How the router continues after an element has panicked.
    pub on_panic: OnPanic,
    /// Whether configurations are optimised as they load. Nobody can tell this but by the speed.
    pub optimize: bool,
    /// State that this program gives to the elements of every router, such as a compiler of classifiers.
    pub given: Given,
    /// The text of the configuration, for the handler `config`.
    pub config: Arc<str>,
    /// The folder below which clients may name files, if they have sent the operator's token. If there is no folder,
    /// clients may name no files.
    pub client_files: Option<PathBuf>,
    /// Whether scripts show a message about variables that are not defined.
    pub report_undefined: bool,
    /// A function that each worker's thread calls first, for example to bind itself to a processor.
    pub on_start: Option<ThreadStart>,
    /// Loads the compiled code in the archives of configurations. If there is no loader, the code is not used.
    pub code: Option<Arc<dyn LoadCode>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: 1,
            batch: 32,
            seed: None,
            clock: Clock::real(),
            printer: Box::new(|text| {
                let _ = std::io::stderr().lock().write_all(&castanet_spec::bytes::line(text));
            }),
            config: Arc::default(),
            client_files: None,
            report_undefined: false,
            on_start: None,
            code: None,
            on_panic: OnPanic::default(),
            optimize: true,
            given: Given::default(),
        }
    }
}

/// Options that all configurations of a running router share.
#[derive(Clone)]
pub(crate) struct Settings {
    pub workers: usize,
    /// The number of workers that the user requested. Under simulated time, only one worker runs, whatever this number
    /// is.
    pub requested: usize,
    pub batch: usize,
    pub seed: Seed,
    /// Whether the command line gives a seed. This seed overrides the one in the configuration.
    pub seed_given: bool,
    pub clock: Clock,
    /// The origin of the configuration, which decides its rights.
    pub origin: Origin,
    /// The folder below which clients may name files, if they have sent the operator's token. If there is no folder,
    /// clients may name no files.
    pub folder: Option<Arc<Path>>,
    /// Whether scripts show a message about variables that are not defined.
    pub report_undefined: bool,
    pub on_start: Option<ThreadStart>,
    /// The loader of compiled code.
    pub code: Option<Arc<dyn LoadCode>>,
    pub on_panic: OnPanic,
    /// Whether configurations are optimised as they load.
    pub optimize: bool,
    /// State for the elements of every router.
    pub given: Given,
}

impl Options {
    /// Returns the seed of random numbers.
    pub(crate) fn seed(&self) -> Seed {
        match self.seed {
            Some(n) => Seed::Fixed(n),
            None if self.clock.is_simulated() => Seed::Fixed(1),
            None => Seed::System,
        }
    }
    /// Splits the options into the settings that later configurations share, the function that receives messages, and
    /// the text of this configuration.
    pub(crate) fn split(self) -> (Settings, Printer, Arc<str>) {
        let (seed, seed_given) = (self.seed(), self.seed.is_some());
        let Options {
            workers,
            batch,
            clock,
            printer,
            config,
            on_panic,
            optimize,
            given,
            client_files,
            report_undefined,
            on_start,
            code,
            ..
        } = self;
        let folder = client_files.map(Arc::from);
        let requested = workers.max(1);
        let workers = if clock.is_simulated() { 1 } else { requested };
        let batch = batch.clamp(1, castanet_packet::Batch::MAX);
        let origin = Origin::Operator;
        let settings = Settings {
            workers,
            requested,
            batch,
            seed,
            seed_given,
            clock,
            on_panic,
            optimize,
            given,
            origin,
            folder,
            report_undefined,
            on_start,
            code,
        };
        (settings, printer, config)
    }
}
