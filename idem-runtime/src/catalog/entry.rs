//! A handler as the catalog shows it: what is known of it, and what follows from that.

use serde::Serialize;

use crate::endpoint::{Endpoint, EndpointKind};
use crate::handler::{Guard, HandlerMeta, Semantics};
use crate::retention::Retention;

/// The fields are those of the JSON form, in its order.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) name_is_pinned: bool,
    pub(super) function: &'static str,
    pub(super) file: String,
    pub(super) summary: &'static str,
    pub(super) message: &'static str,
    pub(super) semantics: Kind,
    pub(super) reason: Option<&'static str>,
    pub(super) loss: Option<&'static str>,
    pub(super) key: Vec<&'static str>,
    pub(super) fingerprint: Vec<&'static str>,
    pub(super) occurred_at: Option<&'static str>,
    pub(super) replay: bool,
    pub(super) retention_secs: Option<u64>,
    pub(super) policy: Option<&'static str>,
    pub(super) redelivery: Vec<Term>,
    /// The sum of the terms; `None` when none is declared.
    pub(super) redelivery_secs: Option<u64>,
    /// What the retention is longer than that sum.
    pub(super) slack_secs: Option<i64>,
    pub(super) external: Vec<Effect>,
    pub(super) exceptions: Vec<Exception>,
    /// The HTTP routes that lead to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) endpoints: Vec<Http>,
}

/// The HTTP route that a key belongs to.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Http {
    pub(super) route: &'static str,
    /// Who sends, or who a key belongs to.
    pub(super) scope: &'static str,
    pub(super) is_webhook: bool,
    /// What becomes of a request whose key is missing, or in flight.
    pub(super) policy: String,
    /// Whether the request is answered by what becomes of the key.
    #[serde(skip)]
    pub(super) answers: bool,
}

impl Http {
    fn of(endpoint: &Endpoint, meta: &HandlerMeta) -> Self {
        let (scope, is_webhook, policy) = match endpoint.kind {
            EndpointKind::Keyed { scope, required, in_flight } => {
                let missing = if required { "refused" } else { "handled each time" };
                (scope, false, format!("without a key: {missing}; key in flight: {in_flight}"))
            }
            EndpointKind::Webhook { source, accepts } => {
                let when = if accepts { "stored, answered, and applied later" } else { "applied, then answered" };
                (source, true, when.to_owned())
            }
        };
        // In accept mode it is the key at the door that is answered, not that of the handler.
        let accepts = matches!(endpoint.kind, EndpointKind::Webhook { accepts: true, .. });
        let answers = !accepts || endpoint.name == meta.name;
        Self { route: endpoint.route, scope, is_webhook, policy, answers }
    }
}

/// What guards the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Idempotent,
    AtMostOnce,
    NaturallyIdempotent,
}

/// One way in which the event can come again.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Term {
    pub(super) source: &'static str,
    pub(super) secs: u64,
}

/// An effect outside the database.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Effect {
    pub(super) provider: &'static str,
    #[serde(serialize_with = "guard_name")]
    pub(super) guard: Guard,
    pub(super) window_secs: Option<u64>,
    pub(super) lookup: Option<&'static str>,
    pub(super) risk: &'static str,
}

/// A refusal of the key that was overridden.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Exception {
    pub(super) category: &'static str,
    pub(super) reason: &'static str,
}

