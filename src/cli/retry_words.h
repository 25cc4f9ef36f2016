// `trainyard retry` on the command line.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class RetryWords {
 public:
  /// Adds `retry` to `app`, which must outlive this. `command_line` is the typed one.
  RetryWords(CLI::App& app, const std::string& command_line);

  /// Runs the typed command; nothing if it was another command.
  std::optional<trainyard::cli::ExitCode> run();

 private:
  CLI::App* retry_;
  trainyard::cli::RetryOptions options_;
};

}  // namespace trainyard::cli
