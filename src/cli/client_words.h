// The words of `trainyard client` on the command line.
#pragma once

#include <optional>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class ClientWords {
 public:
  /// Adds `client` and what comes below it to `app`, which must outlive this.
  explicit ClientWords(CLI::App& app);

  /// Runs the typed command; nothing if it was another command.
  std::optional<trainyard::cli::ExitCode> run();

 private:
  CLI::App* wait_;
  CLI::App* progress_;
  CLI::App* result_;
  trainyard::cli::ClientWaitOptions wait_options_;
  trainyard::cli::ClientProgressOptions progress_options_;
  trainyard::cli::ClientResultOptions result_options_;
};

}  // namespace trainyard::cli
