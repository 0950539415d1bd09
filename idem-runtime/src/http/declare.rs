//! What the declarations of both kinds of routes have in common.

pub(super) const fn is_name(name: &str) -> bool {
    let (bytes, mut index) = (name.as_bytes(), 0);
    while index < bytes.len() {
        if !(bytes[index].is_ascii_alphanumeric() || matches!(bytes[index], b'.' | b'_' | b':' | b'/' | b'-')) {
            return false;
        }
        index += 1;
    }
    !bytes.is_empty() && bytes.len() <= 128
}

/// Upper-case methods with commas between them, a space, and a path.
pub(super) const fn is_route(route: &str) -> bool {
    let (bytes, mut index) = (route.as_bytes(), 0);
    while index < bytes.len() && (bytes[index].is_ascii_uppercase() || (bytes[index] == b',' && index > 0)) {
        index += 1;
    }
    index > 0 && index + 1 < bytes.len() && bytes[index] == b' ' && bytes[index + 1] == b'/'
}

/// Declares the HTTP routes of a program whose requests are applied once, so that the purge and the catalog know them.
///
/// ```
/// use idem_runtime::{KeyedRoute, WebhookRoute, http_route};
///
/// http_route! {
///     /// Creates a payment.
///     pub static CREATE_PAYMENT: KeyedRoute =
///         KeyedRoute::new("create_payment", "POST /payments").retention("24h").scope("account");
///
///     /// Stores the events of Stripe's, to be applied later.
///     pub static STRIPE: WebhookRoute = WebhookRoute::new("stripe", "POST /webhook", "Stripe").accept("30d");
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! http_route {
    ($($(#[doc = $doc:literal])* $vis:vis static $name:ident: $type:ty = $route:expr;)+) => {$(
        $(#[doc = $doc])*
        $vis static $name: $type = ($route).at(
            $crate::Place::new(::core::concat!(::core::module_path!(), "::", ::core::stringify!($name)), ::core::file!(), ::core::line!()),
            &[$($doc),*],
        );

        const _: () = {
            $crate::__private::inventory::submit! {
                $crate::__private::RegisteredEndpoint { endpoint: $name.endpoint(), keys: $name.keys() }
            }
        };
    )+};
}
