//! Many deliveries in one transaction: the outcomes are those of each alone.

#![allow(clippy::disallowed_methods, reason = "the events are dated by the producer")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use idem_runtime::{Engine, ErrorKind, Failure, Handled, Outcome, Settle};
use idem_tests::Delivered::{self, Applied, Duplicate, Failed, Refused};
use idem_tests::{Batches, Db, Detailed, Message, Slices, Step};

const TRANSACTIONS: &str = "SELECT count(DISTINCT claim) FROM idem_key";
const EFFECTS: &str = "SELECT count(*) FROM effect";

fn message(id: impl Into<String>) -> Message {
    Message::new(id, [Step::Effect("effect")])
}

fn delivered<T, E: std::fmt::Display>(handled: &Handled<Result<T, E>>) -> Delivered {
    match handled {
        Ok(Outcome::Applied(_)) => Applied,
        Ok(_) => Duplicate,
        Err(failure) => {
            assert_ne!(failure.settle(), Settle::Ack);
            match failure {
                Failure::Engine(error) => Refused(error.kind()),
                _ => Failed,
            }
        }
    }
}

async fn deliver<S: Batches>(engine: &Engine<S>, messages: &[&Message]) -> Vec<Delivered> {
    engine.handle_batch::<S::Each>(messages, &()).await.iter().map(delivered).collect()
}

pub(super) async fn a_batch_is_applied_in_one_transaction<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let messages: Vec<_> = (0..200).map(|number| message(format!("e{}", number * 37 % 200))).collect();
    let messages: Vec<_> = messages.iter().collect();
    assert!(deliver(&engine, &messages).await.iter().all(|outcome| *outcome == Applied));
    let numbers = (db.number(EFFECTS).await, db.keys().await, db.number(TRANSACTIONS).await);
    assert_eq!(numbers, (200, 200, 1));
    // Again, among new ones.
    let new: Vec<_> = (0..3).map(|number| message(format!("new {number}"))).collect();
    let mixed = [messages[7], &new[0], messages[3], &new[1], &new[2]];
    let outcomes = deliver(&engine, &mixed).await;
    assert_eq!(outcomes, [Duplicate, Applied, Duplicate, Applied, Applied]);
    assert_eq!((db.number(EFFECTS).await, db.number(TRANSACTIONS).await), (203, 2));
    assert!(messages.iter().all(|message| message.runs() == 1));
    assert_eq!(deliver(&engine, &[]).await, []);
}

pub(super) async fn the_same_key_twice_in_a_batch_is_one_effect<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let (first, second, other) = (message("e1"), message("e1"), message("e2"));
    let outcomes = deliver(&engine, &[&first, &second, &other, &first]).await;
    assert_eq!(outcomes, [Applied, Duplicate, Applied, Duplicate]);
    assert_eq!((first.runs(), second.runs(), db.number(EFFECTS).await), (1, 0, 2));
}

pub(super) async fn a_message_that_fails_takes_no_other_down<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let messages = [
        message("e1"),
        Message::new("fails", [Step::Effect("effect"), Step::Fail]),
        message("e2"),
        Message::new("panics", [Step::Effect("effect"), Step::Panic]),
        message(""),
        Message::new("swallows", [Step::Effect("effect"), Step::Ignored("INSERT INTO nowhere VALUES (1)".into())]),
        message("e3"),
    ];
    let swallowed = if S::FAILED_STATEMENT_DOOMS { Refused(ErrorKind::Aborted) } else { Applied };
    let (panicked, no_key) = (Refused(ErrorKind::Panicked), Refused(ErrorKind::InvalidKey));
    let applied = if S::FAILED_STATEMENT_DOOMS { 3 } else { 4 };
    let outcomes = deliver(&engine, &messages.each_ref()).await;
    assert_eq!(outcomes, [Applied, Failed, Applied, panicked, no_key, swallowed, Applied]);
    assert_eq!((db.number(EFFECTS).await, db.keys().await), (applied, applied));
    // The connection is as good as new.
    assert_eq!(deliver(&engine, &[&message("e8"), &message("e9")]).await, [Applied, Applied]);
}

/// The transaction is everybody's, so whoever ends it is told, and so is everybody whose key is left behind.
pub(super) async fn whoever_ends_the_transaction_is_found_out<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let (cast, as_blob) = if S::NAME == "SQLite" { ("CAST", " AS BLOB") } else { ("", "") };
    for (end, is_stored) in [("ROLLBACK", false), ("COMMIT", true)] {
        let ends = [Step::Effect("effect"), Step::Sql(end.into())];
        let messages = [message(format!("1{end}")), Message::new(format!("2{end}"), ends), message(format!("3{end}"))];
        let outcomes = engine.handle_batch::<S::Each>(&messages.each_ref(), &()).await;
        for (message, outcome) in messages.iter().zip(&outcomes) {
            let key = format!("SELECT count(*) FROM idem_key WHERE event_key = {cast}('1/s:{}'{as_blob})", message.id);
            let key = db.number(&key).await;
            match outcome {
                Err(failure) => {
                    assert_eq!(failure.kind(), Some(ErrorKind::Escaped), "{failure}");
                    let said = if is_stored { "its key is stored" } else { "its key is not stored" };
                    assert!(failure.to_string().contains(said), "{failure}");
                    assert_eq!(key, i64::from(is_stored));
                }
                // Behind the end, where that is seen at once: it had not run, and ran alone.
                Ok(outcome) => assert!(outcome.is_applied() && !is_stored && key == 1, "{outcome:?}"),
            }
        }
        assert!(outcomes[1].is_err());
    }
    let after = deliver(&engine, &[&message("after 1"), &message("after 2")]).await;
    assert_eq!(after, [Applied, Applied]);

    // Before it fails.
    let ends = Message::new("fails", [Step::Effect("effect"), Step::Sql("COMMIT".into()), Step::Fail]);
    let outcomes = deliver(&engine, &[&message("before"), &ends, &message("behind")]).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Refused(ErrorKind::Escaped)), "{outcomes:?}");
}

