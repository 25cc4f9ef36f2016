// `trainyard submit` on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class SubmitWords {
 public:
  /// Adds it to `app`, which must outlive this. `command_line` is for the journal.
  SubmitWords(CLI::App& app, const std::string& command_line);

  /// Runs the typed command, with the command after `--`; nothing if it was another command.
  std::optional<ExitCode> run(std::vector<std::string> command);

 private:
  CLI::App* submit_;
  SubmitOptions options_;
};

}  // namespace trainyard::cli
