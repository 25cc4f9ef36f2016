// The runs that a person has on this host, by the numbers and names that they call them by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trainyard::cli {

/// The directories that "46", "digits" (all that are called so), "digits@last" (the one of these,
/// or of digits-2, -3, ..., that began last) or "@last" stand for. Empty where nobody has one that
/// is called so. That of a number may be gone; the others are there.
std::vector<std::string> known_runs(std::string_view name);

/// Whether a word can only be meant as one of these: "digits@last".
bool is_run_name(std::string_view name);

/// The number in "99" and in "99/lr=0.1", where no run of this user has it.
std::optional<std::uint32_t> unknown_number_in(std::string_view word);

/// "run 99 not found; the latest is run 46 ('runs/digits')".
Error no_run_of_number(std::uint32_t number);

/// Nothing where it has none, as one that began on another host.
std::optional<std::uint32_t> number_of_run(const std::string& run_directory);

/// "run 46 ('runs/digits')", as seen from here; without a number the directory alone.
std::string name_of_run(const std::string& run_directory);

}  // namespace trainyard::cli
