//! Handlers in the body of a function, beside local types and constants, and in a block.

#![deny(warnings)]

fn main() {
    use idem_runtime::{Retention, at_most_once, idempotent, naturally_idempotent};
    use sqlx::{Sqlite, Transaction};

    const WINDOW: Retention = Retention::days(3);

    struct Local {
        id: u8,
    }

    #[idempotent(key(msg.id), retention = WINDOW)]
    async fn keyed(_tx: &mut Transaction<'_, Sqlite>, msg: &Local) -> Result<(), sqlx::Error> {
        Ok(())
    }

    #[naturally_idempotent(reason = "sets the price to the message's value")]
    async fn natural(_tx: &mut Transaction<'_, Sqlite>, msg: &Local) -> Result<u8, sqlx::Error> {
        Ok(msg.id)
    }

    #[at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
    async fn ping(msg: &Local) -> Result<u8, std::fmt::Error> {
        Ok(msg.id)
    }

    let in_a_block = {
        #[idempotent(key(msg.id), retention = WINDOW, name = "in_a_block")]
        async fn keyed(_tx: &mut Transaction<'_, Sqlite>, msg: &Local) -> Result<(), sqlx::Error> {
            Ok(())
        }
        keyed::META
    };

    assert_eq!(keyed::key(&Local { id: 7 }).unwrap().as_str(), "1/i:7");
    assert_eq!([keyed::META.name, in_a_block.name], ["keyed", "in_a_block"]);
    let _ = (natural::META, ping::META);
}
