//! Tokens as text, the same whether they came from source or from a string literal.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

/// Prints an expression or a type without the spaces that a token stream puts everywhere.
pub(crate) fn compact(tokens: &impl ToTokens) -> String {
    let mut text = String::new();
    print(tokens.to_token_stream(), &mut text);
    text
}

fn print(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                print(group.stream(), text);
                text.push_str(close);
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                separator @ (',' | ';') => text.extend([separator, ' ']),
                '+' => text.push_str(" + "),
                other => text.push(other),
            },
            word => {
                if text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"') {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    #[test]
    fn expressions_and_types_read_as_people_write_them() {
        assert_eq!(super::compact(&quote!(msg.order_id)), "msg.order_id");
        assert_eq!(super::compact(&quote!(kind_of(&msg.body, 7 as u8))), "kind_of(&msg.body, 7 as u8)");
        assert_eq!(super::compact(&quote!(billing::Paid<'_>)), "billing::Paid<'_>");
        assert_eq!(super::compact(&quote!(Box<dyn Event + Send>)), "Box<dyn Event + Send>");
        assert_eq!(super::compact(&quote!([u8; 4])), "[u8; 4]");
    }
}
