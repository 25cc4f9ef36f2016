// What every task finds in its environment, be it of a job file or of a program: which one it is,
// where its files are, how many threads it has for itself. Pure; any thread.
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

/// The value of one; null: there is none of that name.
const std::string* find_variable(const Variables& variables, std::string_view name);

/// Which task an attempt is of.
struct TaskName {
  const std::string& group;
  const std::string& id;
  std::uint32_t attempt = 1;
  std::optional<std::uint32_t> round = std::nullopt;  ///< Of a repeat.
};

/// The kernel gives a program so much in one variable or argument, with a variable's name and the
/// NUL that ends it.
constexpr std::size_t kVariableMax = std::size_t{128} << 10U;

/// Why people cannot set the variable of this name for a task: "is not a valid variable name".
std::optional<std::string_view> why_not_to_set(std::string_view name);

/// Sets the files of an attempt, all of them in the directory of the task.
void set_files(model::Launch& launch, std::string task_directory, std::uint32_t attempt);

/// Where ranks from 1 on print; rank 0 prints where a task does.
std::vector<std::string> logs_of_ranks(const model::Launch& launch, int ranks,
                                       std::uint32_t attempt);

/// By which a task knows what it is. The files of `launch` have been set.
Variables own_variables(const TaskName& name, const model::Launch& launch,
                        const std::string& run_directory);

/// How many threads its libraries start: as many as it has CPUs, of several processes each its
/// share.
Variables thread_variables(const model::Request& request, int processes);

}  // namespace trainyard::job
