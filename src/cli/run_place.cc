#include "cli/run_place.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "io/control_socket.h"
#include "io/files.h"
#include "io/process_table.h"
#include "journal/journal.h"
#include "journal/place.h"
#include "journal/reader.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

/// How long what a dead run left behind has between TERM and KILL.
constexpr Duration kLeftoverGrace{5'000};

struct KnownRun {
  std::string directory;
  bool lives = false;
  /// When its last execution began; 0 for a journal that cannot be read. Looking at a run, or
  /// trying to start one in its place, does not change this, as it does the times of its files.
  std::int64_t started_unix_ms = 0;
};

KnownRun look_at_run(std::string directory) {
  KnownRun run{.directory = std::move(directory)};
  run.lives = io::RunLock::holder(run.directory).has_value();
  Result<JournalReader> reader = JournalReader::open(journal_path(run.directory));
  if (!reader) return run;
  if (const auto executions = reader->executions(); executions && !executions->empty()) {
    run.started_unix_ms = executions->back().started_unix_ms;
  }
  return run;
}

/// All runs in `parent`: those that live first, and then the latest.
std::vector<KnownRun> runs_in(const std::string& parent) {
  std::vector<KnownRun> runs;
  for (const std::string& name : io::names_in(parent)) {
    std::string directory = fmt::format("{}/{}", parent, name);
    std::error_code ignored;
    if (!fs::exists(journal_path(directory), ignored)) continue;
    runs.push_back(look_at_run(std::move(directory)));
  }
  std::ranges::sort(runs, [](const KnownRun& a, const KnownRun& b) {
    return std::tie(b.lives, b.started_unix_ms, a.directory) <
           std::tie(a.lives, a.started_unix_ms, b.directory);
  });
  return runs;
}

Error several_live(const std::vector<KnownRun>& runs) {
  std::string names;
  for (const KnownRun& run : runs) {
    if (!run.lives) break;
    names += fmt::format("{}'{}'", names.empty() ? "" : " and ", run.directory);
  }
  return Error{fmt::format("several runs are at work, {}: say which with --run-dir", names)};
}

/// The lock of a run directory; where another run has it, the error names the ways out.
Result<io::RunLock> lock_place(const std::string& run_directory) {
  Result<io::RunLock> lock = io::RunLock::take(run_directory);
  if (lock || !io::RunLock::holder(run_directory)) return lock;
  return std::unexpected(
      Error{fmt::format("{}: watch it by 'trainyard status {} --watch', or start another run with "
                        "'--run-dir <new directory>'",
                        lock.error().message, run_directory)});
}

}  // namespace

Result<std::string> find_run(const std::string& named, WhenSeveralLive when_several_live) {
  const Result<std::string> here = io::current_directory();
  if (!here) return std::unexpected(here.error());
  if (!named.empty()) {
    std::string path = io::absolute_path(named, *here);
    std::error_code ignored;
    if (fs::exists(journal_path(path), ignored)) return path;
    return std::unexpected(Error{fmt::format("no run in '{}': there is no journal", named)});
  }
  std::vector<KnownRun> runs = runs_in(*here + "/runs");
  if (runs.empty()) {
    return std::unexpected(
        Error{"there is no run under ./runs; name the run directory with --run-dir"});
  }
  const bool several = runs.size() > 1 && runs[1].lives;
  if (several && when_several_live == WhenSeveralLive::Refuse) {
    return std::unexpected(several_live(runs));
  }
  return std::move(runs.front().directory);
}

Result<io::RunLock> take_new_place(const std::string& run_directory) {
  if (Result<void> made = io::make_directories(run_directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  Result<io::RunLock> lock = lock_place(run_directory);
  if (!lock) return lock;
  const Result<bool> begun = Journal::has_begun(journal_path(run_directory));
  if (!begun) return std::unexpected(begun.error());
  if (*begun) {
    return std::unexpected(Error{fmt::format(
        "'{}' holds a run already: go on with it by 'trainyard run --resume {}', or start another "
        "one with '--run-dir <new directory>'",
        run_directory, run_directory)});
  }
  return lock;
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
