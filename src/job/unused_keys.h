// Warnings about the keys of a matrix that change nothing of what tasks compute: five "seeds" that
// are one computation, five times. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "job/job_spec.h"

namespace trainyard::job {

/// The maximum number of keys written out; the others are counted.
constexpr std::size_t kUnusedKeysShown = 10;

/// "group 'g': matrix key 'seed' is not used in command, id or env: tasks that differ only in 'seed'
/// are identical; write '{seed}' in the command", in the order of the job file. A key in any text of
/// a task is used, and so is one by which the group is matched with another. There is none for
/// two-phase tasks, which receive their parameters from their program, for tasks that name
/// TRAINYARD_SEED, and for the keys `repeat`, `run` and `trial`, which say that the tasks are to be
/// identical. `${lr}` where 'lr' is a key and no variable is a warning as well. Costs O(tasks) where
/// include or exclude changed a matrix with such a key.
std::vector<std::string> unused_key_warnings(const JobSpec& spec);

}  // namespace trainyard::job
