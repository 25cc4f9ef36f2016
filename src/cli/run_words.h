// `trainyard run` on the command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// The same option of `run` and `submit`.
constexpr const char* kSnapshotHelp = "Run in a copy of the git work tree as it is now";

class RunWords {
 public:
  /// Adds it to `app`, which must outlive this. `command_line` is for the journal.
  RunWords(CLI::App& app, const std::string& command_line);

  /// Runs the typed command, with the command after `--`; nothing if it was another command. The
  /// queue uses it to post that a submission did not start.
  std::optional<ExitCode> run(std::vector<std::string> command);

 private:
  CLI::App* run_;
  CLI::App* post_not_started_;
  RunOptions options_;
  std::string reason_;  ///< The reason why a submission did not start.
};

/// The reason why a command and a job file, typed after `trainyard <command>`, cannot be combined;
/// else empty.
std::string wrong_with_command(const CommandWords& words, const std::string& job_file,
                               std::string_view command);

}  // namespace trainyard::cli
