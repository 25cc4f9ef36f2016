// The message about a command line that CLI11 has refused, in the program's words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): its name is not ours.
class App;
class ParseError;
}  // namespace CLI

namespace trainyard::cli {

/// The typed words; the first is the program's name.
struct TypedWords {
  std::span<const char* const> words;         ///< Up to the first '--' of `run` and `submit`.
  bool has_command = false;                   ///< '--' was typed.
  std::span<const std::string> command = {};  ///< The words after it.
};

/// "--memory needs a value: SIZE", if the next word is another option of the command, and "write the
/// value and its unit as one word: 3GB" for "--memory 3 GB", also for a setting and a pattern in two
/// words, and a matrix in several; empty: all values are whole. CLI11 would take the other option
/// for the value, and the second word for a job file.
std::string missing_value_mistake(const CLI::App& app, const TypedWords& typed);

/// Returns the message: problem and cure. `app` has just refused the words with `error`.
std::string typed_mistake(const CLI::App& app, const TypedWords& typed,
                          const CLI::ParseError& error);

}  // namespace trainyard::cli
