//! The way out of a refusal that does not hold here, with its reason written down.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::category;
use crate::args::Given;
use crate::diag::{Errors, did_you_mean};
use crate::value::AllowArg;

/// Which refusals of the key are overridden, and which of them were met.
pub(super) struct Allowances<'a> {
    given: &'a [Given<AllowArg>],
    met: RefCell<BTreeSet<&'static str>>,
    /// Whether a part was refused before its words were looked at.
    is_blind: Cell<bool>,
}

impl<'a> Allowances<'a> {
    pub(super) fn of(given: &'a [Given<AllowArg>]) -> Self {
        Self { given, met: RefCell::default(), is_blind: Cell::new(false) }
    }

    /// Whether this refusal, which would be spoken now, is overridden.
    pub(super) fn allow(&self, category: &'static str) -> bool {
        self.met.borrow_mut().insert(category);
        self.given.iter().any(|given| given.value.category == category)
    }

    /// A part could not be judged, so nobody can say which exception it needs.
    pub(super) fn overlook(&self) {
        self.is_blind.set(true);
    }

    /// Called when every refusal had its say.
    pub(super) fn refuse(&self, errors: &Errors) {
        for (index, given) in self.given.iter().enumerate() {
            if !refuse_unknown_category(&given.value, errors) {
                continue;
            }
            refuse_allow_without_reason(&given.value, errors);
            if !refuse_repeated_allow(&self.given[..index], &given.value, errors) {
                self.refuse_idle_allow(&given.value, errors);
            }
        }
    }

    /// What allows nothing today hides a mistake tomorrow.
    fn refuse_idle_allow(&self, AllowArg { category, .. }: &AllowArg, errors: &Errors) {
        if !self.is_blind.get() && !self.met.borrow().iter().any(|met| category == met) {
            errors.refuse(
                category.span(),
                format_args!("this `allow({category}, …)` allows nothing"),
                "remove it: nothing here needs it",
                "an exception that is not needed today hides a mistake tomorrow",
            );
        }
    }
}

/// Whether it is known. A refusal that cannot be overridden says why.
fn refuse_unknown_category(AllowArg { category, .. }: &AllowArg, errors: &Errors) -> bool {
    let name = category.to_string();
    if category::CATEGORIES.contains(&name.as_str()) {
        return true;
    }
    let what = format!("`{name}` is no refusal that can be overridden");
    let all = format!("the categories are `{}`", category::CATEGORIES.join("`, `"));
    let help = did_you_mean(&name, category::CATEGORIES).map_or(all, |meant| format!("did you mean `{meant}`?"));
    let why = if name == "generated" {
        "a value that is made anew for each delivery can never identify the event"
    } else {
        "each exception is made for one refusal, and every other refusal still holds"
    };
    errors.refuse(category.span(), what, help, why);
    false
}

/// The reason is what the exception is for.
fn refuse_allow_without_reason(AllowArg { category, reason }: &AllowArg, errors: &Errors) {
    if reason.is_none() {
        errors.refuse(
            category.span(),
            format_args!("this `allow({category})` has no reason"),
            format_args!("`allow({category}, reason = \"the exam's own attempt, set by the producer\")`"),
            "the catalog lists every exception, and whoever reads it will ask why",
        );
    }
}

/// One exception, one reason.
fn refuse_repeated_allow(earlier: &[Given<AllowArg>], AllowArg { category, .. }: &AllowArg, errors: &Errors) -> bool {
    let is_repeated = earlier.iter().any(|given| given.value.category == *category);
    if is_repeated {
        errors.refuse(
            category.span(),
            format_args!("`allow({category}, …)` is given twice"),
            "remove one: it holds for every part of the key",
            "two reasons for one exception: nobody knows which one holds",
        );
    }
    is_repeated
}
