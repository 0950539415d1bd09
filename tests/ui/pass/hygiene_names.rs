//! Parameters and handlers with the names that generated code uses itself, under each attribute.

#![deny(warnings)]
#![allow(non_snake_case)]

macro_rules! handlers {
    ($($name:ident)*) => {
        mod keyed {$(
            #[idem_runtime::idempotent(key($name.0), fingerprint($name.1), retention = "7d")]
            pub(crate) async fn $name(_db: &mut super::Tx<'_>, $name: &(u8, u8)) -> sqlx::Result<u8> {
                Ok($name.0)
            }
        )*}

        mod natural {$(
            #[idem_runtime::naturally_idempotent(reason = "sets the price to the message's value")]
            pub(crate) async fn $name($name: &mut super::Tx<'_>, _msg: (u8, u8)) -> sqlx::Result<()> {
                let _ = $name;
                Ok(())
            }
        )*}

        mod natural_message {$(
            #[idem_runtime::naturally_idempotent(reason = "sets the price to the message's value")]
            pub(crate) async fn $name(_db: &mut super::Tx<'_>, $name: (u8, u8)) -> sqlx::Result<u8> {
                Ok($name.0)
            }
        )*}

        mod once {$(
            #[idem_runtime::at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
            pub(crate) async fn $name($name: &u8) -> sqlx::Result<u8> {
                Ok(*$name)
            }
        )*}

        mod once_with_state {$(
            #[idem_runtime::at_most_once(reason = "the next ping tells as much", loss = "a single ping")]
            pub(crate) async fn $name(_msg: String, $name: &u8) -> sqlx::Result<u8> {
                Ok(*$name)
            }
        )*}

        mod methods {
            pub(crate) struct Ledger;

            impl Ledger {$(
                #[idem_runtime::idempotent(key($name.0), retention = "7d", name = "ledger")]
                pub(crate) async fn $name(&self, _db: &mut super::Tx<'_>, $name: (u8, String)) -> sqlx::Result<String> {
                    let _ = self;
                    Ok($name.1)
                }
            )*}
        }

        fn main() {
            $(
                assert_eq!(keyed::$name::key(&(7, 8)).unwrap().as_str(), "1/i:7");
                let _ = (natural::$name::META, natural_message::$name::META);
                let _ = (once::$name::META, once_with_state::$name::META);
                let _ = methods::Ledger::$name;
            )*
        }
    };
}

type Tx<'c> = sqlx::Transaction<'c, sqlx::Sqlite>;

handlers! {
    key engine message state attempt plan tx result meta body error clone receiver run pool conn value S E T Store
    facts codec cause reason loss apply call of_result repeatable store handle r#type r#gen r#dyn
}
