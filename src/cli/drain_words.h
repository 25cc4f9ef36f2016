// The words of `trainyard drain` on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

struct DrainOptions {
  std::vector<std::string> gpus;  ///< "gpu:2"; none: shows the drained GPUs.
  std::string until;              ///< "18:00", "2h"; empty: until it is ended.
  bool now = false;               ///< Its running tasks are stopped.
  bool end = false;               ///< Tasks may start on them again.
};

class DrainWords {
 public:
  /// Adds `drain` to `app`, which must outlive this.
  explicit DrainWords(CLI::App& app);

  /// Runs the typed command; nothing if it was another command.
  std::optional<ExitCode> run();

 private:
  CLI::App* drain_;
  DrainOptions options_;
};

}  // namespace trainyard::cli
