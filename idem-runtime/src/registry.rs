//! The handlers that are linked into the program.

use std::collections::BTreeMap;

use crate::endpoint::RegisteredEndpoint;
use crate::error::{Error, ErrorKind};
use crate::handler::HandlerMeta;

/// One handler, as the attribute submits it.
#[derive(Debug)]
#[doc(hidden)] // Not public API: submitted by generated code.
pub struct Registered(pub &'static HandlerMeta);

inventory::collect!(Registered);

/// The handlers that are linked into the program, sorted by name, each name once.
///
/// ```standalone_crate
/// # mod handlers {
/// # use idem_runtime::idempotent;
/// # use sqlx::{Sqlite, Transaction};
/// # pub struct Paid { pub order_id: String }
/// # #[idempotent(key(msg.order_id), retention = "7d")]
/// # async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> { Ok(()) }
/// # }
/// let registry = idem_runtime::Registry::load()?;
/// for handler in registry.handlers() {
///     println!("{} keeps its keys for {:?}", handler.name, handler.retention);
/// }
/// # Ok::<(), idem_runtime::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Registry {
    handlers: BTreeMap<&'static str, &'static HandlerMeta>,
}

impl Registry {
    /// Collects the handlers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registry`] when two handlers have one name, with both places, or when there is no handler at all.
    pub fn load() -> Result<Self, Error> {
        let endpoints = inventory::iter::<RegisteredEndpoint>().filter_map(|registered| registered.keys);
        Self::collect(inventory::iter::<Registered>().map(|registered| registered.0).chain(endpoints))
    }

    fn collect(all: impl Iterator<Item = &'static HandlerMeta>) -> Result<Self, Error> {
        let mut handlers: BTreeMap<&'static str, &'static HandlerMeta> = BTreeMap::new();
        for meta in all {
            let first = *handlers.entry(meta.name).or_insert(meta);
            // One place can register twice: a crate that is linked twice, a function that a macro above ours repeats.
            if first.place != meta.place {
                return Err(same_name(first, meta));
            }
        }
        if handlers.is_empty() {
            return Err(Error::new(ErrorKind::Registry).detail(
                "no handler is linked into this program; a crate that is only named in Cargo.toml is left out by the \
                 linker, so write `use that_crate as _;` in the program's main file",
            ));
        }
        Ok(Self { handlers })
    }

    /// The handlers, sorted by name.
    pub fn handlers(&self) -> impl ExactSizeIterator<Item = &'static HandlerMeta> {
        self.handlers.values().copied()
    }

    /// The handler of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static HandlerMeta> {
        self.handlers.get(name).copied()
    }
}

fn same_name(first: &HandlerMeta, second: &HandlerMeta) -> Error {
    // The linker's order is not ours to show.
    let (first, second) = if first.place.function <= second.place.function { (first, second) } else { (second, first) };
    Error::new(ErrorKind::Registry).detail(format!(
        "two handlers are named `{}`, and would take each other's events for duplicates: {} and {}; give one of them a \
         name of its own with `name = \"…\"`",
        first.name, first.place, second.place
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{Place, Semantics};

    const fn meta(name: &'static str, line: u32) -> HandlerMeta {
        HandlerMeta::new(name, Place::new("billing::credit", "src/billing.rs", line), Semantics::Idempotent)
    }

    static CREDIT: HandlerMeta = meta("credit", 10);
    static CREDIT_ELSEWHERE: HandlerMeta = meta("credit", 90);
    static DEBIT: HandlerMeta = meta("debit", 40);

    #[test]
    fn two_handlers_with_one_name_name_both_places() {
        let error = Registry::collect([&CREDIT, &DEBIT, &CREDIT_ELSEWHERE].into_iter()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Registry);
        let text = error.to_string();
        assert!(text.contains("src/billing.rs:10") && text.contains("src/billing.rs:90"), "{text}");
    }

    #[test]
    fn no_handler_says_how_to_link_one() {
        let error = Registry::collect(std::iter::empty()).unwrap_err();
        assert!(error.to_string().contains("use that_crate as _;"), "{error}");
    }

    #[test]
    fn one_place_may_register_twice_and_the_order_is_by_name() {
        let registry = Registry::collect([&DEBIT, &CREDIT, &DEBIT].into_iter()).unwrap();
        let names: Vec<_> = registry.handlers().map(|handler| handler.name).collect();
        assert_eq!(names, ["credit", "debit"]);
        assert_eq!(registry.get("debit"), Some(&DEBIT));
    }
}
