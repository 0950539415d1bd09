//! One `refuse_*` function per rule. The heading of the same name in `docs/diagnostics.md` says more.

use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DataStruct, DeriveInput, Field};

use super::held;
use super::words::{Place, Value, WORDS, Word, Words};
use crate::diag::{Errors, did_you_mean};

/// Refuses whatever would not be one value that identifies an event.
pub(super) fn refuse(item: &DeriveInput, words: &Words, errors: &Errors) {
    refuse_unreadable_key_attribute(words, errors);
    refuse_unknown_key_word(words, errors);
    refuse_misplaced_key_word(words, errors);
    refuse_key_word_twice(words, errors);
    refuse_empty_rename(words, errors);
    match &item.data {
        Data::Struct(data) => {
            refuse_no_field(&item.ident, data, errors);
            refuse_several_fields(&item.ident, data, errors);
        }
        Data::Enum(data) => {
            refuse_empty_enum(&item.ident, data, errors);
            refuse_variant_with_data(data, errors);
            refuse_same_text(data, words, errors);
        }
        Data::Union(data) => refuse_union(data.union_token.span, errors),
    }
}

/// What cannot be read might have kept a text.
fn refuse_unreadable_key_attribute(words: &Words, errors: &Errors) {
    const WHY: &str = "what cannot be read might have kept the text of a stored key";
    for error in &words.unreadable {
        let what = format_args!("this `#[key(…)]` cannot be read: {error}");
        errors.refuse(error.span(), what, format_args!("`{}`", WORDS[0].1), WHY);
    }
    for Word { name, value, .. } in &words.list {
        if let Value::Other(Some(error)) = value {
            let help = WORDS.iter().find(|(word, _)| name == word).map_or("", |(_, example)| example);
            let what = format_args!("the value of `{name}` cannot be read: {error}");
            errors.refuse(name.span(), what, format_args!("`{help}`"), WHY);
        }
    }
}

/// A word that is ignored looks like a text that is kept.
fn refuse_unknown_key_word(words: &Words, errors: &Errors) {
    let unknown = words.list.iter().filter(|word| matches!(word.value, Value::Other(None)));
    for Word { name, .. } in unknown {
        let word = name.to_string();
        let help = match did_you_mean(&word, WORDS.map(|(word, _)| word)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the words are {}", WORDS.map(|(word, _)| format!("`{word}`")).join(" and ")),
        };
        let what = format_args!("unknown word `{word}` in `#[key(…)]`");
        errors.refuse(name.span(), what, help, "a word that is ignored would be a text that is not kept");
    }
}

/// `rename` belongs to a variant, `crate` to the type.
fn refuse_misplaced_key_word(words: &Words, errors: &Errors) {
    for Word { place, name, value } in &words.list {
        match (value, place) {
            (Value::Text(_), Place::Type | Place::Field) => errors.refuse(
                name.span(),
                "`rename` belongs on a variant of an enum",
                "remove it, or write it above the variant: `#[key(rename = \"paid\")] Paid`",
                "it keeps the text of a variant; a newtype is written as its field is",
            ),
            (Value::Path(_), Place::Variant(_) | Place::Field) => errors.refuse(
                name.span(),
                "`crate` belongs on the type",
                "`#[key(crate = our_crate::idem_runtime)]` above the `struct` or `enum`",
                "all of a type's generated code names the runtime by one path",
            ),
            _ => {}
        }
    }
}

/// Of two texts for one variant, one is not what is stored.
fn refuse_key_word_twice(words: &Words, errors: &Errors) {
    for (index, word) in words.list.iter().enumerate() {
        let known = !matches!(word.value, Value::Other(_));
        if known && words.list[..index].iter().any(|earlier| earlier.place == word.place && earlier.name == word.name) {
            errors.refuse(
                word.name.span(),
                format_args!("`{}` is given twice", word.name),
                format_args!("remove this `{}`", word.name),
                "two values for one decision: neither can be right without the other being wrong",
            );
        }
    }
}

