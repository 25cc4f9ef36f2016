// The message about a command line that CLI11 has refused, in the program's words.
#pragma once

#include <span>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): its name is not ours.
class App;
class ParseError;
}  // namespace CLI

namespace trainyard::cli {

/// What was typed, which begins with the program's name.
struct TypedWords {
  std::span<const char* const> words;  ///< Up to the first '--' of `run` and `submit`.
  bool has_command = false;            ///< There was that '--'.
};

/// What is wrong and what to do about it. `app` has just refused the words with `error`.
std::string typed_mistake(const CLI::App& app, const TypedWords& typed,
                          const CLI::ParseError& error);

}  // namespace trainyard::cli
