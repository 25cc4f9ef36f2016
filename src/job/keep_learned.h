// The file of learned estimates: read for a run, and written for the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "job/learned.h"
#include "model/ids.h"

namespace trainyard::job {

/// A task that trains for less time is no basis for an estimate.
inline constexpr Duration kTrainedLeast{1'000};

/// Reads the estimates at `path`; empty if there is no file. An error, for a note, if they cannot
/// be read or believed: the run then learns from nothing.
Result<Learned> load_learned(const std::string& path);

/// Writes it there: whole, or not at all.
Result<void> save_learned(const Learned& learned, const std::string& path);

/// The fingerprint of the command of a task (Job::command_fingerprint()), or in the library of its
/// class, by the number of its batch and its number there.
using CommandOf = std::function<std::int64_t(std::uint32_t batch, model::TaskIndex task)>;

/// Adds the measurements of the finished tasks of these batches of a run to the file at `path`
/// (learned_path()), with their machine. Runs in which no task trained for `trained_least` add
/// nothing, as there is nothing to learn from them; nor do tasks that were edited after they had
/// finished. A file that cannot be read is renamed to "<path>.unreadable", and replaces an earlier
/// file of this name. Each task of the run is read once, however many batches there are.
Result<void> keep_learned(const std::string& run_directory, const std::set<std::uint32_t>& batches,
                          const std::string& path, Duration trained_least,
                          const CommandOf& command_of);

}  // namespace trainyard::job
