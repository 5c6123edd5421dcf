//! A preemption policy for cede in Rust, as a WebAssembly module.
//!
//! ```ignore
//! #![no_std]
//! use cede::*;
//!
//! struct LeastLost;
//!
//! impl Policy for LeastLost {
//!     fn new() -> Self {
//!         LeastLost
//!     }
//!     fn info(&self) -> Info {
//!         Info { name: "least-lost", columns: Columns::LOST_WORK, ..Info::default() }
//!     }
//! }
//!
//! impl ScoreVictims for LeastLost {
//!     fn score_victims(&mut self, question: &Candidates, answer: &mut VictimScores) -> Result<()> {
//!         for (score, lost) in answer.score.iter_mut().zip(question.rows.lost_work) {
//!             *score = *lost as f64;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! cede::export!(LeastLost: ScoreVictims);
//! ```
//!
//! README.md describes how to build and test a policy; sdk/ABI.md specifies the
//! wire format.
//!
//! # Shapes and units
//!
//! All input is in columns that point into the frame. A column of rows
//! has an element per row, a column of options one per option, and a [`Table`]
//! has a column per dimension or device request. Rows of option `i` are
//! [`Candidates::rows_of`], by priority ascending and in tie order within a
//! priority. Optional columns are empty unless [`Info::columns`] requests them.
//!
//! Resource amounts are `f64` that hold whole numbers in the units of the
//! cluster (millicores, MiB, Mbit/s). Times are ns since 1970, durations ns.
//!
//! # Determinism
//!
//! Answers must have the same bits on every machine, natively and in Wasm: compute
//! with [`fmath`], keep no state between calls that could change an answer, and
//! never write NaN.
#![no_std]

#[cfg(not(target_arch = "wasm32"))]
compile_error!("cede makes WebAssembly modules: build with --target wasm32-unknown-unknown");

mod answer;
mod error;
mod export;
pub mod fmath;
mod frame;
#[doc(hidden)]
pub mod guest;
mod load;
mod log;
mod memory;
mod policy;
mod settings;
mod tables;
mod texts;
mod views;

pub use answer::{BindingVictims, Gaps, OptionScores, Recheck, Selection, VictimScores, NEVER};
pub use error::{Error, Result};
pub use log::{log, Level};
pub use memory::{keep, Buffer};
pub use policy::{Columns, Configurable, Info, Policy, PreemptBindings, PriorityDelta, ScoreOptions, ScoreVictims, SelectVictims};
pub use settings::{Config, Kind, Setting};
pub use texts::Texts;
pub use views::{Candidates, Options, Pairs, Preemptor, Rows, Shared, Table, FITS_BY_EVICTING, FITS_ELSEWHERE, FITS_NOWHERE};

#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    // A release build has neither location nor message, which would take more
    // space than the rest of a policy.
    #[cfg(debug_assertions)]
    if let Some(place) = info.location() {
        log(Level::Error, place.file());
    }
    let _ = info;
    core::arch::wasm32::unreachable()
}
