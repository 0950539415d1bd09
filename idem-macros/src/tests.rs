//! The attribute on whatever an editor or a typing hand gives it.

use proc_macro2::TokenStream;
use proptest::prelude::*;

use crate::semantics::Semantics;
use crate::transform;

const HANDLER: &str = "pub async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), Error> { BODY }";

fn expand(args: &str, item: &str) -> String {
    let (args, item): (TokenStream, TokenStream) = (args.parse().unwrap(), item.parse().unwrap());
    transform(Semantics::Idempotent, args, &item).to_string()
}

fn errors(args: &str, item: &str) -> usize {
    expand(args, item).matches("compile_error").count()
}

/// Completion in a body works only if the function comes out again, whatever is half-typed in it.
#[test]
fn a_half_typed_body_is_kept_and_is_no_error_of_ours() {
    for body in ["msg.", "let x = ;", "match", "sqlx::query(\"\").bind(msg.)", "{ , ; =>"] {
        let item = HANDLER.replace("BODY", body);
        let Ok(item_tokens) = item.parse::<TokenStream>() else {
            continue;
        };
        let out =
            transform(Semantics::Idempotent, "key(msg.order_id), retention = \"7d\"".parse().unwrap(), &item_tokens)
                .to_string();
        assert!(!out.contains("compile_error"), "{out}");
        let body: TokenStream = body.parse().unwrap();
        assert!(out.contains(&body.to_string()), "{out}");
    }
}

/// Completion in the attribute works only on tokens that come out again.
#[test]
fn a_half_typed_attribute_keeps_the_function_and_the_key() {
    for args in ["", "key", "key(msg.order_id)", "key(msg.order_id), ret", "key(msg.order_id), retention", "key = \""] {
        let Ok(tokens) = args.parse::<TokenStream>() else {
            continue;
        };
        let out = transform(Semantics::Idempotent, tokens, &HANDLER.parse().unwrap()).to_string();
        assert!(out.contains("compile_error") && out.contains("async fn credit") && out.contains("BODY"), "{out}");
        assert_eq!(args.contains("order_id"), out.contains("& (msg . order_id)"), "{out}");
    }
}

#[test]
fn an_item_that_is_no_handler_is_kept() {
    for item in ["struct Paid { order_id: String }", "fn", "async fn credit(tx: &mut Tx<'_>, msg: &Paid) ->", ""] {
        let out = expand("key(msg.order_id), retention = \"7d\"", item);
        let item: TokenStream = item.parse().unwrap();
        assert!(out.contains("compile_error") && out.ends_with(&item.to_string()), "{out}");
    }
}

#[test]
fn one_mistake_is_one_error() {
    let ok = "key(msg.order_id), retention = \"7d\"";
    for fine in [
        "ID, msg.id",
        "msg.ids.iter().map(to_id).sum::<u8>()",
        "self.tenant, msg.id",
        "\"v2\", msg.id",
        "order_id_of(&msg.payload)",
        "msg.body.order_id()",
        "msg.retry.order_id",
        "msg.headers[\"order-id\"]",
        "-msg.number, *msg.id, (msg.kind as u8), msg.0",
        "Uuid::new_v5(&NAMESPACE, &msg.id)",
        "msg.tx_hash",
        "msg.ulid()",
        "order_of(serde_json::from_str(&msg.body))",
        "msg.message_id.clone()",
    ] {
        assert_eq!(errors(&format!("key({fine}), retention = \"7d\""), HANDLER), 0, "{fine}");
    }
    assert_eq!(errors(ok, HANDLER), 0);
    for args in [
        "retention = \"7d\"",
        "key(), retention = \"7d\"",
        "key(msg.order_id)",
        "key(msg.order_id) retention = \"7d\"",
        "key(msg.order_id), retentoin = \"7d\"",
        "key(msg.order_id), ttl = \"7d\"",
        "key(msg.order_id), retention",
        "key(msg.order_id), retention(\"7d\")",
        "key, retention = \"7d\"",
        "key = \"msg.\", retention = \"7d\"",
        "key = msg.order_id, msg.kind, retention = \"7d\"",
        "key(msg.order_id), retention = 7",
        "key(msg.order_id), retention = 7 dayz",
        "key(msg.order_id), retention = \"7d\", name = credit",
        "key(msg.order_id), retention = \"7d\", replay = true",
        "key(msg.order_id), retention = \"7d\", key(msg.kind)",
        "key(mgs.order_id, msg.kind), retention = \"7d\"",
        "key = \"region(mgs)\", retention = \"7d\"",
        "key(tx.id), retention = \"7d\"",
        "\"msg.order_id\", retention = \"7d\"",
        "key(msg.delivery_tag), retention = \"7d\"",
        "key(msg.headers[\"X-Retry-Count\"]), retention = \"7d\"",
        "key(msg.get(\"deliveryTag\")), retention = \"7d\"",
        "key(Uuid::new_v4()), retention = \"7d\"",
        "key(hex(sha256(&msg.text))), retention = \"7d\"",
        "key(msg.text.sha256()), retention = \"7d\"",
        "key(content_hash_of(msg)), retention = \"7d\"",
        "key(serde_json::to_string(msg)), retention = \"7d\"",
        "key(msg.body.clone()), retention = \"7d\"",
        "key(msg), retention = \"7d\"",
        "key(&msg.to_string()), retention = \"7d\"",
        "key(msg.offset), retention = \"7d\"",
        "key(msg.id.unwrap_or_default()), retention = \"7d\"",
        "key(\"orders\"), retention = \"7d\"",
        "key(ID, 7), retention = \"7d\"",
        "key(msg.id, msg.id), retention = \"7d\"",
        "key(msg.a, msg.b, msg.c, msg.d, msg.e, msg.f, msg.g), retention = \"7d\"",
        "key(format!(\"{}\", msg.id)), retention = \"7d\"",
        "key(msg.id?), retention = \"7d\"",
        "key(msg.id().await), retention = \"7d\"",
        "key(msg.a + msg.b), retention = \"7d\"",
        "key(match msg.a { _ => 1 }), retention = \"7d\"",
        "key(msg.id), fingerprint(\"all\"), retention = \"7d\"",
        "key(msg.id), occurred_at = SystemTime::now(), retention = \"7d\"",
        "key(msg.id), occurred_at = msg.received_at, retention = \"7d\"",
        "key(msg.id), retention = \"7d\", allow(attempt_scoped, reason = \"the exam's own attempt\")",
        "key(msg.attempt), retention = \"7d\", allow(attempt_scoped)",
        "key(msg.attempt), retention = \"7d\", allow(attempt_scoped, reason = \"x\")",
        "key(msg.id), retention = \"7d\", policy = PAYMENTS",
        "key(msg.id), retention = \"7d\", loss = \"one reading in the chart\"",
    ] {
        assert_eq!(errors(args, HANDLER), 1, "{args}: {}", expand(args, HANDLER));
    }
    assert_eq!(errors(ok, &HANDLER.replace("async ", "")), 1);
    assert_eq!(errors(ok, &HANDLER.replace("&mut Transaction", "&Transaction")), 1);
    assert_eq!(errors(ok, &HANDLER.replace(", msg: &Paid", "")), 1);
    assert_eq!(errors(ok, &HANDLER.replace("-> Result<(), Error>", "")), 1);
}

