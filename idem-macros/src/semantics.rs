//! The three ways to be a handler.

/// What keeps a handler's effect from happening twice. One attribute each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Semantics {
    Idempotent,
    AtMostOnce,
    NaturallyIdempotent,
}

impl Semantics {
    pub(crate) const ALL: [Self; 3] = [Self::Idempotent, Self::AtMostOnce, Self::NaturallyIdempotent];

    /// The attribute's name.
    pub(crate) const fn attribute(self) -> &'static str {
        match self {
            Self::Idempotent => "idempotent",
            Self::AtMostOnce => "at_most_once",
            Self::NaturallyIdempotent => "naturally_idempotent",
        }
    }

    /// Whether an event is told from its redelivery by a key.
    pub(crate) fn has_key(self) -> bool {
        self == Self::Idempotent
    }

    /// Whether the body runs in a transaction of the engine's.
    pub(crate) fn has_transaction(self) -> bool {
        self != Self::AtMostOnce
    }

    /// A declaration that can be pasted.
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Idempotent => "#[idempotent(key(msg.order_id), retention = \"7d\")]",
            Self::AtMostOnce => {
                "#[at_most_once(reason = \"a late reading is worthless\", loss = \"one reading in the chart\")]"
            }
            Self::NaturallyIdempotent => "#[naturally_idempotent(reason = \"sets the price to the message's value\")]",
        }
    }
}
