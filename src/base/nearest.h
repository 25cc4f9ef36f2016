// The nearest right word: what somebody who wrote `max-paralel` probably meant.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace trainyard {

/// Whether `word` is one of `names`, which are separated by blanks: also with two dashes before it,
/// and with '_' for '-'.
bool is_among(std::string_view word, std::string_view names);

/// The candidate that other tools call `word`: "time-limit" for "timeout", also with two dashes
/// before it, and with '_' for '-'.
std::optional<std::string_view> called_otherwise(std::string_view word,
                                                 std::span<const std::string_view> candidates);

/// The candidate that other tools call `word`, else the one that takes the fewest edits (insert,
/// delete, replace, swap of neighbours) to make of `word` whatever its case, the first of several; nothing when even
/// that one takes more than a third of the word's letters (at least one edit is always allowed), and
/// never a word about GPUs for one about CPUs.
/// Costs |word| x |candidate| for each candidate; words over 64 letters match nothing.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

}  // namespace trainyard
