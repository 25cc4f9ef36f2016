// `trainyard up`, `down` and `wait` on the command line.
#pragma once

#include <optional>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class QueueWords {
 public:
  /// Adds the three to `app`, which must outlive this.
  explicit QueueWords(CLI::App& app);

  /// Runs the typed command; nothing if it was another command.
  std::optional<ExitCode> run();

 private:
  CLI::App* wait_;
  CLI::App* up_;
  CLI::App* down_;
  WaitOptions wait_options_;
  UpOptions up_options_;
  DownOptions down_options_;
};

}  // namespace trainyard::cli
