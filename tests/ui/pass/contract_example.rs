//! The line of the contract, in both forms, and a trailing comma.

use idem_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

struct PaymentApproved {
    order_id: String,
    kind: String,
}

#[idempotent(key = "msg.order_id, msg.kind", retention = "7d")]
async fn credit_balance(_tx: &mut Transaction<'_, Sqlite>, msg: &PaymentApproved) -> Result<(), sqlx::Error> {
    let _ = (&msg.order_id, &msg.kind);
    Ok(())
}

#[idempotent(key(msg.order_id, msg.kind,), retention = "7d", name = "native",)]
async fn credit_natively(_tx: &mut Transaction<'_, Sqlite>, msg: &PaymentApproved) -> Result<(), sqlx::Error> {
    let _ = (&msg.order_id, &msg.kind);
    Ok(())
}

fn main() {
    let msg = PaymentApproved { order_id: "ord_1".into(), kind: "paid".into() };
    let (text, native) = (credit_balance::key(&msg).unwrap(), credit_natively::key(&msg).unwrap());
    assert_eq!(text, native);
    assert_eq!(text.as_str(), "1/s:ord_1/s:paid");
    assert_eq!(credit_balance::META.key, credit_natively::META.key);
    let _ = (credit_balance, credit_natively);
}
