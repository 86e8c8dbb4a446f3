//! Why something was refused.

use std::fmt;

/// A refusal, in words for a developer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    why: String,
    over_budget: bool,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(why: impl Into<String>) -> Error {
        Error { why: why.into(), over_budget: false }
    }

    /// A charge that a device's limits do not allow.
    pub fn over_budget(why: impl Into<String>) -> Error {
        Error { why: why.into(), over_budget: true }
    }

    /// True if a device's limits do not allow the charge: the same answer may fit on another day.
    pub fn is_over_budget(&self) -> bool {
        self.over_budget
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.why)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::new(error.to_string())
    }
}

/// Refuse.
pub fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::new(why))
}

/// Refuse unless something holds.
pub fn needs(holds: bool, why: &str) -> Result<()> {
    if holds {
        Ok(())
    } else {
        refuse(why)
    }
}
