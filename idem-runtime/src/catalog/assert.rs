//! The drift check as one line of test code.

use std::path::Path;

use super::Catalog;
use super::drift::Drift;
use crate::registry::{Registered, Registry};

/// Set to `1`, it has the file written instead of compared.
const BLESS: &str = "IDEM_BLESS";

/// Fails when a committed catalog does not say what the code does.
///
/// The path is relative to the package of the test. `IDEM_BLESS=1 cargo test` writes the file; but a handler that was
/// renamed, or has another key under its name, forgets every key that it has, and is refused until a human has
/// acknowledged it in the file. The error says how.
///
/// A test sees the handlers that are linked into it. A crate that it does not use otherwise is left out by the linker,
/// unless it is named:
///
/// ```no_run
/// #[test]
/// fn the_catalog_is_up_to_date() {
///     idem_runtime::assert_catalog!("docs/handlers.md");
/// }
/// # /*
/// #[test]
/// fn the_catalog_of_all_crates_is_up_to_date() {
///     idem_runtime::assert_catalog!("docs/handlers.md", crates = [billing, shipping]);
/// }
/// # */
/// ```
///
/// # Panics
///
/// When the file differs, is missing or cannot be read; when no handler is linked, or two have one name.
#[macro_export]
macro_rules! assert_catalog {
    ($path:expr $(,)?) => {
        $crate::assert_catalog!($path, crates = [])
    };
    ($path:expr, crates = [$($linked:ident),* $(,)?] $(,)?) => {{
        $(use $linked as _;)*
        $crate::__private::assert_catalog(::core::env!("CARGO_MANIFEST_DIR"), ::core::convert::AsRef::as_ref($path))
    }};
}

/// Compares the file with the handlers that are linked, or writes it.
#[doc(hidden)] // Not public API: called by `assert_catalog!`.
#[track_caller]
pub fn assert_catalog(package: &str, path: &Path) {
    let registry = match Registry::load() {
        Ok(registry) => registry,
        Err(error) => panic!("catalog `{0}`: {error}{1}", path.display(), help(path)),
    };
    let catalog = Catalog::of(&registry);
    let file = Path::new(package).join(path);
    let is_blessed = std::env::var_os(BLESS).is_some_and(|value| !value.is_empty() && value != "0");
    let drifts =
        if is_blessed { catalog.bless_file(&file).err().unwrap_or_default() } else { catalog.drifts_of_file(&file) };
    assert!(drifts.is_empty(), "catalog `{}`: {}", path.display(), Texts(&drifts));
}

/// What to do where no handler is linked.
fn help(path: &Path) -> String {
    if inventory::iter::<Registered>().next().is_some() {
        return String::new();
    }
    format!("\nhelp: name the crates that hold them: `assert_catalog!(\"{}\", crates = [that_crate])`", path.display())
}

struct Texts<'a>(&'a [Drift]);

impl std::fmt::Display for Texts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, drift) in self.0.iter().enumerate() {
            write!(f, "{}{drift}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
