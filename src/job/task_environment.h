// The environment of every task, from a job file or from a program: its name, the paths of its
// files, its number of threads. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/launch.h"
#include "model/resources.h"

namespace trainyard::job {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// The value of a variable; null: there is none of that name.
const std::string* find_variable(const Variables& variables, std::string_view name);

/// The task of an attempt.
struct TaskName {
  const std::string& group;
  const std::string& id;
  std::uint32_t attempt = 1;
  std::optional<std::uint32_t> round = std::nullopt;  ///< The round of a repeat.
};

/// The kernel's limit for one variable or argument, with a variable's name and the final NUL.
constexpr std::size_t kVariableMax = std::size_t{128} << 10U;

/// The reason why people cannot set the variable of this name for a task: "is not a valid variable
/// name".
std::optional<std::string_view> why_not_to_set(std::string_view name);

/// Sets the files of an attempt, all of them in the directory of the task.
void set_files(model::Launch& launch, std::string task_directory, std::uint32_t attempt);

/// The output files of ranks from 1 on; rank 0 prints to the file of the task.
std::vector<std::string> logs_of_ranks(const model::Launch& launch, int ranks,
                                       std::uint32_t attempt);

/// The seed that a task finds in TRAINYARD_SEED: the same in every run, and another one for each task
/// and attempt. 32 bits, which is what generators of random numbers take.
std::uint32_t task_seed(std::string_view group, std::string_view id, std::uint32_t attempt);

/// The variables that identify a task. The files of `launch` have been set.
Variables own_variables(const TaskName& name, const model::Launch& launch,
                        const std::string& run_directory);

/// The number of threads for its libraries: its number of CPUs, divided among its processes.
Variables thread_variables(const model::Request& request, int processes);

}  // namespace trainyard::job
