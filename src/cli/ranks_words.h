// The words of `trainyard ranks` and, for launchers, `trainyard rank`, and the commands themselves.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class RanksWords {
 public:
  /// Adds both to the command line.
  explicit RanksWords(CLI::App& app);

  /// Runs the typed command and returns the exit code, which may be the command's own; nothing if
  /// it was neither.
  [[nodiscard]] std::optional<int> run() const;

 private:
  [[nodiscard]] int run_them() const;

  CLI::App* ranks_ = nullptr;
  CLI::App* rank_ = nullptr;
  int count_ = 0;
  std::string launcher_ = "built-in";
  std::string logs_;
  std::string grace_ = "10s";
};

}  // namespace trainyard::cli
