//! The transaction that people write themselves.

use futures_util::future::BoxFuture;
use idem_tests::TestStore;
use sqlx::{Connection, Pool, Sqlite, SqliteConnection};

/// The hand-written delivery of a store.
pub(crate) trait ByHand: TestStore {
    const ACCOUNTS: &'static str;
    /// Gives a connection a bound for its lock waits, where that spares the engine from doing so.
    const BOUNDED: &'static str;

    /// SQL that inserts so many keys.
    fn fill(keys: &str) -> String;

    fn effect(conn: &mut Self::Connection, account: i32) -> BoxFuture<'_, sqlx::Result<()>>;

    /// Claim, effect, commit; says whether the event was new. `proven` makes sure before the commit that the key is still
    /// there, by reading it.
    fn deliver<'a>(pool: &'a Pool<Self>, id: &'a str, account: i32, proven: bool) -> BoxFuture<'a, sqlx::Result<bool>>;
}

impl ByHand for Sqlite {
    const BOUNDED: &'static str = "";
    const ACCOUNTS: &'static str = "\
        WITH RECURSIVE more (id) AS (SELECT 3 UNION ALL SELECT id + 1 FROM more WHERE id < 1000)
        INSERT INTO account SELECT id, 0 FROM more";

    fn fill(keys: &str) -> String {
        format!(
            "WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < {keys})
             INSERT INTO idem_key (handler, event_key, claimed_at, claim)
             SELECT 'bench.credit', CAST('1/s:old-' || hex(randomblob(16)) AS BLOB), unixepoch() * 1000, n FROM more"
        )
    }

    fn effect(conn: &mut SqliteConnection, account: i32) -> BoxFuture<'_, sqlx::Result<()>> {
        Box::pin(async move {
            let update = "UPDATE account SET cents = cents + 1 WHERE id = ?";
            sqlx::query(update).bind(account).execute(conn).await.map(drop)
        })
    }

    fn deliver<'a>(pool: &'a Pool<Self>, id: &'a str, account: i32, proven: bool) -> BoxFuture<'a, sqlx::Result<bool>> {
        Box::pin(async move {
            let mut conn = pool.acquire().await?;
            let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
            let insert = "INSERT INTO idem_key (handler, event_key, claimed_at, claim) \
                          VALUES ('bench.credit', ?, unixepoch() * 1000, 1) ON CONFLICT DO NOTHING";
            if sqlx::query(insert).bind(id.as_bytes()).execute(&mut *tx).await?.rows_affected() == 0 {
                tx.rollback().await?;
                return Ok(false);
            }
            Self::effect(&mut tx, account).await?;
            if proven {
                let prove = "SELECT claim FROM idem_key WHERE handler = 'bench.credit' AND event_key = ?";
                sqlx::query(prove).bind(id.as_bytes()).fetch_one(&mut *tx).await?;
            }
            tx.commit().await?;
            Ok(true)
        })
    }
}

#[cfg(feature = "databases")]
impl ByHand for sqlx::Postgres {
    const BOUNDED: &'static str = "SET lock_timeout = '5s'";
    const ACCOUNTS: &'static str = "INSERT INTO account SELECT id, 0 FROM generate_series(3, 1000) AS id";

    fn fill(keys: &str) -> String {
        format!(
            "INSERT INTO idem_key (handler, event_key, claimed_at, claim)
             SELECT 'bench.credit', convert_to('1/s:old-' || md5(n::text), 'UTF8'), now(), n
             FROM generate_series(1, {keys}) AS n;
             ANALYZE idem_key; CHECKPOINT"
        )
    }

    fn effect(conn: &mut sqlx::PgConnection, account: i32) -> BoxFuture<'_, sqlx::Result<()>> {
        Box::pin(async move {
            let update = "UPDATE account SET cents = cents + 1 WHERE id = $1";
            sqlx::query(update).bind(account).execute(conn).await.map(drop)
        })
    }

    fn deliver<'a>(pool: &'a Pool<Self>, id: &'a str, account: i32, proven: bool) -> BoxFuture<'a, sqlx::Result<bool>> {
        Box::pin(async move {
            let mut tx = pool.begin().await?;
            let insert = "INSERT INTO idem_key (handler, event_key, claim) VALUES ('bench.credit', $1, 1) \
                          ON CONFLICT DO NOTHING";
            if sqlx::query(insert).bind(id.as_bytes()).execute(&mut *tx).await?.rows_affected() == 0 {
                tx.rollback().await?;
                return Ok(false);
            }
            Self::effect(&mut tx, account).await?;
            if proven {
                let prove = "SELECT claim FROM idem_key WHERE handler = 'bench.credit' AND event_key = $1";
                sqlx::query(prove).bind(id.as_bytes()).fetch_one(&mut *tx).await?;
            }
            tx.commit().await?;
            Ok(true)
        })
    }
}
