//! `idem_runtime::cli` as its operator runs it: the example `ops` as a process, and a judge who knows only SQL.

mod catalog;
mod doctor;
mod documented;
mod forget;
mod hold;
mod migrate;
mod purge;
#[cfg(feature = "databases")]
mod servers;
mod show;
#[cfg(target_os = "linux")]
mod terminal;
mod usage;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| crate::example::build("ops"));

/// What one run of the program left behind.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Run {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The one JSON document that was printed.
    fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(document["version"], 1, "{self:?}");
        assert_eq!(document["exit_code"], self.code.unwrap(), "{self:?}");
        document
    }

    /// Checks the exit code, and says what was printed when it is another.
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "{text:?} is not in {self:?}");
        self
    }

    fn complains(self, text: &str) -> Self {
        assert!(self.err.contains(text), "{text:?} is not in {self:?}");
        self
    }
}

/// A folder with an SQLite file.
struct Db {
    folder: tempfile::TempDir,
}

impl Db {
    /// A database without any tables.
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A database with the library's tables.
    fn migrated() -> Self {
        let db = Self::empty();
        db.run(&["migrate"]).exits(0);
        db
    }

    fn file(&self) -> PathBuf {
        self.path("ops.db")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self) -> String {
        format!("sqlite:{}?mode=rwc", self.file().display())
    }

    fn run(&self, args: &[&str]) -> Run {
        run_in(self.folder.path(), &self.url(), args)
    }

    async fn execute(&self, sql: &str) {
        let mut conn = SqliteConnectOptions::new().filename(self.file()).connect().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    }

    async fn number(&self, sql: &str) -> i64 {
        let mut conn = SqliteConnectOptions::new().filename(self.file()).connect().await.unwrap();
        let number = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut conn).await.unwrap();
        conn.close().await.unwrap();
        number
    }

    /// A key as the engine stores it, so many seconds ago.
    async fn key(&self, handler: &str, key: &str, age_secs: i64) {
        let sql = format!(
            "INSERT INTO idem_key (handler, event_key, claimed_at, claim) \
             VALUES ('{handler}', CAST('{key}' AS BLOB), (unixepoch() - {age_secs}) * 1000, 1)"
        );
        self.execute(&sql).await;
    }

    /// What a node recorded of a handler when it started, two days ago.
    async fn recorded(&self, application: &str, handler: &str, key: &str, retention_secs: i64, highest_age_secs: i64) {
        let sql = format!(
            "INSERT INTO idem_handler (application, handler, key_text, retention_secs, first_seen_at, last_seen_at, \
             highest_duplicate_age_secs) VALUES ('{application}', '{handler}', '{key}', {retention_secs}, \
             (unixepoch() - 2 * 86400) * 1000, (unixepoch() - 2 * 86400) * 1000, {highest_age_secs})"
        );
        self.execute(&sql).await;
    }
}

fn run_in(folder: &Path, url: &str, args: &[&str]) -> Run {
    let output = Command::new(&*PROGRAM)
        .current_dir(folder)
        .args(["--db", url])
        .args(args)
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .env("USER", "olga")
        .output();
    Run::of(output.unwrap())
}
