// `trainyard agent`: the program that a yard starts on another machine, by ssh.
#pragma once

#include <optional>
#include <string>

#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class AgentWords {
 public:
  explicit AgentWords(CLI::App& app);

  /// Nothing where another command was typed.
  [[nodiscard]] std::optional<ExitCode> run() const;

 private:
  CLI::App* agent_;
  bool stdio_ = false;
  bool step_ = false;
  std::string cpus_;
  std::string memory_;
  std::string gpus_;
  bool look_ = false;
  std::string key_;
};

}  // namespace trainyard::cli
