// `trainyard machines`: whether a run could use the named machines, their resources, and the parts
// of a job there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class MachinesWords {
 public:
  explicit MachinesWords(CLI::App& app);

  /// Nothing where another command was typed.
  [[nodiscard]] std::optional<ExitCode> run() const;

 private:
  CLI::App* machines_;
  std::string job_file_;
  std::string on_;
  std::string config_file_;
  std::vector<std::string> settings_;
  bool json_ = false;
};

}  // namespace trainyard::cli
