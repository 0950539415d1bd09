//! A shop's handlers: one of each kind, and of each picture.

use idem_runtime::{Allowed, External, Guard, HandlerMeta, Place, Policy, Retention, Semantics, Window};

const PAYMENTS: Policy =
    Policy::retention("7d").redelivery([("broker", "1d"), ("dead_letter", "3d"), ("replay", "2d")]);

pub(super) const CREDIT: HandlerMeta = HandlerMeta::new(
    "billing/credit-balance",
    Place::new("billing::payments::credit_balance", "billing/src/payments.rs", 41),
    Semantics::Idempotent,
)
.pinned()
.describe("Books an approved payment on the customer's balance.", "PaymentApproved")
.policy(&["msg.order_id", "msg.kind"], "PAYMENTS", &PAYMENTS)
.fingerprint(&["msg.amount", "msg.currency"])
.occurred_at("msg.approved_at")
.external(&[External::new(
    "ledger service",
    Guard::ProviderKey,
    "a booking that the ledger takes and whose answer is lost is found by its key",
)
.window(Retention::days(30))]);

pub(super) const SHIP: HandlerMeta = HandlerMeta::new(
    "ship_order",
    Place::new("shipping::ship_order", "shipping/src/lib.rs", 12),
    Semantics::Idempotent,
)
.describe("Orders the parcel of a paid order.", "OrderPaid<'_>")
.key(&["msg.order_id"], Retention::days(3))
.redelivery(&[Window::new("broker", Retention::hours(36)), Window::new("operator", Retention::days(1))])
.replay()
.external(&[
    External::new("carrier", Guard::Lookup, "two parcels, if the carrier answers the look-up from a stale replica")
        .window(Retention::days(2))
        .lookup("GET /parcels?reference={order_id}"),
    External::new("warehouse printer", Guard::None, "a label is printed twice and thrown away by hand"),
])
.allowed(&[Allowed::new("attempt", "the shop's `delivery_id` is the order's own number, and no attempt's")]);

pub(super) const IMPORT: HandlerMeta = HandlerMeta::new(
    "import_row",
    Place::new("catalogue::import::Importer::import_row", "catalogue/src/import.rs", 77),
    Semantics::Idempotent,
)
.describe("", "Row")
.key(&["row.file", "row.number"], Retention::days(14));

pub(super) const WEBHOOK: HandlerMeta = HandlerMeta::new(
    "webhook:refund",
    Place::new("billing::webhooks::refund", "billing/src/webhooks.rs", 9),
    Semantics::Idempotent,
)
.pinned()
.describe("Pays a refund back, in the currency it was paid in: größer als null, «immer».", "RefundRequested")
.key(&["msg.refund_id"], Retention::days(35))
.redelivery(&[
    Window::new("provider_retries", Retention::days(3)),
    Window::new("queue", Retention::hours(12)),
    Window::new("dead_letter", Retention::hours(6)),
    Window::new("backup_restore", Retention::days(14)),
    Window::new("accounting_replay", Retention::days(16)),
])
.occurred_at("msg.requested_at")
.external(&[External::new(
    "card network with a very long name",
    Guard::ProviderKey,
    "none that is known within the window",
)
.window(Retention::days(365))]);

pub(super) const RECEIPT: HandlerMeta = HandlerMeta::new(
    "send_receipt",
    Place::new("mail::send_receipt", "mail/src/receipt.rs", 5),
    Semantics::AtMostOnce {
        reason: "a second receipt would look like a second charge",
        loss: "the customer gets no receipt, and can download it from the order's page",
    },
)
.describe("Mails the receipt.", "OrderPaid<'_>")
.external(&[External::new("mail relay", Guard::None, "the mail is lost when the relay is down")]);

pub(super) const PRICE: HandlerMeta = HandlerMeta::new(
    "set_price",
    Place::new("catalogue::set_price", "catalogue/src/price.rs", 30),
    Semantics::NaturallyIdempotent {
        reason: "it writes the price of one article, with the version that the event names",
    },
)
.pinned()
.describe("Sets an article's price.", "PriceChanged")
.external(&[External::new("search index", Guard::Outbox, "the index is behind by as long as the relay is down")]);

pub(super) const ALL: [HandlerMeta; 6] = [WEBHOOK, SHIP, CREDIT, RECEIPT, IMPORT, PRICE];
