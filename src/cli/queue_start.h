// This user's queue on this host, for the commands that put something in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "run/queue_files.h"

namespace trainyard::cli {

struct QueuePlaceWords {
  std::string config_file;
  std::vector<std::string> settings;
};

/// A queue that a task starts ends with the task: an error in a task where no queue is up, with
/// what cures it. Reads TRAINYARD_SET, and is called before that is taken out.
Result<void> check_queue_outlives_task();

/// Made where it is not there, at the place that the configuration says. An error says why there
/// can be none: in a Slurm allocation, on a disk that machines share, or where nothing can be
/// written.
Result<run::QueueFiles> open_queue(const QueuePlaceWords& words);

/// Says the word to whoever serves it, who is started where there is nobody: that is told on
/// standard error, with what would end it. True where it was.
Result<bool> serve_queue(const run::QueueFiles& files, std::string_view word);

/// Has this number of submissions served, as serve_queue() does. Standard error says why they wait,
/// and what their runs will lack of this shell. They are in the queue: whoever starts that later
/// has them.
void serve_submissions(const run::QueueFiles& files, std::size_t count);

/// The submission with the environment, the umask and the limits of this process.
Result<run::Submission> with_own_shell(run::Submission submission);

}  // namespace trainyard::cli
