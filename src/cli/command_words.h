// The words of a command line in the form that may be stored: in the journal, in reports, for
// anyone who may see a run.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard::cli {

/// In the place of a value that is never shown.
constexpr std::string_view kHidden = "******";

/// Whether `setting` ("smtp.password=...", as --set takes it) sets a value that is never shown.
bool sets_a_secret(std::string_view setting);

/// All words as one text for a shell, with kHidden in the place of secrets: passwords of --set and
/// the values of --env.
std::string shown_command_line(std::span<const char* const> words);

}  // namespace trainyard::cli
