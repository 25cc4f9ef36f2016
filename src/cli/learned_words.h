// The words of `trainyard learned` on the command line.
#pragma once

#include <optional>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class LearnedWords {
 public:
  /// Adds `learned` and what comes below it to `app`, which must outlive this.
  explicit LearnedWords(CLI::App& app);

  /// Runs the typed command; nothing if it was another command.
  std::optional<trainyard::cli::ExitCode> run();

 private:
  CLI::App* learned_;
  CLI::App* forget_;
  trainyard::cli::LearnedOptions options_;
};

}  // namespace trainyard::cli
