//! `migrate`: the tables of this version.

use serde::Serialize;

use super::Target;
use super::opt;
use super::output::{Paint, Report};
use super::stop::{Exit, Stop};
use crate::error::{Error, ErrorKind};
use crate::store::{Store, schema};

#[derive(Debug, Serialize)]
pub(super) struct Migrated {
    /// The version that was there; `null` without tables.
    was: Option<i64>,
    /// The version that is there now.
    is: Option<i64>,
    /// The version that this program needs.
    wanted: i64,
    /// Whether it was only looked at.
    check: bool,
}

pub(super) async fn run<S: Store>(target: Target<S>, options: &opt::Migrate) -> Result<Migrated, Stop> {
    let wanted = schema::wanted::<S>();
    let was = found(&target).await?;
    if options.check {
        return Ok(Migrated { was, is: was, wanted, check: true });
    }
    // Tables that are newer are not touched, and `check` says what to do.
    if was.is_none_or(|was| was < wanted) {
        schema::migrate(target.pool()).await.map_err(failed)?;
    } else {
        schema::check::<S>(&mut *target.connection().await?).await?;
    }
    Ok(Migrated { was, is: found(&target).await?, wanted, check: false })
}

fn failed(error: Error) -> Stop {
    match error.kind() {
        ErrorKind::Schema => Stop {
            exit: Exit::Failed,
            ..Stop::then(
                &error,
                "no key is lost, and an engine starts only once it is through; mend the cause, and run `migrate` again \
                 (on MySQL, where tables are not transactional, what it had begun may have to be removed by hand)",
            )
        },
        _ => Stop::from(error),
    }
}

async fn found<S: Store>(target: &Target<S>) -> Result<Option<i64>, Stop> {
    Ok(schema::found::<S>(&mut *target.connection().await?).await?)
}

impl Report for Migrated {
    const COMMAND: &'static str = "migrate";

    fn text(&self, _: Paint) -> String {
        let name =
            |version: Option<i64>| version.map_or_else(|| "none".to_owned(), |version| format!("version {version}"));
        let (was, wanted) = (name(self.was), self.wanted);
        match (self.check, self.was == self.is) {
            (false, true) => format!("the tables have version {wanted}, as they should; nothing was changed"),
            (false, false) => format!("the tables have version {wanted} now; before: {was}"),
            (true, _) if self.was == Some(wanted) => format!("the tables have version {wanted}, as they should"),
            (true, _) if self.was > Some(wanted) => format!(
                "the tables have {was}, and this program knows only version {wanted}: deploy the newer release here too"
            ),
            (true, _) => format!("tables: {was}; version {wanted} is needed: run `migrate`"),
        }
    }

    fn exit(&self) -> Exit {
        if self.is == Some(self.wanted) { Exit::Fine } else { Exit::No }
    }
}
