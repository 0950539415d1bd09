//! What the function takes and returns.

use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{GenericArgument, Lifetime, PathArguments, Type, TypePath};

use crate::diag::Errors;
use crate::handler::{Handler, bare, bare_mut};
use crate::semantics::Semantics;

const TRANSACTION: &str = "`tx: &mut sqlx::Transaction<'_, sqlx::Sqlite>`";

pub(super) fn refuse(semantics: Semantics, handler: &mut Handler, errors: &Errors) {
    if semantics.has_transaction() {
        refuse_no_transaction(handler, errors);
        refuse_static_transaction(handler, errors);
        refuse_hidden_lifetime(handler, errors);
        refuse_second_connection(handler, errors);
    } else {
        refuse_unused_transaction(handler, errors);
    }
    refuse_no_message(handler, errors);
    refuse_no_result(handler, errors);
}

/// An effect outside the key's transaction can happen without the key, or the key without the effect.
fn refuse_no_transaction(handler: &Handler, errors: &Errors) {
    let first = handler.first();
    let is_pool = first.and_then(|first| connection_in(&first.ty)).is_some_and(|connection| connection.is_pool());
    if handler.transaction().is_some() || is_pool {
        return;
    }
    let at = first.map_or_else(|| handler.sig.paren_token.span.join(), |first| first.ty.span());
    errors.refuse(
        at,
        "the first parameter of a handler is its transaction, as a `&mut` reference",
        TRANSACTION,
        "the key and the effect are written in one transaction, or they are not written together",
    );
}

/// The engine's transaction borrows a connection. The compiler would say so in the words of a lifetime error.
fn refuse_static_transaction(handler: &Handler, errors: &Errors) {
    if let Some(at) = handler.transaction().and_then(static_lifetime) {
        errors.refuse(
            at,
            "the transaction of a handler is lent to it, so it is not `'static`",
            TRANSACTION,
            "the engine takes the transaction back to commit it",
        );
    }
}

fn static_lifetime(ty: &Type) -> Option<Span> {
    arguments(ty)?.find_map(|argument| match argument {
        GenericArgument::Lifetime(lifetime) if lifetime.ident == "static" => Some(lifetime.span()),
        _ => None,
    })
}

/// An `async fn` has to name the lifetime, and the compiler's second suggestion of how is wrong.
fn refuse_hidden_lifetime(handler: &mut Handler, errors: &Errors) {
    let is_lifetime = |argument: &GenericArgument| matches!(argument, GenericArgument::Lifetime(_));
    let is_hidden = handler.transaction().is_some_and(|ty| {
        last_name(ty).is_some_and(|name| name == "Transaction")
            && arguments(ty).is_some_and(|mut arguments| !arguments.any(is_lifetime))
    });
    let Some(Type::Path(path)) = handler.transaction_mut().filter(|_| is_hidden).map(bare_mut) else {
        return;
    };
    let Some(last) = path.path.segments.last_mut() else {
        return;
    };
    errors.refuse(
        last.ident.span(),
        "the lifetime of the transaction is hidden",
        TRANSACTION,
        "an `async fn` holds what it borrows across its awaits, so the borrow has to be seen",
    );
    if let PathArguments::AngleBracketed(arguments) = &mut last.arguments {
        arguments.args.insert(0, GenericArgument::Lifetime(Lifetime::new("'_", Span::call_site())));
    }
}

/// What is written on another connection is committed on its own, and stays when the key is rolled back.
fn refuse_second_connection(handler: &Handler, errors: &Errors) {
    for (index, typed) in handler.typed().enumerate() {
        let Some(connection) = connection_in(&typed.ty) else {
            continue;
        };
        let is_first = index == 0;
        if is_first && !connection.is_pool() {
            continue;
        }
        let (name, second) = (&connection.name, if connection.is_pool() { "" } else { "second " });
        errors.refuse(
            connection.at,
            format_args!("a handler writes through its transaction alone, and takes no {second}`{name}`"),
            if is_first { TRANSACTION } else { "use the transaction, the first parameter, for every statement" },
            "what is written on another connection stays when the transaction with the key is rolled back",
        );
    }
}

/// Nothing would commit it.
fn refuse_unused_transaction(handler: &Handler, errors: &Errors) {
    for connection in handler.typed().filter_map(|typed| connection_in(&typed.ty)).filter(|found| !found.is_pool()) {
        errors.refuse(
            connection.at,
            format_args!("an at-most-once handler gets no `{}`", connection.name),
            "take the message alone, `msg: &Reading`; or write `#[idempotent(key(msg.id), retention = \"7d\")]`",
            "its delivery is acknowledged before it runs, so that a transaction that is rolled back loses the event",
        );
    }
}

/// A type that plainly is a way to the database.
struct Connection {
    name: String,
    at: Span,
}

impl Connection {
    fn is_pool(&self) -> bool {
        self.name.contains("Pool")
    }
}

/// The first way to the database anywhere in a type.
fn connection_in(ty: &Type) -> Option<Connection> {
    const NAMES: [&str; 11] = [
        "Pool",
        "PgPool",
        "SqlitePool",
        "MySqlPool",
        "AnyPool",
        "PoolConnection",
        "Transaction",
        "PgConnection",
        "SqliteConnection",
        "MySqlConnection",
        "AnyConnection",
    ];
    struct Find(Option<Connection>);
    impl<'ast> Visit<'ast> for Find {
        fn visit_type_path(&mut self, path: &'ast TypePath) {
            if let Some(last) = path.path.segments.last().filter(|last| NAMES.iter().any(|name| last.ident == name)) {
                self.0.get_or_insert(Connection { name: last.ident.to_string(), at: last.ident.span() });
            }
            visit::visit_type_path(self, path);
        }
    }
    let mut find = Find(None);
    find.visit_type(ty);
    find.0
}

/// Without a message there is no event.
fn refuse_no_message(handler: &Handler, errors: &Errors) {
    let lacks_transaction = handler.has_transaction && handler.transaction().is_none();
    if !lacks_transaction && handler.params().is_empty() {
        errors.refuse(
            handler.sig.paren_token.span.join(),
            if handler.has_transaction {
                "a handler takes a message behind its transaction"
            } else {
                "a handler takes a message"
            },
            "`msg: &OrderPaid`",
            "the message says what happened",
        );
    }
}

/// A handler that cannot fail would commit whatever happened.
fn refuse_no_result(handler: &Handler, errors: &Errors) {
    if handler.output().is_none() {
        let at = handler.returned().map_or_else(|| handler.sig.paren_token.span.close(), Spanned::span);
        let why = if handler.has_transaction {
            "`Ok` commits the transaction, `Err` rolls it back and has the delivery retried"
        } else {
            "`Err` says that the event is lost, so that the loss can be counted"
        };
        errors.refuse(at, "a handler must return a `Result`", "`-> Result<(), sqlx::Error>`", why);
    }
}

fn last_name(ty: &Type) -> Option<&Ident> {
    match bare(ty) {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

fn arguments(ty: &Type) -> Option<impl Iterator<Item = &GenericArgument>> {
    let Type::Path(path) = bare(ty) else {
        return None;
    };
    match &path.path.segments.last()?.arguments {
        PathArguments::AngleBracketed(arguments) => Some(arguments.args.iter()),
        _ => None,
    }
}
