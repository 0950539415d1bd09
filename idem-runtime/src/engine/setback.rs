//! Why a delivery stopped, and whether another run may end better.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, UNIX_EPOCH};

use crate::error::{Error, ErrorKind};
use crate::handler::HandlerMeta;
use crate::key::{Key, KeyError};
use crate::store::{Clock, Fault, Store, schema};
use crate::telemetry;

/// How far ahead of the database's clock an event may be dated. The purge keeps keys this much longer, so that an event
/// from a fast clock is not accepted again after its key is gone.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(300);

/// The longest pause before a transaction is run again; the first is a sixteenth of it.
const LONGEST_PAUSE: Duration = Duration::from_millis(160);

/// The key is not committed, or nobody can say.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The handler returned an error, which the typed body holds.
    Handler,
    Engine(Error),
}

impl Stop {
    pub(super) fn at(self, meta: &'static HandlerMeta, key: Option<&Key>) -> Self {
        match self {
            Self::Handler => Self::Handler,
            Self::Engine(error) => Self::Engine(error.at(meta, key)),
        }
    }
}

/// Why one run ended without the key being committed.
pub(super) struct Setback {
    pub(super) stop: Stop,
    pub(super) next: Next,
}

pub(super) enum Next {
    GiveUp,
    /// Another run may end better.
    RunAgain,
    /// Another writer has the database; it does not count as a run.
    WaitForWriter,
}

impl Setback {
    pub(super) fn give_up(error: Error) -> Self {
        Self { stop: Stop::Engine(error), next: Next::GiveUp }
    }

    pub(super) fn run_again(error: Error) -> Self {
        Self { stop: Stop::Engine(error), next: Next::RunAgain }
    }
}

/// A message without a usable key never gets to the database.
pub(super) fn refuse_key(meta: &'static HandlerMeta, error: KeyError) -> Error {
    let error = Error::new(ErrorKind::InvalidKey).source(error).at(meta, None);
    telemetry::refused(meta, &error);
    error
}

/// Nor does one whose key cannot be made.
pub(super) fn refuse_panicked_key(meta: &'static HandlerMeta, panic: &str) -> Error {
    let error = Error::new(ErrorKind::Panicked).detail(format!("while its key was made: {panic}")).at(meta, None);
    telemetry::refused(meta, &error);
    error
}

/// The pause after a run that met contention: growing, and different for each, so that those who collided once do not
/// collide again.
pub(crate) fn pause(run: u32) -> Duration {
    let longest = (LONGEST_PAUSE / 16 * 2_u32.saturating_pow(run - 1)).min(LONGEST_PAUSE);
    let random = RandomState::new().build_hasher().finish();
    let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(random % nanos.max(1))
}

pub(super) fn not_begun<S: Store>(error: sqlx::Error) -> Setback {
    let next_writer = S::fault(&error) == Fault::LockTimeout;
    let setback = not_claimed::<S>(error);
    if next_writer { Setback { next: Next::WaitForWriter, ..setback } } else { setback }
}

/// An error before the body has run: running again is safe, and after a broken connection it is the cure.
pub(super) fn not_claimed<S: Store>(error: sqlx::Error) -> Setback {
    match S::fault(&error) {
        Fault::Contention => Setback::run_again(Error::new(ErrorKind::Contention).source(error)),
        Fault::ConnectionLost => Setback::run_again(Error::new(ErrorKind::Unavailable).source(error)),
        Fault::LockTimeout => Setback::give_up(Error::new(ErrorKind::Busy).source(error)),
        Fault::ReadOnly | Fault::Schema | Fault::Other => Setback::give_up(schema::connection_error::<S>(error)),
    }
}

pub(super) fn refused<S: Store>(error: sqlx::Error) -> Setback {
    match S::fault(&error) {
        Fault::Contention | Fault::LockTimeout => Setback::run_again(Error::new(ErrorKind::Contention).source(error)),
        Fault::ConnectionLost => Setback::give_up(Error::new(ErrorKind::Unavailable).source(error)),
        Fault::ReadOnly | Fault::Schema | Fault::Other => Setback::give_up(Error::new(ErrorKind::Commit).source(error)),
    }
}

/// What a transaction that escaped left of its key.
#[derive(Clone, Copy)]
pub(super) enum KeyLeft {
    Stored,
    NotStored,
    Unknown,
    /// The handler has no key.
    None,
}

pub(super) fn escaped(key: KeyLeft, error: Option<sqlx::Error>) -> Setback {
    let escaped = Error::new(ErrorKind::Escaped).detail(match key {
        KeyLeft::Stored => "its key is stored, so a redelivery will be taken for a duplicate",
        KeyLeft::NotStored => "its key is not stored, so a redelivery will run the handler again",
        KeyLeft::Unknown => "whether its key is stored could not be asked",
        KeyLeft::None => "a redelivery will run the handler again",
    });
    Setback::give_up(match error {
        Some(error) => escaped.source(error),
        None => escaped,
    })
}

/// Refuses an event of which the database's clock says that its key may have been purged, or will be too early. Whether it
/// is too old is asked of the clock after the claim, which may have waited for the purge; whether it is from the future, of
/// the time in the row, which the purge goes by. `docs/retention.md` has the arithmetic.
pub(super) fn refuse_unprovable(meta: &'static HandlerMeta, key: &Key, clock: Clock) -> Result<(), Setback> {
    let (Some(occurred_at), Some(retention)) = (key.occurred_at(), meta.retention) else {
        return Ok(());
    };
    let instant = |micros| UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    let age = instant(clock.now_micros).duration_since(occurred_at).unwrap_or_default();
    let ahead = occurred_at.duration_since(instant(clock.claimed_micros)).unwrap_or_default();
    let detail = if age > retention.as_duration() {
        format!("it is {} seconds old, and keys are kept for {retention}", age.as_secs())
    } else if ahead > CLOCK_TOLERANCE {
        format!(
            "it is dated {} seconds ahead of the database's clock; is its time in another unit, or the producer's clock \
             fast?",
            ahead.as_secs()
        )
    } else {
        return Ok(());
    };
    Err(Setback::give_up(Error::new(ErrorKind::Expired).detail(detail)))
}
