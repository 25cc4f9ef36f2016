// Runs a command that the user has written, and ends it when it is asked to.
//
// Not for tasks: those are the keeper's. Blocks the calling thread until the command has ended.
#pragma once

#include <csignal>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

/// Signals that are held back for a while: the holder checks whether one has come, and ends its work
/// in its own way.
///
/// For programs of one thread, not for libraries.
class HeldSignals {
 public:
  /// From now on none of these ends this process, until this is destroyed; without any nothing is
  /// held.
  explicit HeldSignals(const std::vector<int>& signals);
  HeldSignals(HeldSignals&&) = delete;
  HeldSignals& operator=(HeldSignals&&) = delete;
  ~HeldSignals();

  /// Becomes readable when one has come; -1 where none is held.
  [[nodiscard]] int descriptor() const { return held_.get(); }
  /// The signal that has come, each once; 0: none has.
  [[nodiscard]] int take() const;

 private:
  sigset_t before_{};
  Descriptor held_;
};

struct StoppableCommand {
  std::vector<std::string> arguments;    ///< The program, looked up on PATH, and its arguments.
  std::vector<std::string> environment;  ///< Added to ours, as NAME=value; it replaces a variable
                                         ///< of ours.
  std::string directory;                 ///< The working directory; empty: ours.
  std::string output;                    ///< A new file for its output; empty: our output.
  std::optional<Duration> deadline;      ///< Asked to stop after this time.
  Duration grace{5'000};                 ///< Between TERM and KILL.
  /// INT and TERM ask it to stop, and not us to end. For programs of one thread, not for libraries.
  bool stops_on_signals = false;
};

struct CommandEnd {
  int exit_code = 0;
  int signal = 0;     ///< The signal that killed it; 0: none.
  bool late = false;  ///< Asked to stop at its deadline,
  int asked_by = 0;   ///< or by this signal.
};

/// Runs the command in a process group of its own. Once it is asked to stop, its group gets TERM,
/// then KILL; processes that it leaves behind in the group are killed. If it has a file for its
/// output, its standard input is empty. An error when it cannot be run.
Result<CommandEnd> run_stoppable(const StoppableCommand& command, const std::stop_token& stop);

}  // namespace trainyard::sys
