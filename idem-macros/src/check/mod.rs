//! One `refuse_*` function per rule. The heading of the same name in `docs/diagnostics.md` says more.

mod allow;
mod batch;
mod category;
mod external;
mod key;
mod part;
mod reason;
mod shape;
mod signature;
mod window;
mod words;

use crate::args::Args;
use crate::diag::Errors;
use crate::handler::Handler;

/// Refuses whatever would not be a handler that applies each event once. What was refused and would make the compiler
/// complain once more is taken out.
pub(crate) fn refuse(args: &mut Args, handler: &mut Handler, errors: &Errors) {
    key::refuse(args, handler, errors);
    window::refuse(args, errors);
    external::refuse(args, errors);
    batch::refuse(args, handler, errors);
    reason::refuse(args, handler, errors);
    shape::refuse(handler, errors);
    signature::refuse(args.semantics, handler, errors);
}
