//! What is logged, and at which level: `docs/telemetry.md` is the contract.

use futures_util::FutureExt;
use idem_runtime::{ErrorKind, Handler};
use idem_tests::{Db, Delivered, Logs, Message, Step, deliver, perform};
use sqlx::Sqlite;
use tracing::Level;

use crate::conformance::{Ping, natural, ping};

/// Keys can be personal data: they appear at debug level only, errors that need a human do without them.
#[tokio::test]
async fn keys_are_logged_at_debug_level_only() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let (logs, _guard) = Logs::capture();
        let key = "maria@example.com";
        assert_eq!(deliver(&engine, &Message::new(key, [Step::Effect("e")])).await, Delivered::Applied);
        assert_eq!(deliver(&engine, &Message::new(key, [])).await, Delivered::Duplicate);
        let failing = format!("{key}.br");
        assert_eq!(deliver(&engine, &Message::new(failing.as_str(), [Step::Fail])).await, Delivered::Failed);
        let escaping = Message::new(failing.as_str(), [Step::Sql("ROLLBACK".into())]);
        assert_eq!(deliver(&engine, &escaping).await, Delivered::Refused(ErrorKind::Escaped));
        assert_eq!(deliver(&engine, &Message::new("", [])).await, Delivered::Refused(ErrorKind::InvalidKey));

        let debug = logs.up_to(Level::DEBUG);
        for outcome in ["outcome=\"applied\"", "outcome=\"duplicate\"", "outcome=\"failed\"", "outcome=Escaped"] {
            let found =
                debug.iter().any(|line| line.starts_with("idem ") && line.contains(outcome) && line.contains(key));
            assert!(found, "{outcome}: {debug:#?}");
        }
        let urgent: Vec<String> =
            logs.up_to(Level::INFO).into_iter().filter(|line| line.starts_with("idem ")).collect();
        assert!(urgent.iter().all(|line| !line.contains("maria")), "{urgent:#?}");
        assert!(urgent.iter().any(|line| line.contains("handler=\"perform\"") && line.contains("store=\"SQLite\"")));
        assert!(urgent.iter().any(|line| line.contains("kind=Escaped") && line.contains("ended its own transaction")));
        assert!(urgent.iter().any(|line| line.contains("kind=InvalidKey")));
    })
    .await;
}

/// No event is lost without a word, and the word is not its content.
#[tokio::test]
async fn every_loss_is_a_warning() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let (logs, _guard) = Logs::capture();
        assert!(ping(&engine, &Ping::Answered(7)).await.is_ok());
        assert!(natural(&engine, &Message::new("k1", [])).await.is_ok());
        let warnings =
            || logs.up_to(Level::WARN).into_iter().filter(|line| line.starts_with("idem ")).collect::<Vec<_>>();
        assert_eq!(warnings(), [""; 0]);
        let debug = logs.up_to(Level::DEBUG);
        let ended: Vec<_> = debug.iter().filter(|line| line.contains("delivery ended")).collect();
        assert!(
            ended.len() == 2 && ended.iter().all(|line| line.contains("applied") && !line.contains("key")),
            "{ended:?}"
        );

        assert!(ping(&engine, &Ping::Failed).await.is_err());
        assert!(ping(&engine, &Ping::Panicked("maria@example.com")).await.is_err());
        assert!(ping(&engine, &Ping::Hung).now_or_never().is_none());
        // Called by a consumer that is stopped before it polls.
        drop(<ping as Handler<Sqlite>>::call(&engine, &Ping::Answered(7), &()));
        let warnings = warnings();
        assert_eq!(warnings.len(), 4, "{warnings:#?}");
        for (line, cause) in warnings.iter().zip(["cause=Failed", "cause=Panicked", "cause=CutOff", "cause=CutOff"]) {
            let told = ["the event is lost", "handler=\"tests.ping\"", "loss=\"a single ping\"", cause];
            assert!(told.iter().all(|part| line.contains(part)) && !line.contains("maria"), "{line}");
        }
    })
    .await;
}

/// What the reader of an error at night is told: what happened, to whom, what is stored, what to do.
#[tokio::test]
async fn errors_say_what_happened_to_whom_and_what_to_do() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let failed = perform(&engine, &Message::new("ord_1", [Step::Fail])).await.unwrap_err();
        assert_eq!(
            failed.to_string(),
            "handler `perform`, key `1/s:ord_1`: the handler returned an error; its transaction was rolled back, nothing \
             is stored, and a redelivery runs it again"
        );
        let panicked = perform(&engine, &Message::new("ord_1", [Step::Panic])).await.unwrap_err();
        assert_eq!(
            panicked.to_string(),
            "handler `perform`, key `1/s:ord_1`: the handler panicked: the handler panics, as told; its transaction was \
             rolled back, nothing is stored; retry the delivery"
        );
        let nameless = perform(&engine, &Message::new("", [])).await.unwrap_err();
        assert_eq!(
            nameless.to_string(),
            "handler `perform`: the event has no usable key; nothing was stored; dead-letter it, and have the producer send \
             its identifier"
        );
    })
    .await;
}
