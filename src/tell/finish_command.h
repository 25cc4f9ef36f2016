// The command that a job file runs when the run has ended (`on-finish`): with what came of it in
// its environment, for a minute at most, and whatever it does changes nothing about the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "tell/notice.h"

namespace trainyard::tell {

/// How long it may take before it and its process group get TERM, and then KILL.
constexpr Duration kFinishCommandMax{60'000};

struct FinishCommand {
  std::string command;    ///< For bash, which runs it as the text of a task (text/shell_reader.h).
  std::string directory;  ///< Where it runs: that of the job file.
  std::string log;        ///< Where its output goes.
  Duration most = kFinishCommandMax;
  Duration grace{5'000};  ///< Between TERM and KILL.
  /// Between `most` and the end that the command has if the run is killed meanwhile.
  Duration margin{2'000};
};

/// "TRAINYARD_OUTCOME=failed" and the like.
std::vector<std::string> finish_variables(const RunName& run, const Counts& counts,
                                          const Ended& ended);

/// Runs it to its end. What is wrong with it, for people; nothing where it ended well. Ctrl-C and
/// TERM stop it, and not us. One thread: not for libraries.
std::optional<std::string> run_finish_command(const FinishCommand& command,
                                              std::vector<std::string> variables);

}  // namespace trainyard::tell
