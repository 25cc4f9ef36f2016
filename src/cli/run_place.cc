#include "cli/run_place.h"

#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/find_run.h"
#include "config/shell_quote.h"
#include "io/control_socket.h"
#include "io/files.h"
#include "io/process_table.h"
#include "journal/journal.h"
#include "journal/place.h"
#include "journal/reader.h"
#include "run/run_directory.h"

namespace trainyard::cli {
namespace {

/// How long what a dead run left behind has between TERM and KILL.
constexpr Duration kLeftoverGrace{5'000};

/// The lock of a run directory; where another run has it, the error names the ways out.
Result<io::RunLock> lock_place(const std::string& run_directory,
                               const std::string& command_line = {}) {
  Result<io::RunLock> lock = io::RunLock::take(run_directory);
  if (lock || !io::RunLock::holder(run_directory)) return lock;
  const std::string another =
      command_line.empty() ? "" : fmt::format(", or start another one by '{} --new'", command_line);
  return std::unexpected(Error{fmt::format("{}: watch it by 'trainyard status {} --watch'{}",
                                           lock.error().message, run_directory, another)});
}

/// What goes on with the run in this directory, which is the job's own or another's: the job file
/// alone would mean the last of several.
std::string resume_line(const NewPlace& place, bool own) {
  if (!place.typed && !own) {
    return fmt::format("trainyard run --resume {} {}",
                       shell_word(seen_from_here(place.run_directory)),
                       shell_word(seen_from_here(place.job.job_file)));
  }
  const bool one_of_several = !place.typed && run_directories_like(place.run_directory).size() > 1;
  return fmt::format("{} --resume{}", place.command_line,
                     one_of_several ? " " + shell_word(seen_from_here(place.run_directory)) : "");
}

}  // namespace

Result<io::RunLock> take_new_place(const NewPlace& place) {
  const std::string& run_directory = place.run_directory;
  if (Result<void> made = io::make_directories(run_directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  Result<io::RunLock> lock = lock_place(run_directory, place.command_line);
  if (!lock) return lock;
  const Result<bool> begun = Journal::has_begun(journal_path(run_directory));
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return lock;
  const bool own = is_run_of(run_directory, place.job);
  return std::unexpected(Error{fmt::format(
      "'{}' holds a run already{}. To go on with it, type\n  {}\nand to start another one, in "
      "'{}',\n  {} --new",
      run_directory, own ? "" : ", of another job file", resume_line(place, own),
      free_run_directory(run_directory), place.command_line)});
}

Result<io::RunLock> look_into_old_place(const std::string& run_directory) {
  return lock_place(run_directory);
}

Result<io::RunLock> take_old_place(const std::string& run_directory) {
  Result<io::RunLock> lock = lock_place(run_directory);
  if (!lock) return lock;
  const Result<int> ended =
      io::end_processes_with("TRAINYARD_RUN_DIR=" + run_directory, kLeftoverGrace);
  if (!ended) return std::unexpected(Error(ended.error()).in("what the last run left"));
  if (Result<JournalReader> reader = JournalReader::open(journal_path(run_directory)); reader) {
    if (const auto executions = reader->executions(); executions && !executions->empty()) {
      io::remove_dead_socket(executions->back().socket_path);
    }
  }
  return lock;
}

}  // namespace trainyard::cli
