// `trainyard completion`, which prints a script for a shell to complete our command lines, and the
// answers for these scripts.
//
// The script only asks the program: the possible words are read from the same description of
// commands and options by which they are parsed.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class CompletionWords {
 public:
  /// Adds `completion` to `app`, which must outlive this.
  explicit CompletionWords(CLI::App& app);

  /// Runs the typed command; nothing if it was another command.
  std::optional<trainyard::cli::ExitCode> run() const;

 private:
  CLI::App* completion_;
  std::string shell_;
};

/// Answers a shell that asks for completions; nothing if the words are another command. The
/// question is `complete <word>... <word at the cursor>`. The answer has a line for each command and
/// option that begins so, with its meaning after a tab. A line with a tab and `files` means that
/// names of files may follow. Never reports an error.
std::optional<ExitCode> answer_shell(const CLI::App& app, std::span<const char* const> words);

}  // namespace trainyard::cli