impl Entry {
    pub(super) fn of(meta: &HandlerMeta) -> Self {
        let (semantics, reason, loss) = match meta.semantics {
            Semantics::Idempotent => (Kind::Idempotent, None, None),
            Semantics::AtMostOnce { reason, loss } => (Kind::AtMostOnce, Some(reason), Some(loss)),
            Semantics::NaturallyIdempotent { reason } => (Kind::NaturallyIdempotent, Some(reason), None),
        };
        let terms = meta.redelivery.iter().map(|term| Term { source: term.source, secs: term.length.as_secs() });
        let redelivery: Vec<_> = terms.collect();
        let sum = redelivery.iter().fold(0_u64, |sum, term| sum.saturating_add(term.secs));
        let redelivery_secs = (!redelivery.is_empty()).then_some(sum);
        let retention_secs = meta.retention.map(Retention::as_secs);
        let external = meta.external.iter().map(|effect| Effect {
            provider: effect.provider,
            guard: effect.guard,
            window_secs: effect.window.map(Retention::as_secs),
            lookup: effect.lookup,
            risk: effect.risk,
        });
        let exceptions =
            meta.allowed.iter().map(|allowed| Exception { category: allowed.category, reason: allowed.reason });
        Self {
            name: meta.name,
            name_is_pinned: meta.name_is_pinned,
            function: meta.place.function,
            file: without_machine(meta.place.file),
            summary: meta.summary,
            message: meta.message,
            semantics,
            reason,
            loss,
            key: meta.key.to_vec(),
            fingerprint: meta.fingerprint.to_vec(),
            occurred_at: meta.occurred_at,
            replay: meta.replay,
            retention_secs,
            policy: meta.policy,
            redelivery,
            redelivery_secs,
            slack_secs: retention_secs.zip(redelivery_secs).and_then(|(kept, sum)| kept.checked_signed_diff(sum)),
            external: external.collect(),
            exceptions: exceptions.collect(),
            endpoints: Endpoint::all()
                .into_iter()
                .filter(|endpoint| endpoint.is_of(meta))
                .map(|endpoint| Http::of(endpoint, meta))
                .collect(),
        }
    }

    /// Whether an HTTP route answers by what becomes of its keys.
    pub(super) fn is_answered(&self) -> bool {
        self.endpoints.iter().any(|http| http.answers)
    }

    /// Whether keys are kept for it.
    pub(super) fn has_key(&self) -> bool {
        self.semantics == Kind::Idempotent
    }
}

impl Kind {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Idempotent => "idempotent",
            Self::AtMostOnce => "at most once",
            Self::NaturallyIdempotent => "naturally idempotent",
        }
    }
}

/// What keeps an effect of such a handler from happening twice.
pub(super) const fn guard_text(guard: Guard, handler: Kind) -> &'static str {
    match guard {
        Guard::ProviderKey => "the provider is given an idempotency key",
        Guard::Lookup => "the provider is asked first whether it has happened",
        Guard::Outbox => "written in the transaction, sent after the commit",
        Guard::None if matches!(handler, Kind::AtMostOnce) => "none, since the handler never runs twice",
        Guard::None => "none: it happens again with every redelivery",
    }
}

/// As the attribute spells it.
fn guard_name<S: serde::Serializer>(guard: &Guard, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match guard {
        Guard::ProviderKey => "provider_key",
        Guard::Lookup => "lookup",
        Guard::Outbox => "outbox",
        Guard::None => "none",
    })
}

/// The file as everybody has it: with `/`, and of a path that begins at a machine's root (the compiler gives one for a
/// crate outside the workspace) only what lies inside its package.
fn without_machine(file: &str) -> String {
    let file = file.replace('\\', "/");
    let is_absolute = file.starts_with('/') || file.as_bytes().get(1) == Some(&b':');
    if !is_absolute {
        return file;
    }
    let inside = file.rfind("/src/").or_else(|| file.rfind('/')).unwrap_or_default();
    format!("…{}", &file[inside..])
}

#[cfg(test)]
mod tests {
    use super::without_machine;

    #[test]
    fn no_path_of_a_machine_is_shown() {
        assert_eq!(without_machine("billing/src/credit.rs"), "billing/src/credit.rs");
        assert_eq!(without_machine(r"billing\src\credit.rs"), "billing/src/credit.rs");
        assert_eq!(without_machine("/home/me/src/shop/billing/src/credit/mod.rs"), "…/src/credit/mod.rs");
        assert_eq!(without_machine(r"C:\Users\me\billing\src\credit.rs"), "…/src/credit.rs");
        assert_eq!(without_machine("/tmp/credit.rs"), "…/credit.rs");
    }
}
