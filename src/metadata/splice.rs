//! Removes members of an object.

use super::document::{Edits, MemberSpan};

/// Removes the members for which `goes` is true, each with one comma: the comma before it, or the comma
/// after it if no member before it stays.
///
/// ```text
/// {"a": 1, "b": 2, "c": 3}    without b: {"a": 1, "c": 3}    without a and b: {"c": 3}
///        ^^^^^^^^                         without b and c: {"a": 1}
/// ```
pub(super) fn remove(
    members: &[MemberSpan<'_>],
    edits: &mut Edits,
    goes: impl Fn(&MemberSpan<'_>) -> bool,
) {
    let mut end = None;
    let mut one_stays = false;
    for (i, member) in members.iter().enumerate() {
        if goes(member) {
            let next = members.get(i + 1).map(|next| next.span.start);
            let span = match end.filter(|_| one_stays) {
                Some(end) => end..member.span.end,
                None => member.span.start..next.unwrap_or(member.span.end),
            };
            edits.replace(span, "");
        } else {
            one_stays = true;
        }
        end = Some(member.span.end);
    }
}
