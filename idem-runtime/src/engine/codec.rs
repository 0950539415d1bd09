//! The stored result of `replay`.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Whether and how a handler's result is stored with its key.
#[diagnostic::on_unimplemented(
    message = "`{T}` cannot be handed to a duplicate",
    label = "`replay` stores this value with the key",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, or leave `replay` out"
)]
pub trait Codec<T> {
    /// The stored form, if it is to be stored.
    fn write(&self, value: &T) -> Option<Result<Vec<u8>, serde_json::Error>>;

    /// The value of a stored form.
    ///
    /// # Errors
    ///
    /// When the form is not this type's.
    fn read(&self, stored: &[u8]) -> Result<Option<T>, serde_json::Error>;
}

/// The result is not stored.
#[derive(Debug, Clone, Copy)]
pub struct Forget;

impl<T> Codec<T> for Forget {
    fn write(&self, _: &T) -> Option<Result<Vec<u8>, serde_json::Error>> {
        None
    }

    fn read(&self, _: &[u8]) -> Result<Option<T>, serde_json::Error> {
        Ok(None)
    }
}

/// The result is stored as JSON.
#[derive(Debug, Clone, Copy)]
pub struct Remember;

// What `Codec` says of a type without serde is better than what serde says of it.
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Codec<T> for Remember {
    fn write(&self, value: &T) -> Option<Result<Vec<u8>, serde_json::Error>> {
        Some(serde_json::to_vec(value))
    }

    fn read(&self, stored: &[u8]) -> Result<Option<T>, serde_json::Error> {
        serde_json::from_slice(stored).map(Some)
    }
}
