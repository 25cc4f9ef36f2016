// The options of `trainyard parallel` that are about other machines of the same run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainyard/parallel.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class MachineWords {
 public:
  void add_to(CLI::App& command);
  /// Puts the typed words and the secrets of the environment into the options; or returns the
  /// mistake in them.
  [[nodiscard]] std::optional<std::string> put_into(ParallelOptions& options) const;

 private:
  std::vector<std::string> servers_;
  std::string run_;
  int elsewhere_ = 0;
  bool joins_ = false;
  std::string lost_after_;
  std::string ca_file_;
  std::string host_name_;
  std::string nkey_;
  std::string seed_file_;
};

}  // namespace trainyard::cli
