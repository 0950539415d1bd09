//! Collects refusals, and shapes their text.

use std::cell::RefCell;
use std::fmt::Display;

use proc_macro2::Span;

/// Collects every error of a declaration, so that one compilation shows them all. Must be finished.
pub(crate) struct Errors {
    list: RefCell<Option<Vec<syn::Error>>>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { list: RefCell::new(Some(Vec::new())) }
    }

    pub(crate) fn push(&self, error: syn::Error) {
        if let Some(list) = self.list.borrow_mut().as_mut() {
            list.push(error);
        }
    }

    /// A refusal: what is wrong, a line that can be pasted instead, and why it matters.
    pub(crate) fn refuse(&self, at: Span, what: impl Display, help: impl Display, why: impl Display) {
        self.push(refusal(at, what, help, why));
    }

    /// How many there are so far.
    pub(crate) fn count(&self) -> usize {
        self.list.borrow().as_ref().map_or(0, Vec::len)
    }

    /// All of them as one, or `None`.
    pub(crate) fn finish(self) -> Option<syn::Error> {
        let list = self.list.borrow_mut().take()?;
        list.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        })
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            std::thread::panicking() || self.list.borrow().is_none(),
            "a declaration's errors were collected and never reported"
        );
    }
}

/// The text of a refusal, which rustc indents below its first line.
pub(crate) fn refusal(at: Span, what: impl Display, help: impl Display, why: impl Display) -> syn::Error {
    syn::Error::new(at, format!("{what}\nhelp: {help}\nnote: {why}"))
}

/// The known word that `word` was probably meant to be.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(word.len()) / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let known = ["key", "retention", "redelivery", "name"];
        assert_eq!(did_you_mean("retentoin", known), Some("retention"));
        assert_eq!(did_you_mean("keys", known), Some("key"));
        assert_eq!(did_you_mean("ttl", known), None);
    }
}
