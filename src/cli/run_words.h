// `trainyard run` on the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/run_request.h"
#include "cli/commands.h"
#include "cli/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name.
class App;
}

namespace trainyard::cli {

/// The same option of `run` and `submit`.
constexpr const char* kSnapshotHelp = "Run in a copy of the git work tree as it is now";

/// The options of `run` that are settings by another name, as typed.
struct TypedMachines {
  std::string on;
  std::string slurm;      ///< Options of salloc.
  bool survives = false;  ///< Tasks run on when their run is killed.
};

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
  app::TypedRun typed_;
  TypedMachines machines_;
  RunOptions options_;
  std::string reason_;  ///< The reason why a submission did not start.
};

}  // namespace trainyard::cli
