#include "cli/code_snapshot.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/path_name.h"
#include "base/result.h"
#include "cli/console.h"
#include "cli/directory_claim.h"
#include "process/work_tree.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "sys/stoppable_command.h"

namespace trainyard::cli {
namespace {

/// Says how far it is where it takes long, every few seconds.
class CopyProgress {
 public:
  explicit CopyProgress(std::string directory) : directory_(std::move(directory)) {}

  void tell(std::size_t files) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + kPause;
    note(fmt::format("copies the code of '{}': {} files so far", directory_, files));
  }

 private:
  static constexpr std::chrono::seconds kPause{3};

  std::string directory_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kPause;
};

/// The directory whose work tree is copied. A command was typed in the current directory; its job
/// file is in the run directory.
std::string directory_of(const RunOptions& options, const job::Job& job) {
  if (!options.words.is_command()) return job.paths().directory;
  return sys::current_directory().value_or(job.paths().directory);
}

/// The run resumes in its copy, or without one.
Result<void> enter_what_is_there(job::Job& job) {
  const job::JobPaths& paths = job.paths();
  Result<std::optional<run::CodeCopy>> found = run::code_copy_of(paths.run_directory);
  if (!found) return std::unexpected(std::move(found.error()));
  std::optional<run::CodeCopy>& copy = *found;
  if (!copy) return {};
  const std::string& root = copy->root;
  const std::string directory = run::real_directory(paths.directory);
  const bool is_of_command = directory == run::real_directory(paths.run_directory);
  if (!is_of_command && !lies_in(directory, root)) {
    return std::unexpected(
        Error{fmt::format("the run in '{}' uses a copy of '{}', which does not contain '{}'",
                          paths.run_directory, root, paths.file)});
  }
  job.work_in(*std::move(copy));
  return {};
}

/// Whether a run is resumed, or begins from the queue: then all has been made before.
bool is_prepared(const RunOptions& options) { return options.request.resumes() || options.queued; }

}  // namespace

std::expected<run::CodeCopy, ExitCode> make_snapshot(const SnapshotPlace& place,
                                                     const std::function<bool()>& is_given_up) {
  const sys::HeldSignals signals({SIGINT, SIGTERM, SIGHUP});
  CopyProgress progress(seen_from_here(place.directory));
  int signal = 0;
  bool interrupted = false;
  Result<run::CodeCopy> copy =
      run::copy_code({.directory = place.directory,
                      .run_directory = place.run_directory,
                      .is_given_up =
                          [&] {
                            if (interrupted) return true;
                            signal = signals.take();
                            interrupted = signal != 0 || is_given_up();
                            return interrupted;
                          },
                      .tell = [&progress](std::size_t files) { progress.tell(files); }});
  if (copy) return *std::move(copy);
  forget_directory(place.run_directory);
  if (interrupted) {
    return std::unexpected(
        fail("interrupted: the code was not copied, and no run starts", interrupted_by(signal)));
  }
  return std::unexpected(fail(std::move(copy.error()).in("--snapshot")));
}

std::optional<ExitCode> enter_snapshot(const RunOptions& options, job::Job& job,
                                       const std::optional<sys::Departure>& departure) {
  const std::string run_directory = job.paths().run_directory;
  if (is_prepared(options)) {
    const Result<void> entered = enter_what_is_there(job);
    return entered ? std::nullopt : std::optional(fail(entered.error()));
  }
  if (!options.request.choices.snapshot) {
    // A run that was killed before it had begun may have left a copy of the code here.
    run::drop_code_copy(run_directory);
    return std::nullopt;
  }
  std::expected<run::CodeCopy, ExitCode> copy =
      make_snapshot({.directory = directory_of(options, job), .run_directory = run_directory},
                    [&departure] { return departure && !departure->is_awaited(); });
  if (!copy) return copy.error();
  job.work_in(*std::move(copy));
  return std::nullopt;
}

Result<void> look_at_snapshot(const RunOptions& options, job::Job& job) {
  if (is_prepared(options)) return enter_what_is_there(job);
  if (!options.request.choices.snapshot) return {};
  const Result<process::WorkTree> tree = process::find_work_tree(directory_of(options, job));
  if (!tree) return std::unexpected(Error(tree.error()).in("--snapshot"));
  job.work_in({.root = tree->root, .path = run::code_copy_path(job.paths().run_directory)});
  return {};
}

}  // namespace trainyard::cli
