//! What differs between the databases, as far as tests care.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use idem_runtime::Store;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Pool, Sqlite};

/// A database of its own for one test, and how to open pools on it.
pub trait TestStore: Store {
    /// Where the test's database is, and what must live as long as the test.
    type Place: Send + Sync;

    /// Whether one failed statement dooms the transaction.
    const FAILED_STATEMENT_DOOMS: bool;
    /// A statement that fails like a serialization failure; `None` where there is no such thing.
    const CONTENTION: Option<&'static str>;
    /// Opens the transaction of a handler that ends ours and begins its own.
    const BEGIN: &'static str;
    /// Whether a constraint can be checked as late as at the commit.
    const DEFERS: bool;
    /// Tables for the handlers' effects.
    const TABLES: &'static str;

    fn create() -> BoxFuture<'static, Self::Place>;
    /// What another process needs to know to find the place.
    fn address(place: &Self::Place) -> String;
    /// The place at this address, for a process that did not make it.
    fn attach(address: &str) -> Self::Place;
    fn destroy(place: Self::Place) -> BoxFuture<'static, ()>;
    /// A pool on the test's database. `setup` is run on each new connection.
    fn open(place: &Self::Place, max: u32, setup: &'static str) -> BoxFuture<'static, Pool<Self>>;

    /// Runs SQL as it stands.
    fn run<'c>(conn: &'c mut Self::Connection, sql: &str) -> BoxFuture<'c, sqlx::Result<u64>>;
    /// How many prepared statements the connection keeps.
    fn cached_statements(conn: &Self::Connection) -> usize;
    /// Reads one number without a prepared statement; from PostgreSQL.
    fn raw_number<'c>(conn: &'c mut Self::Connection, sql: &str) -> BoxFuture<'c, i64>;
    /// Reads one number.
    fn number<'c>(conn: &'c mut Self::Connection, sql: &str) -> BoxFuture<'c, sqlx::Result<i64>>;
}

macro_rules! statements {
    () => {
        fn run<'c>(conn: &'c mut Self::Connection, sql: &str) -> BoxFuture<'c, sqlx::Result<u64>> {
            let sql = sql.to_owned();
            Box::pin(async move { Ok(sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await?.rows_affected()) })
        }

        fn raw_number<'c>(conn: &'c mut Self::Connection, sql: &str) -> BoxFuture<'c, i64> {
            let sql = sql.to_owned();
            Box::pin(async move {
                let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(conn).await.unwrap();
                sqlx::Row::try_get(&row, 0).unwrap()
            })
        }

        fn cached_statements(conn: &Self::Connection) -> usize {
            sqlx::Connection::cached_statements_size(conn)
        }

        fn number<'c>(conn: &'c mut Self::Connection, sql: &str) -> BoxFuture<'c, sqlx::Result<i64>> {
            let sql = sql.to_owned();
            Box::pin(async move { sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(conn).await })
        }
    };
}

/// A folder with a database file.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// Removes the folder; not there in a process that did not make it.
    owner: Option<tempfile::TempDir>,
}

impl TestStore for Sqlite {
    type Place = Folder;

    const FAILED_STATEMENT_DOOMS: bool = false;
    const CONTENTION: Option<&'static str> = None;
    const BEGIN: &'static str = "BEGIN";
    const DEFERS: bool = true;
    const TABLES: &'static str = "\
        CREATE TABLE effect (note TEXT NOT NULL);
        CREATE TABLE account (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
        INSERT INTO account VALUES (1, 0), (2, 0);
        CREATE TABLE parent (id INTEGER PRIMARY KEY);
        CREATE TABLE child (parent INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)";

    fn create() -> BoxFuture<'static, Self::Place> {
        Box::pin(async {
            let owner = tempfile::tempdir().unwrap();
            Folder { path: owner.path().to_owned(), owner: Some(owner) }
        })
    }

    fn address(place: &Self::Place) -> String {
        place.path.to_str().unwrap().to_owned()
    }

    fn attach(address: &str) -> Self::Place {
        Folder { path: address.into(), owner: None }
    }

