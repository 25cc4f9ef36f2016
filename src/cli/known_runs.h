// The runs that a person has on this host, by the numbers and names that they call them by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::cli {

/// The directories that "46", "digits" (all that are called so), "digits@last" (the one of these,
/// or of digits-2, -3, ..., that began last) or "@last" stand for. Empty where nobody has one that
/// is called so. That of a number may be gone; the others are there.
std::vector<std::string> known_runs(std::string_view name);

/// Whether a word can only be meant as one of these: "digits@last".
bool is_run_name(std::string_view name);

/// Nothing where it has none, as one that began on another host.
std::optional<std::uint32_t> number_of_run(const std::string& run_directory);

/// "run 46 ('runs/digits')", as seen from here; without a number the directory alone.
std::string name_of_run(const std::string& run_directory);

}  // namespace trainyard::cli