/// What a hasty hand types, and what an editor leaves of it.
const PIECES: [&str; 57] = [
    "key",
    "msg",
    ".",
    "order_id",
    ",",
    "=",
    "\"7d\"",
    "\"msg.a, msg.b\"",
    "retention",
    "name",
    "replay",
    "crate",
    "fingerprint",
    "occurred_at",
    "ttl",
    "7",
    "-",
    "&",
    "::",
    "<",
    ">",
    "'a",
    "'_",
    "mut",
    "self",
    "async",
    "fn",
    "!",
    "?",
    "#",
    "\"\"",
    "\"(\"",
    "1.5",
    "r#type",
    "policy",
    "PAYMENTS",
    "redelivery",
    "broker",
    "external",
    "provider",
    "guard",
    "provider_key",
    "window",
    "lookup",
    "risk",
    "allow",
    "attempt_scoped",
    "generated",
    "reason",
    "loss",
    "delivery_tag",
    "format!",
    ".await",
    "|",
    "+",
    "Uuid::new_v4()",
    "Self",
];

fn joined(pieces: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.join(" "))
}

fn typed() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(&PIECES[..]).prop_map(str::to_owned);
    let brackets = prop::sample::select(&[("(", ")"), ("(", ")"), ("[", "]"), ("{", "}")][..]);
    joined(piece.prop_recursive(3, 24, 6, move |inner| {
        (brackets.clone(), joined(inner)).prop_map(|((open, close), inner)| format!("{open} {inner} {close}"))
    }))
}

fn semantics() -> impl Strategy<Value = Semantics> {
    prop::sample::select(&Semantics::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Never a panic, and always code that can be read: the handler's, or errors and what was there.
    #[test]
    fn whatever_is_typed_gives_code_or_errors(
        semantics in semantics(),
        good in prop::sample::select(&["", "key(msg.id), retention = \"7d\",", "key = \"msg.a\",", "reason = \"it is so\","][..]),
        args in typed(),
        in_signature in prop::option::of(typed()),
    ) {
        let item = in_signature.map_or_else(|| HANDLER.to_owned(), |typed| HANDLER.replacen("msg", &typed, 1));
        let (args, item) = (format!("{good} {args}").parse::<TokenStream>(), item.parse::<TokenStream>());
        prop_assume!(args.is_ok() && item.is_ok());
        let (out, item) = (transform(semantics, args.unwrap(), item.as_ref().unwrap()), item.unwrap());
        let text = out.to_string();
        prop_assert!(text.contains("compile_error") || text.contains("fn apply"), "{}", text);
        let was_function = syn::parse2::<syn::ItemFn>(item).is_ok();
        prop_assert!(!was_function || syn::parse2::<syn::File>(out).is_ok(), "{}", text);
    }
}
