// An executor whose tasks are command lines: `command` in a configuration.
//
//   args: {commands: {train: [python3, train.py, --rank, "{rank}"], test: "make test"}}
//
// A list is run as it is, a text by /bin/sh. {task}, {rank}, {local_rank} and {ranks} are filled
// in. The values of the task are in the JSON file $TRAINYARD_VALUES; those of the reply are what
// the command leaves in $TRAINYARD_RESULT. It gets no buffers. On a stop it gets SIGTERM, then
// SIGKILL.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/component.h"
#include "trainyard/component_registry.h"

namespace trainyard::ranks {

class CommandExecutor final : public Executor {
 public:
  /// Throws std::invalid_argument when a command is no command.
  explicit CommandExecutor(const Arguments& given);

  Shareable execute(std::string_view task, const Shareable& input, RankContext& context,
                    std::stop_token stop) override;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> commands_;
};

// The types of components that every registry has.

/// `command`: a task is a command line; an Executor.
ComponentRegistry::Type command_type();

/// `python`: a class or a function of a Python script. If the executor is of this type, the ranks
/// are Python; it cannot be made here.
ComponentRegistry::Type python_type();
inline constexpr const char* kPythonType = "python";

}  // namespace trainyard::ranks
