// From a group as it was read to one of its tasks: its combination, its id, its values.
//
// Tasks of a group are numbered combination by combination, and in each in the order of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "job/job_spec.h"
#include "job/task_environment.h"
#include "job/task_keys.h"
#include "text/placeholder.h"

namespace trainyard::job {

struct TaskOrigin {
  std::size_t combination = 0;
  std::size_t task = 0;  ///< In GroupSpec::tasks.
};

std::size_t count_tasks(const GroupSpec& group);
TaskOrigin origin_of(const GroupSpec& group, std::size_t index);

/// Sets the values of a combination, of {group} and of {round}; the other slots are left as they
/// are.
void bind_combination(const GroupSpec& group, std::size_t combination, text::Bindings& bindings);

/// The id of a task, after its combination has been bound. It contains '_' for each '/' of a value.
std::string make_id(const GroupSpec& group, TaskOrigin origin, const text::Bindings& bindings);

/// The value that counts: the task's own, else the group's.
const Text* said(const GroupSpec& group, const TaskSpec& task, TaskKey key);

/// Whether a slot is used in the command, the variables or the working directory of a task.
bool uses(const GroupSpec& group, const TaskSpec& task, std::size_t slot);

/// The variables that the job file sets: the group's, with the task's over them, in the order in
/// which their names appear first.
Variables said_variables(const GroupSpec& group, const TaskSpec& task,
                         const text::Bindings& bindings);

/// A positive number for the command of a task and the environment of its program, by the keys of
/// Job::fingerprint(), but with placeholders instead of the values in the id: the tasks of a sweep
/// have the same number. `bindings` are those of its combination.
std::int64_t command_fingerprint(const GroupSpec& group, const TaskSpec& task,
                                 text::Bindings bindings);

/// What runs the command of a task, for fingerprints; that of a list and that for bash are as they
/// were before there were other shells.
std::string_view runner_of(const TaskSpec& task);

/// The program and its arguments that run the text of a task's command.
std::vector<std::string> shell_words(const TaskSpec& task, std::string text);

/// The first word of what a task runs; empty where only a shell knows it.
std::string first_word(const TaskSpec& task, const text::Bindings& bindings);

/// The combination in words, for mistakes: "bs=64,lr=1e-3".
std::string combination_text(const GroupSpec& group, const text::Bindings& bindings);

}  // namespace trainyard::job
