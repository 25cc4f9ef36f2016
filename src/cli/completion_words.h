// `trainyard completion`, which prints what makes a shell complete our command lines, and what the
// shells then ask.
//
// A shell is told no more than to ask the program: which words may follow is read from the same
// description of commands and options by which they are parsed.
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

  /// Does what was asked for; nothing when that was another command.
  std::optional<trainyard::cli::ExitCode> run() const;

 private:
  CLI::App* completion_;
  std::string shell_;
};

/// What may follow, where the words are those of a shell that asks; nothing where they are another
/// command. Asked are `complete bash <breaks> <line>`, the line up to the cursor
/// (text/typed_line.h), and `complete words <word>... <word at the cursor>`. Answered is a line for
/// each word, behind a tab what it is, and a line with a tab and `files` where names of files may
/// follow. Never says that something is wrong.
std::optional<ExitCode> answer_shell(const CLI::App& app, std::span<const char* const> words);

}  // namespace trainyard::cli
