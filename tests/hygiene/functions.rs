//! Functions with a key.

use ::durable::{idempotent, KeyPart, Policy, Retention};
use ::std::string::String;

use crate::{Paid, Result, Tx};

/// Shared by handlers.
pub const PAYMENTS: Policy = Policy::retention("7d").redelivery([("broker", "1d"), ("dead_letter", "3d")]);

/// As long as the broker keeps what it could not deliver.
pub const BROKER: Retention = Retention::days(3);

/// Takes a borrowed message.
///
/// # Errors
///
/// Those of the database.
#[idempotent(key(msg.id), fingerprint(msg.cents), retention = "7d", crate = ::durable)]
pub async fn borrowed(tx: &mut Tx<'_>, msg: &Paid) -> Result<u8> {
    let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
    Result::Ok(7)
}

/// Has errors that the library documents.
#[idempotent(key = "msg.id, msg.cents", retention = "7d", redelivery(broker = BROKER), replay, crate = ::durable)]
pub async fn replayed(tx: &mut ::sqlx::SqliteConnection, msg: &Paid) -> Result<Paid> {
    let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(tx).await?;
    Result::Ok(::core::clone::Clone::clone(msg))
}

/// Takes the message over.
#[idempotent(
    key(msg.id),
    policy = PAYMENTS,
    external(provider = "stripe", guard = provider_key, window = "7d", risk = "a second charge"),
    external(provider = "mail", guard = outbox, risk = "a second mail"),
    crate = ::durable
)]
#[must_use = "it says whether the event was new"]
pub async fn moved(tx: &mut Tx<'_>, mut msg: Paid) -> Result<String> {
    msg.cents = msg.cents.saturating_add(1);
    let _done = ::sqlx::query("SELECT ?").bind(msg.cents).execute(&mut **tx).await?;
    Result::Ok(msg.id)
}

/// Takes the message apart, as well as its state.
#[idempotent(key(id, region), retention = "7d", crate = ::durable)]
#[::tracing::instrument(skip_all)]
pub async fn patterns(
    tx: &mut Tx<'_>,
    Paid { id, .. }: &Paid,
    (region, _): (u8, u8),
    mut notes: String,
) -> Result<String> {
    let _done = ::sqlx::query("SELECT ?").bind(id).execute(&mut **tx).await?;
    notes.push_str(id);
    Result::Ok(notes)
}

/// Works for every type of identifier.
#[idempotent(key(id), retention = "7d", crate = crate::common::idem)]
pub async fn generic<T, const N: usize>(tx: &mut Tx<'_>, id: &T, notes: [u8; N]) -> Result<usize>
where
    T: KeyPart + ::core::marker::Sync + ?::core::marker::Sized,
{
    for note in notes {
        let _done = ::sqlx::query("SELECT ?").bind(note).execute(&mut **tx).await?;
    }
    Result::Ok(N)
}

/// Works on every database.
#[idempotent(key(msg.id), retention = "7d", crate = ::durable)]
pub async fn on_any_store<DB: ::durable::Store>(tx: &mut ::sqlx::Transaction<'_, DB>, msg: &Paid) -> Result<()>
where
    for<'c> &'c mut DB::Connection: ::sqlx::Executor<'c, Database = DB>,
    DB::Arguments: ::sqlx::IntoArguments<DB>,
{
    let _id = ::sqlx::query("SELECT 1").execute(&mut **tx).await.map(|_| msg.id.len())?;
    Result::Ok(())
}

/// Hands a borrow on.
#[idempotent(key(msg.0), retention = "7d", occurred_at = *at, crate = ::durable)]
pub async fn lifetimes<'m>(tx: &mut Tx<'_>, msg: &'m (&'m str,), at: &::std::time::SystemTime) -> Result<&'m str> {
    let _done = ::sqlx::query("SELECT ?").bind(msg.0).execute(&mut **tx).await?;
    ::core::assert_ne!(at, &::std::time::SystemTime::UNIX_EPOCH);
    Result::Ok(msg.0)
}

/// Calls them all.
///
/// # Errors
///
/// Those of the handlers.
pub async fn calls(
    engine: &::durable::Engine<::sqlx::Sqlite>,
    msg: Paid,
) -> ::core::result::Result<bool, ::durable::Failure<::sqlx::Error>> {
    let one = borrowed(engine, &msg).await?.is_applied();
    let two = engine.handle::<borrowed>(&msg, &()).await?.is_duplicate();
    let three = replayed(engine, &msg).await?.into_value();
    let four = patterns(engine, &msg, (1, 2), String::new()).await?;
    let five = generic(engine, "7", [1, 2]).await?;
    let six = on_any_store(engine, &msg).await?;
    let seven = moved(engine, msg).await?;
    let others = four.is_applied() && five.is_applied() && six.is_applied() && seven.is_applied();
    ::core::result::Result::Ok(one && two && three.is_some() && others)
}
