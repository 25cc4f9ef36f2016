// This user's queue on this host, for the commands that put something in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "queue/queue_files.h"

namespace trainyard::cli {

struct QueuePlaceWords {
  std::string config_file;
  std::vector<std::string> settings;
};

/// A queue that a task starts ends with the task: an error in a task without a running queue, with
/// the cure. Reads TRAINYARD_SET, and is called before that is removed.
Result<void> check_queue_outlives_task();

/// Made where it is not there, at the place that the configuration says. An error says why there
/// can be none: in a Slurm allocation, on a disk that machines share, or where nothing can be
/// written.
Result<queue::QueueFiles> open_queue(const QueuePlaceWords& words);

/// Sends the word to the process that serves the queue, and starts one if there is none: standard
/// error says so, with the events that would end it. True if there was one.
Result<bool> serve_queue(const queue::QueueFiles& files, std::string_view word);

/// Has this number of submissions served, as serve_queue() does. Standard error says why they wait,
/// and which limits of this shell their runs lack. They are in the queue, and begin whenever it is
/// started later.
void serve_submissions(const queue::QueueFiles& files, std::size_t count);

/// The submission with the environment, the umask and the limits of this process.
Result<queue::Submission> with_own_shell(queue::Submission submission);

}  // namespace trainyard::cli
