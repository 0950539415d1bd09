//! How long keys are kept, decided together with how long events can come again.

use crate::const_text::ConstText;
use crate::retention::Retention;

/// As many windows as a policy may name.
const MAX_WINDOWS: usize = 8;

/// A retention and the redelivery that it must outlive, as one constant for several handlers:
/// `#[idempotent(key(…), policy = PAYMENTS)]`.
///
/// It stands best beside the configuration of the retries that it follows from. Everything about it is checked when the
/// constant is compiled.
///
/// ```
/// use idem_runtime::{Policy, idempotent};
/// use sqlx::{Sqlite, Transaction};
///
/// const PAYMENTS: Policy =
///     Policy::retention("7d").redelivery([("broker", "1d"), ("dead_letter", "3d"), ("replay", "2d")]);
///
/// struct Paid {
///     order_id: String,
/// }
///
/// #[idempotent(key(msg.order_id), policy = PAYMENTS)]
/// async fn credit(tx: &mut Transaction<'_, Sqlite>, msg: &Paid) -> Result<(), sqlx::Error> {
///     Ok(())
/// }
/// # fn main() {}
/// ```
///
/// A retention that is too short does not compile:
///
/// ```compile_fail
/// # use idem_runtime::Policy;
/// const PAYMENTS: Policy = Policy::retention("3d").redelivery([("broker", "1d"), ("dead_letter", "3d")]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    retention: Retention,
    windows: [Window; MAX_WINDOWS],
    len: usize,
}

impl Policy {
    /// Keeps keys this long: whole numbers with the units `s`, `m`, `h`, `d` or `w`, as in `"7d"` or `"1d12h"`.
    ///
    /// # Panics
    ///
    /// When the text cannot be read or means no time at all; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn retention(text: &str) -> Self {
        let retention = read(text);
        Self { retention, windows: [Window::new("", retention); MAX_WINDOWS], len: 0 }
    }

    /// Declares every way in which an event can come again, with its longest time. They add up.
    ///
    /// # Panics
    ///
    /// When the retention is not longer than their sum, when a text cannot be read, when a name is empty or there twice,
    /// or with no window or more than eight of them; in a constant each is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn redelivery<const N: usize>(mut self, windows: [(&'static str, &'static str); N]) -> Self {
        assert!(self.len == 0, "the redelivery of a policy is declared once, with all its windows");
        assert!(N > 0, "an empty list of windows looks like a check, and checks nothing");
        assert!(N <= MAX_WINDOWS, "a policy names at most eight windows");
        while self.len < N {
            let (source, length) = windows[self.len];
            refuse_bad_source(source, self.windows());
            self.windows[self.len] = Window::new(source, read(length));
            self.len += 1;
        }
        refuse_short_retention(ConstText::new(), self.retention, self.windows());
        self
    }

    pub(crate) const fn keeps(&self) -> Retention {
        self.retention
    }

    pub(crate) const fn windows(&self) -> &[Window] {
        self.windows.split_at(self.len).0
    }
}

/// One way in which an event can come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// Its name, such as `broker` or `dead_letter`.
    pub source: &'static str,
    /// The longest time after which it can deliver the event again.
    pub length: Retention,
}

impl Window {
    #[doc(hidden)] // Not public API: called by generated code.
    #[must_use]
    pub const fn new(source: &'static str, length: Retention) -> Self {
        Self { source, length }
    }
}

#[track_caller]
const fn read(text: &str) -> Retention {
    match Retention::parse(text) {
        Ok(retention) => retention,
        Err(error) => panic!("{}", ConstText::new().push("`").push(text).push("`: ").push(error.text()).as_str()),
    }
}

#[track_caller]
const fn refuse_bad_source(source: &str, earlier: &[Window]) {
    assert!(!source.is_empty(), "a window has a name, such as `broker`");
    let mut index = 0;
    while index < earlier.len() {
        assert!(!are_equal(source, earlier[index].source), "a window that is there twice counts twice");
        index += 1;
    }
}

/// `str` cannot be compared in constants.
const fn are_equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// In seconds.
const fn sum(windows: &[Window]) -> u64 {
    let (mut sum, mut index) = (0_u64, 0);
    while index < windows.len() {
        sum = sum.saturating_add(windows[index].length.as_secs());
        index += 1;
    }
    sum
}

/// The same words as the macro's `refuse_short_retention`, for lengths that are constants.
#[track_caller]
pub(crate) const fn refuse_short_retention(whose: ConstText, retention: Retention, windows: &[Window]) {
    if retention.as_secs() <= sum(windows) {
        let text = whose.push("the retention ").push_secs(retention.as_secs());
        let text = push_windows(text.push(" must be longer than the declared redelivery window "), windows);
        let text = text.push("; a message that is redelivered after its key was purged is applied twice");
        panic!("{}", text.as_str());
    }
}

/// The same words as the macro's refusals of that name, for lengths that are constants.
#[track_caller]
pub(crate) const fn refuse_short_provider_window(
    handler: &str,
    provider: &str,
    window: Retention,
    redelivery: &[Window],
) {
    const AGAIN: &str = "; a redelivery after the provider has forgotten its key has the effect a second time";
    let text = ConstText::new().push("handler `").push(handler).push("`: ");
    if redelivery.is_empty() {
        let text = text.push("the window of `").push(provider);
        let text = text.push("` cannot be compared with the redelivery, which the policy does not declare").push(AGAIN);
        panic!("{}", text.as_str());
    }
    if window.as_secs() < sum(redelivery) {
        let text = text.push("`").push(provider).push("` recognises a repeated key for ").push_secs(window.as_secs());
        let text = push_windows(text.push(", less than the declared redelivery window "), redelivery).push(AGAIN);
        panic!("{}", text.as_str());
    }
}

/// Writes the sum and its terms.
const fn push_windows(text: ConstText, windows: &[Window]) -> ConstText {
    let mut text = text.push_secs(sum(windows)).push(" (");
    let mut index = 0;
    while index < windows.len() {
        let between = if index == 0 { "" } else { " + " };
        text = text.push(between).push(windows[index].source).push(" ").push_secs(windows[index].length.as_secs());
        index += 1;
    }
    text.push(")")
}