    fn destroy(place: Self::Place) -> BoxFuture<'static, ()> {
        Box::pin(async { drop(place.owner) })
    }

    fn open(place: &Self::Place, max: u32, setup: &'static str) -> BoxFuture<'static, Pool<Self>> {
        let options = SqliteConnectOptions::new()
            .filename(place.path.join("test.sqlite"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // The suite measures behaviour, not the disk.
            .pragma("synchronous", "OFF");
        Box::pin(async move {
            let pool = SqlitePoolOptions::new()
                .max_connections(max)
                .after_connect(move |conn, _| Box::pin(async move { Self::run(conn, setup).await.map(drop) }));
            pool.connect_with(options).await.unwrap()
        })
    }

    statements!();
}

/// Whether `IDEM_SKIP` names the service; it is printed, and `tests/run` prints it again.
pub fn without_server(service: &str) -> bool {
    let skipped = std::env::var("IDEM_SKIP").is_ok_and(|list| list.split(',').any(|name| name.trim() == service));
    if skipped {
        #[allow(clippy::print_stderr, reason = "a skipped service is never skipped in silence")]
        {
            eprintln!("SKIPPED by IDEM_SKIP: {service}");
        }
    }
    skipped
}

#[cfg(feature = "databases")]
mod servers {
    use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
    use sqlx::{Connection, MySql, MySqlConnection, PgConnection, Postgres};

    use super::{AssertSqlSafe, BoxFuture, Pool, TestStore};

    fn url(variable: &str) -> String {
        std::env::var(variable)
            .unwrap_or_else(|_| panic!("{variable} is not set: run `tests/run`, which finds or starts the server"))
    }

    fn fresh_name() -> String {
        format!("idem_test_{}", uuid::Uuid::new_v4().simple())
    }

    impl TestStore for Postgres {
        /// The options of the server, and the name of the test's schema.
        type Place = (PgConnectOptions, String);

        const FAILED_STATEMENT_DOOMS: bool = true;
        const CONTENTION: Option<&'static str> =
            Some("DO $$ BEGIN RAISE EXCEPTION 'contention' USING ERRCODE = '40001'; END $$");
        const BEGIN: &'static str = "BEGIN";
        const DEFERS: bool = true;
        const TABLES: &'static str = "\
            CREATE TABLE effect (note text NOT NULL);
            CREATE TABLE account (id int PRIMARY KEY, cents bigint NOT NULL);
            INSERT INTO account VALUES (1, 0), (2, 0);
            CREATE TABLE parent (id int PRIMARY KEY);
            CREATE TABLE child (parent int REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)";

        fn create() -> BoxFuture<'static, Self::Place> {
            Box::pin(async {
                let name = fresh_name();
                let place = Self::attach(&name);
                let mut conn = PgConnection::connect_with(&place.0).await.unwrap();
                Self::run(&mut conn, &format!("CREATE SCHEMA {name}")).await.unwrap();
                place
            })
        }

        fn address((_, name): &Self::Place) -> String {
            name.clone()
        }

        fn attach(name: &str) -> Self::Place {
            let options: PgConnectOptions = url("IDEM_TEST_PG_URL").parse().unwrap();
            (options.application_name(name).options([("search_path", name)]), name.to_owned())
        }

        fn destroy((options, name): Self::Place) -> BoxFuture<'static, ()> {
            Box::pin(async move {
                let mut conn = PgConnection::connect_with(&options).await.unwrap();
                Self::run(&mut conn, &format!("DROP SCHEMA {name} CASCADE")).await.unwrap();
            })
        }

        fn open((options, _): &Self::Place, max: u32, setup: &'static str) -> BoxFuture<'static, Pool<Self>> {
            let options = options.clone();
            Box::pin(async move {
                let pool = PgPoolOptions::new()
                    .max_connections(max)
                    .after_connect(move |conn, _| Box::pin(async move { Self::run(conn, setup).await.map(drop) }));
                pool.connect_with(options).await.unwrap()
            })
        }

        statements!();
    }

    impl TestStore for MySql {
        /// The options of the server, and the name of the test's database.
        type Place = (MySqlConnectOptions, String);

        const FAILED_STATEMENT_DOOMS: bool = false;
        const CONTENTION: Option<&'static str> =
            Some("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'contention'");
        const BEGIN: &'static str = "START TRANSACTION";
        const DEFERS: bool = false;
        const TABLES: &'static str = "\
            CREATE TABLE effect (note VARCHAR(200) NOT NULL);
            CREATE TABLE account (id INT PRIMARY KEY, cents BIGINT NOT NULL);
            INSERT INTO account VALUES (1, 0), (2, 0)";

        fn create() -> BoxFuture<'static, Self::Place> {
            Box::pin(async {
                let name = fresh_name();
                let options: MySqlConnectOptions = url("IDEM_TEST_MYSQL_URL").parse().unwrap();
                let mut conn = MySqlConnection::connect_with(&options).await.unwrap();
                // The collation that folds case and accents, which keys must not notice.
                let create = format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci");
                Self::run(&mut conn, &create).await.unwrap();
                Self::attach(&name)
            })
        }

        fn address((_, name): &Self::Place) -> String {
            name.clone()
        }

        fn attach(name: &str) -> Self::Place {
            let options: MySqlConnectOptions = url("IDEM_TEST_MYSQL_URL").parse().unwrap();
            (options.database(name), name.to_owned())
        }

        fn destroy((options, name): Self::Place) -> BoxFuture<'static, ()> {
            Box::pin(async move {
                let mut conn = MySqlConnection::connect_with(&options).await.unwrap();
                Self::run(&mut conn, &format!("DROP DATABASE {name}")).await.unwrap();
            })
        }

        fn open((options, _): &Self::Place, max: u32, setup: &'static str) -> BoxFuture<'static, Pool<Self>> {
            let options = options.clone();
            Box::pin(async move {
                let pool = MySqlPoolOptions::new().max_connections(max).after_connect(move |conn, _| {
                    Box::pin(
                        async move { if setup.is_empty() { Ok(()) } else { Self::run(conn, setup).await.map(drop) } },
                    )
                });
                pool.connect_with(options).await.unwrap()
            })
        }

        statements!();
    }
}
