//! What generated code finds out about the user's types without asking for a bound: method look-up takes the first trait
//! that is implemented for the most references.

use std::error::Error as StdError;

/// Looks for the database's error behind a handler's. Which trait answers depends on what the error type can do: method
/// look-up takes the first that is implemented for the most references.
#[derive(Debug)]
pub struct Cause<'a, E>(pub &'a E);

/// For errors that implement [`std::error::Error`].
pub trait ViaError<'a> {
    /// The database's error, if there is one.
    fn sqlx_error(&self) -> Option<&'a sqlx::Error>;
}

impl<'a, E: StdError + 'static> ViaError<'a> for &&Cause<'a, E> {
    fn sqlx_error(&self) -> Option<&'a sqlx::Error> {
        find(self.0)
    }
}

/// For `anyhow::Error` and `Box<dyn Error + Send + Sync>`.
pub trait ViaAsRef<'a> {
    /// The database's error, if there is one.
    fn sqlx_error(&self) -> Option<&'a sqlx::Error>;
}

impl<'a, E: AsRef<dyn StdError + Send + Sync>> ViaAsRef<'a> for &Cause<'a, E> {
    fn sqlx_error(&self) -> Option<&'a sqlx::Error> {
        find(self.0.as_ref())
    }
}

/// For everything else.
pub trait ViaNone<'a> {
    /// `None`: nothing is known of the error.
    fn sqlx_error(&self) -> Option<&'a sqlx::Error>;
}

impl<'a, E> ViaNone<'a> for Cause<'a, E> {
    fn sqlx_error(&self) -> Option<&'a sqlx::Error> {
        None
    }
}

fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a sqlx::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// A parameter that is moved into the handler: cloned for each run where its type can be, else there for one run.
#[derive(Debug)]
pub struct Owned<T> {
    value: Option<T>,
    clone: Option<fn(&T) -> T>,
}

/// The panic message of a body that was called more often than its plan allows.
const MOVED: &str = "the engine runs a body again only when its plan says so";

impl<T> Owned<T> {
    /// Keeps a parameter; `clone` is what [`CloneProbe`] found.
    pub fn new(value: T, clone: Option<fn(&T) -> T>) -> Self {
        Self { value: Some(value), clone }
    }

    /// Whether there is a value for more than one run.
    pub fn is_repeatable(&self) -> bool {
        self.clone.is_some()
    }

    /// The value for the next run.
    ///
    /// # Panics
    ///
    /// When it was moved already; the engine does not ask then.
    #[allow(clippy::expect_used, reason = "see MOVED")]
    pub fn for_next_run(&mut self) -> T {
        match (self.clone, &self.value) {
            (Some(clone), Some(value)) => clone(value),
            _ => self.value.take().expect(MOVED),
        }
    }
}

/// Finds out whether a parameter's type is `Clone`, the way [`Cause`] does.
#[derive(Debug)]
pub struct CloneProbe<'a, T>(pub &'a T);

/// For types that are `Clone`.
pub trait ViaClone<T> {
    /// How to clone the value.
    fn clone_fn(&self) -> Option<fn(&T) -> T>;
}

impl<T: Clone> ViaClone<T> for &CloneProbe<'_, T> {
    fn clone_fn(&self) -> Option<fn(&T) -> T> {
        Some(T::clone)
    }
}

/// For types that are not.
pub trait ViaMove<T> {
    /// `None`: it cannot be cloned.
    fn clone_fn(&self) -> Option<fn(&T) -> T>;
}

impl<T> ViaMove<T> for CloneProbe<'_, T> {
    fn clone_fn(&self) -> Option<fn(&T) -> T> {
        None
    }
}
