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

/// A task that trains for less says nothing of the next one.
inline constexpr Duration kTrainedLeast{1'000};

/// Reads the estimates at `path`; empty if there is no file. An error, for a note, if they cannot
/// be read or believed: the run then learns from nothing.
Result<Learned> load_learned(const std::string& path);

/// Writes it there: whole, or not at all.
Result<void> save_learned(const Learned& learned, const std::string& path);

/// The fingerprint of the command of a task (Job::command_fingerprint()), or in the library of its
/// class, by the number of its batch and its number there.
using CommandOf = std::function<std::int64_t(std::uint32_t batch, model::TaskIndex task)>;

/// Adds what the finished tasks of these batches of a run took to what is kept at `path`
/// (learned_path()), and on which machine. Runs in which no task trained for `trained_least` leave
/// nothing: there is nothing to be learned from them; nor do tasks that were edited after they had
/// finished. What is there and cannot be read is renamed to "<path>.unreadable", in the place of
/// what had this name before. Each task of the run is read once, of however many batches.
Result<void> keep_learned(const std::string& run_directory, const std::set<std::uint32_t>& batches,
                          const std::string& path, Duration trained_least,
                          const CommandOf& command_of);

}  // namespace trainyard::job
