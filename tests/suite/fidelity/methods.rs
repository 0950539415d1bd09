//! Handlers with a receiver.

use std::sync::Arc;

use idem_runtime::{Registry, idempotent};
use idem_tests::Db;
use sqlx::{Sqlite, SqliteConnection, Transaction};

use super::{Paid, applies_once, paid, write};

#[derive(Debug, Clone)]
struct Ledger {
    prefix: String,
}

impl Ledger {
    #[idempotent(key(msg.id), retention = "1d", name = "methods.by_ref")]
    async fn by_ref(&self, tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> sqlx::Result<usize> {
        write(tx, &format!("{} {}", self.prefix, msg.id)).await?;
        Ok(self.prefix.len())
    }

    #[idempotent(key(msg.id), retention = "1d", name = "methods.by_arc")]
    async fn by_arc(self: Arc<Self>, tx: &mut SqliteConnection, msg: &Paid) -> sqlx::Result<()> {
        write(tx, &format!("{} {}", self.prefix, msg.id)).await
    }

    #[idempotent(key(msg.id), retention = "1d", name = "methods.by_value")]
    async fn by_value(mut self, tx: &mut SqliteConnection, msg: Paid) -> sqlx::Result<()> {
        self.prefix.push_str(" by value");
        write(tx, &format!("{} {}", self.prefix, msg.id)).await
    }

    #[idempotent(key(msg.id), retention = "1d", name = "methods.by_mut")]
    async fn by_mut(&mut self, tx: &mut SqliteConnection, msg: &Paid) -> sqlx::Result<()> {
        self.prefix.push('!');
        write(tx, &format!("{} {}", self.prefix, msg.id)).await
    }
}

#[derive(Debug)]
struct Sink<T, const N: usize> {
    names: [T; N],
}

impl<T: AsRef<str> + Sync, const N: usize> Sink<T, N> {
    #[idempotent(key(id), retention = "1d", name = "methods.generic")]
    async fn write_all<I>(&self, tx: &mut Transaction<'_, Sqlite>, id: I) -> sqlx::Result<usize>
    where
        I: idem_runtime::KeyPart + Send + Sync,
    {
        for name in &self.names {
            write(tx, name.as_ref()).await?;
        }
        Ok(N)
    }
}

#[tokio::test]
async fn methods_apply_once_whatever_their_receiver_is() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(1).await;
        let mut ledger = Ledger { prefix: "ref".into() };
        applies_once!(db, "ref e1", ledger.by_ref(&engine, &paid("e1")));
        let shared = Arc::new(Ledger { prefix: "arc".into() });
        applies_once!(db, "arc e1", Arc::clone(&shared).by_arc(&engine, &paid("e1")));
        applies_once!(db, "ref by value e1", ledger.clone().by_value(&engine, paid("e1")));
        applies_once!(db, "ref! e1", ledger.by_mut(&engine, &paid("e1")));
        let sink = Sink { names: ["one", "two"] };
        applies_once!(db, "one", sink.write_all(&engine, 7_u64));
        assert_eq!((db.effects("two").await, db.keys().await), (1, 5));
    })
    .await;
}

#[tokio::test]
async fn a_method_in_a_transaction_of_the_callers_writes_no_key() {
    Db::<Sqlite>::test(async |db| {
        let pool = db.pool(1).await;
        let mut tx = pool.begin().await.unwrap();
        let ledger = Ledger { prefix: "plain".into() };
        assert_eq!(ledger.by_ref_in(&mut tx, &paid("e1")).await.unwrap(), 5);
        tx.commit().await.unwrap();
        assert_eq!((db.effects("plain e1").await, db.keys().await), (1, 0));
    })
    .await;
}

/// A generic method that nobody calls is registered like any other.
#[test]
fn methods_are_registered() {
    let registry = Registry::load().unwrap();
    let meta = registry.get("methods.generic").unwrap();
    assert!(meta.place.function.ends_with("methods::write_all"), "{}", meta.place);
    assert!(registry.get("methods.by_arc").is_some());
}
