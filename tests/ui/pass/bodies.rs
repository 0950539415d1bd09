//! Bodies with early returns, `?`, closures, nested async blocks, loops, and items of their own.

#![deny(warnings)]

use idem_runtime::{at_most_once, idempotent, naturally_idempotent};
use sqlx::{Sqlite, Transaction};

#[derive(Debug)]
enum Failed {
    Database(sqlx::Error),
    Number(std::num::ParseIntError),
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<std::num::ParseIntError> for Failed {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::Number(error)
    }
}

#[idempotent(key(id), retention = "7d")]
async fn ways_out(tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<u32, Failed> {
    if id.is_empty() {
        return Ok(0);
    }
    let parse = |text: &str| text.parse::<u32>();
    let number = async { parse(id) }.await?;
    let later = async move || -> Result<u32, Failed> { Ok(number + parse(id)?) };
    let found = 'search: {
        for n in 0..number {
            if n == 7 {
                break 'search n;
            }
        }
        return Err(sqlx::Error::RowNotFound.into());
    };
    sqlx::query("SELECT ?").bind(found).execute(&mut **tx).await?;
    let Ok(sum) = later().await else { return Ok(found) };
    loop {
        match sum {
            0 => continue,
            1 => break Ok(1),
            _ => return Ok(sum),
        }
    }
}

#[idempotent(key(id), retention = "7d")]
async fn helped(tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    async fn help(tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
        sqlx::query("SELECT ?").bind(id).execute(&mut **tx).await.map(drop)
    }
    struct Note<'a>(&'a str);
    impl Note<'_> {
        fn new(text: &str) -> Note<'_> {
            Note(text)
        }
    }
    help(tx, Note::new(id).0).await
}

#[naturally_idempotent(reason = "sets the price to the message's value")]
async fn natural(tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<u32, Failed> {
    let number = id.parse()?;
    sqlx::query("SELECT ?").bind(number).execute(&mut **tx).await?;
    Ok(number)
}

#[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
async fn ping(id: &str) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    if id == "localhost" {
        Err("nobody there")?;
    }
    Ok(id.parse()?)
}

#[idempotent(key(id), retention = "7d")]
async fn never(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    std::future::pending().await
}

#[idempotent(key(id), retention = "7d")]
async fn todo(_tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), sqlx::Error> {
    todo!()
}

fn main() {
    let _ = (ways_out::META, helped::META, natural::META, ping::META, never::META, todo::META);
}
