//! Who does it, where nobody says so.

use super::opt;
use super::stop::Stop;

/// A name for what is written down, and where it was taken from.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) name: String,
    /// `option`, `environment` or `system`.
    pub(super) source: &'static str,
}

impl Author {
    pub(super) fn of(options: opt::Author) -> Result<Self, Stop> {
        if let Some(name) = options.author {
            return Ok(Self { name, source: "option" });
        }
        if let Some(name) = std::env::var("USER").ok().filter(|name| !name.trim().is_empty()) {
            return Ok(Self { name, source: "environment" });
        }
        match whoami::username() {
            Ok(name) if !name.trim().is_empty() => Ok(Self { name, source: "system" }),
            _ => {
                Err(Stop::usage("nobody knows who you are: `USER` is not set; nothing was done, so say --author NAME"))
            }
        }
    }

    /// Behind the name, where it was not given.
    pub(super) fn remark(&self) -> &'static str {
        match self.source {
            "option" => "",
            "environment" => " (from $USER; --author says otherwise)",
            _ => " (this process's user; --author says otherwise)",
        }
    }
}