/// In whatever order they come: the claims are made in one.
pub(super) async fn two_batches_with_the_same_keys_do_not_deadlock<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(2).await;
    for round in 0..20 {
        let ids = |reversed: bool| {
            let mut messages: Vec<_> = (0..20).map(|number| message(format!("{round} e{number}"))).collect();
            if reversed {
                messages.reverse();
            }
            messages
        };
        let (one, other) = (ids(false), ids(true));
        let (one, other): (Vec<_>, Vec<_>) = (one.iter().collect(), other.iter().collect());
        let (first, second) = tokio::join!(deliver(&engine, &one), deliver(&engine, &other));
        let applied = first.iter().chain(&second).filter(|outcome| **outcome == Applied).count();
        let runs: usize = one.iter().chain(&other).map(|message| message.runs()).sum();
        assert_eq!((applied, runs), (20, 20), "{first:?} {second:?}");
    }
    assert_eq!((db.number(EFFECTS).await, db.keys().await), (400, 400));
}

pub(super) async fn what_stands_beside_the_key_is_judged_for_each<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let event = |id, cents| Detailed { id, cents, at: SystemTime::now() };
    let old = Detailed { at: SystemTime::now() - Duration::from_secs(8 * 86_400), ..event("old", 1) };
    let messages = [event("e1", 100), event("e2", 200)];
    let outcomes = engine.handle_batch::<S::Detailed>(&messages.each_ref(), &()).await;
    assert_eq!(
        outcomes.into_iter().map(|outcome| outcome.unwrap()).collect::<Vec<_>>(),
        [Outcome::Applied(100), Outcome::Applied(200)]
    );

    let again = [event("e1", 100), event("e2", 999), old, event("e3", 300), event("e3", 301)];
    let outcomes = engine.handle_batch::<S::Detailed>(&again.each_ref(), &()).await;
    let Ok(Outcome::Duplicate(seen)) = &outcomes[0] else { panic!("{:?}", outcomes[0]) };
    assert_eq!(seen.result, Some(100));
    let (mismatch, expired) = (Refused(ErrorKind::Mismatch), Refused(ErrorKind::Expired));
    let outcomes: Vec<_> = outcomes.iter().map(delivered).collect();
    assert_eq!(outcomes, [Duplicate, Refused(ErrorKind::Mismatch), expired, Applied, mismatch]);
    assert_eq!((db.number(EFFECTS).await, db.keys().await), (3, 3));
}

pub(super) async fn a_slice_holds_the_new_messages_alone<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let slices = Slices::default();
    let deliver = async |messages: &[&Message]| -> Vec<Delivered> {
        engine.handle_batch::<S::All>(messages, &slices).await.iter().map(delivered).collect()
    };
    let plain = |id: &str| Message::new(id, []);
    assert_eq!(deliver(&[&plain("b"), &plain("a"), &plain("b")]).await, [Applied, Applied, Duplicate]);
    assert_eq!(deliver(&[&plain("a"), &plain("d"), &plain("c")]).await, [Duplicate, Applied, Applied]);
    assert_eq!(*slices.lock().unwrap(), [["b", "a"], ["d", "c"]]);
    slices.lock().unwrap().clear();

    // Then one by one.
    let fails = Message::new("fails", [Step::Fail]);
    let panics = Message::new("panics", [Step::Panic]);
    assert_eq!(deliver(&[&plain("e"), &fails, &plain("f")]).await, [Applied, Failed, Applied]);
    let outcomes = deliver(&[&plain("g"), &panics]).await;
    assert_eq!(outcomes, [Applied, Refused(ErrorKind::Panicked)]);
    let expected = [&["e", "fails", "f"][..], &["e"], &["fails"], &["f"], &["g", "panics"], &["g"], &["panics"]];
    assert_eq!(*slices.lock().unwrap(), expected);
    assert_eq!((db.number(EFFECTS).await, db.keys().await), (7, 7));
}

/// A neighbour's failure would have the effect again.
pub(super) async fn an_effect_outside_the_database_is_never_in_a_batch<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let messages = [message("e1"), Message::new("fails", [Step::Fail]), message("e2")];
    let outcomes = engine.handle_batch::<S::Outside>(&messages.each_ref(), &()).await;
    let outcomes: Vec<_> = outcomes.iter().map(delivered).collect();
    assert_eq!(outcomes, [Applied, Failed, Applied]);
    assert!(messages.iter().all(|message| message.runs.load(Ordering::SeqCst) == 1));
    assert_eq!(db.number(TRANSACTIONS).await, 2);
}

pub(super) async fn a_batch_that_is_dropped_leaves_nothing<S: Batches>(db: Arc<Db<S>>) {
    let engine = db.engine(1).await;
    let (reached, open) = super::points();
    let stuck = Message::new("stuck", [Step::Effect("effect"), Step::Reach(Arc::clone(&reached)), Step::Await(open)]);
    let messages = [message("e1"), stuck, message("e2")];
    let borrowed = messages.each_ref();
    tokio::select! {
        _ = deliver(&engine, &borrowed) => unreachable!("it waits"),
        () = super::reached(&reached) => {}
    }
    let again = [message("e1"), message("stuck"), message("e2")];
    assert!(deliver(&engine, &again.each_ref()).await.iter().all(|outcome| *outcome == Applied));
    assert_eq!((db.number(EFFECTS).await, db.keys().await), (3, 3));
}
