//! Local differential privacy on the respondent's device: an answer in, a randomized report out.
//!
//! This client is written from docs/reference/client-programs.md. It has no dependency and no unsafe code. It does not
//! compute what a program gives away: it runs the definition whose digest you pin, and nothing else.
//!
//! ```no_run
//! use ldp_budget::{Answer, Client, SystemStream};
//!
//! let text = std::fs::read_to_string("party.json").unwrap();
//! let client = Client::new(&text, "186d8676cd6e…").unwrap();
//! let drawn = client.randomize(&Answer::Text("democrat"), None, &mut SystemStream::default()).unwrap();
//! // send drawn.report once
//! ```
#![forbid(unsafe_code)]

mod amounts;
mod answers;
mod client;
mod definition;
mod device;
mod draws;
mod error;
pub mod hashes;
mod integer;
pub mod json;
mod natural;
mod normal;
mod normalization_tables;
mod operators;
mod program;
mod storage;
mod tables;
mod text;

pub use amounts::{epsilon_of, units};
pub use answers::Answer;
pub use client::{Client, Drawn};
pub use device::{Balance, Device, Entry, Limits};
pub use draws::{Recorded, Stream, SystemStream};
pub use error::{Error, Result};
pub use integer::Integer;
pub use normalization_tables::UNICODE;
pub use program::Program;
pub use storage::{FileStorage, MemoryStorage, Storage};
pub use text::canonical as canonical_text;
