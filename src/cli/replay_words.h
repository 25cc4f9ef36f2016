// `trainyard replay`: plays runs again that were recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class ReplayWords {
 public:
  explicit ReplayWords(CLI::App& app);

  /// Nothing where another command was typed.
  [[nodiscard]] std::optional<ExitCode> run() const;

 private:
  [[nodiscard]] ExitCode replay(const std::string& named) const;

  CLI::App* replay_;
  std::vector<std::string> runs_;  ///< Empty: the active one here, else the latest.
  std::int64_t execution_ = 0;     ///< 0: the last one.
  bool events_ = false;
  bool json_ = false;
};

}  // namespace trainyard::cli
