// The nearest right word: what somebody who wrote `max-paralel` probably meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trainyard {

/// The candidate that other tools call `word`: "time-limit" for "timeout", also with two dashes
/// before it, and with '_' for '-'.
std::optional<std::string_view> called_otherwise(std::string_view word,
                                                 std::span<const std::string_view> candidates);

/// Advice for a word of other tools for which `command` has no name, with `number` where it needs
/// one: "the job file needs no option before it" for "-f" of "run". Empty: the word is unknown.
std::string other_way(std::string_view command, std::string_view word, std::string_view number);

/// The candidate that other tools call `word`, else the one that takes the fewest edits (insert,
/// delete, replace, swap of neighbours) to make of `word` whatever its case, the first of several; nothing when even
/// that one takes more than a third of the word's letters (at least one edit is always allowed).
/// Costs |word| x |candidate| for each candidate; words over 64 letters match nothing.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

}  // namespace trainyard
