// `trainyard hold`, `release` and `update` on the command line.
#pragma once

#include <optional>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class WishWords {
 public:
  /// Adds the three to `app`, which must outlive this.
  explicit WishWords(CLI::App& app);

  /// Runs the typed command; nothing if it was another command.
  std::optional<trainyard::cli::ExitCode> run();

 private:
  CLI::App* hold_;
  CLI::App* release_;
  CLI::App* update_;
  trainyard::cli::WishOptions options_;
};

}  // namespace trainyard::cli
