// The words of `trainyard results` on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

class ResultsWords {
 public:
  /// Adds `results` to `app`, which must outlive this.
  explicit ResultsWords(CLI::App& app);

  /// `--sort -acc` as one word, `--sort=-acc`: alone the second would be a flag. `kept` owns the
  /// joined word.
  static std::vector<const char*> with_joined_sort(const std::vector<const char*>& words,
                                                   std::string& kept);

  /// Runs the typed command; nothing if it was another command.
  std::optional<trainyard::cli::ExitCode> run();

 private:
  CLI::App* results_;
  trainyard::cli::ResultsOptions options_;
};

}  // namespace trainyard::cli
