// The words of `trainyard parallel`, and the command itself.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/machine_words.h"
#include "trainyard/parallel.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class ParallelWords {
 public:
  /// Adds it to the command line.
  explicit ParallelWords(CLI::App& app);

  /// Runs the typed command and returns its exit code; nothing if it was another command.
  [[nodiscard]] std::optional<int> run();

 private:
  [[nodiscard]] int run_them();
  [[nodiscard]] ExitCode show_status() const;
  [[nodiscard]] std::optional<std::string> read_options(ParallelOptions& options);

  CLI::App* parallel_ = nullptr;
  int count_ = 0;
  std::string topology_ = "mesh";
  std::string when_full_ = "block";
  std::string roles_;
  std::deque<std::string> role_names_;
  std::vector<std::string> labels_;
  std::string nodes_;
  std::string ports_;
  std::size_t queue_ = 8'192;
  int retries_ = 0;
  std::string retry_delay_ = "0.2s";
  std::string grace_ = "10s";
  std::string logs_;
  MachineWords machines_;
  bool status_ = false;
  bool json_ = false;
};

}  // namespace trainyard::cli
