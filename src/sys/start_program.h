// Starts a program of ours that runs on its own, in the directory and with the environment of
// another one: a run of the queue.
//
// Not for tasks: those are the keeper's. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/descriptor.h"
#include "sys/process_limits.h"

namespace trainyard::sys {

struct ProgramToStart {
  std::vector<std::string> arguments;    ///< The arguments after our own program's name.
  std::vector<std::string> environment;  ///< The whole environment, as NAME=value.
  std::string directory;                 ///< The working directory.
  std::uint32_t umask = 0;
  ProcessLimits limits;  ///< Applied as far as this process may.
};

/// The descriptor through which the started program sends its words.
constexpr int kWordPlace = 3;

struct StartedProgram {
  std::int64_t pid = 0;
  Descriptor ended;  ///< Can be read when it has ended.
  Descriptor words;  ///< Its words; at end of file when it has ended.
};

/// Our own program once more, in a session of its own; its standard input leads nowhere and what it
/// prints goes to `log`. Where it cannot run there it says so in the log and ends with 2.
Result<StartedProgram> start_program(const ProgramToStart& program, const Descriptor& log);

struct ProgramEnd {
  int exit_code = 0;
  int signal = 0;  ///< The signal that killed it; 0: none.
};

/// The end of a child of this process; nothing if it has not ended, or is no child of this process.
std::optional<ProgramEnd> end_of_program(std::int64_t pid);

/// The permissions that new files of this process lack. Call while there is one thread.
std::uint32_t own_umask();

}  // namespace trainyard::sys