/// At run time an empty part is refused as a missing identifier, so every event of this variant would be parked.
fn refuse_empty_rename(words: &Words, errors: &Errors) {
    for word in &words.list {
        if let (Value::Text(text), Place::Variant(_)) = (&word.value, word.place)
            && text.value().is_empty()
        {
            errors.refuse(
                text.span(),
                "the variant is renamed to nothing",
                "the text that is stored for it: `#[key(rename = \"paid\")]`",
                "an empty part of a key is refused as a missing identifier",
            );
        }
    }
}

/// A value without contents is the same for every message.
fn refuse_no_field(ident: &Ident, data: &DataStruct, errors: &Errors) {
    if held(&data.fields).next().is_none() {
        errors.refuse(
            ident.span(),
            format_args!("`{ident}` has no field that could identify an event"),
            format_args!("`struct {ident}(String);`"),
            "a part that is the same for every message tells no event from another",
        );
    }
}

/// Which of them identifies the event, and how they would be joined, is nothing that can be guessed.
fn refuse_several_fields(ident: &Ident, data: &DataStruct, errors: &Errors) {
    let name = |(index, field): (usize, &Field)| match &field.ident {
        Some(name) => format!("msg.id.{name}"),
        None => format!("msg.id.{index}"),
    };
    if let Some((_, second)) = held(&data.fields).nth(1) {
        let parts = held(&data.fields).map(name).collect::<Vec<_>>().join(", ");
        errors.refuse(
            second.ident.as_ref().map_or_else(|| second.ty.span(), Ident::span),
            format_args!("`{ident}` has several fields, and a part of a key is one value"),
            format_args!("several fields are several parts: `key({parts})`"),
            "parts stay apart in the key; fields run together could give two events one key",
        );
    }
}

/// There is no value of such a type.
fn refuse_empty_enum(ident: &Ident, data: &DataEnum, errors: &Errors) {
    if data.variants.is_empty() {
        errors.refuse(
            ident.span(),
            format_args!("`{ident}` has no variants"),
            format_args!("`enum {ident} {{ Paid, Refunded }}`"),
            "a value that cannot exist identifies no event",
        );
    }
}

/// The variant's name alone would give events with different data one key.
fn refuse_variant_with_data(data: &DataEnum, errors: &Errors) {
    for variant in data.variants.iter().filter(|variant| !variant.fields.is_empty()) {
        let name = &variant.ident;
        errors.refuse(
            name.span(),
            format_args!("the variant `{name}` carries data, and a part of a key is one value"),
            format_args!(
                "a variant without data, `{name}`, and the data as a part of its own: `key(msg.kind, msg.id)`"
            ),
            "by the variant's name alone, events with different data would share one key",
        );
    }
}

/// Two kinds of events would share their keys.
fn refuse_same_text(data: &DataEnum, words: &Words, errors: &Errors) {
    let texts: Vec<_> = data.variants.iter().enumerate().map(|(index, variant)| words.text(index, variant)).collect();
    for (index, variant) in data.variants.iter().enumerate() {
        let Some(earlier) = texts[..index].iter().position(|text| *text == texts[index]) else {
            continue;
        };
        let renamed = words.rename(index).or_else(|| words.rename(earlier));
        let (this, other) = (&variant.ident, &data.variants[earlier].ident);
        errors.refuse(
            renamed.map_or_else(|| this.span(), Spanned::span),
            format_args!("`{other}` and `{this}` would both be stored as `{}`", texts[index]),
            "another text for one of them: `#[key(rename = \"…\")]`",
            "an event of the one would be dropped as a duplicate of the other's",
        );
    }
}

/// Which field is valid is known to nobody.
fn refuse_union(at: Span, errors: &Errors) {
    errors.refuse(
        at,
        "a union cannot be part of a key",
        "a newtype of the field that identifies the event: `struct OrderId(u64);`",
        "which of its fields is valid is not known, so neither is the event that it names",
    );
}
