//! What must be one step at the server, in Lua.

use std::sync::LazyLock;

use redis::Script;

/// A settlement was made.
pub(super) const DONE: i64 = 1;

/// It was not, since the entry is not in the stream any more. `0` says that the delivery is not ours any more.
pub(super) const GONE: i64 = 2;

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident: $($file:literal)+;)+) => {$(
        $(#[$doc])*
        pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!(concat!("lua/", $file, ".lua"))),+)));
    )+};
}

scripts! {
    /// Acknowledges.
    ACK: "held" "ack";
    /// Gives back to anybody, at once or later.
    GIVE: "held" "give";
    /// Begins the lease anew.
    EXTEND: "held" "extend";
    /// Stores a dead letter, then acknowledges.
    BURY: "held" "bury";
    /// Takes what is given back or abandoned.
    CLAIM: "claim";
    /// Counts what is not settled.
    LAG: "lag";
    /// Removes a consumer that holds nothing.
    LEAVE: "leave";
}
