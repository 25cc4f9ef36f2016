#include "cli/run_place.h"

#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "io/control_socket.h"
#include "io/files.h"
#include "io/process_table.h"
#include "journal/journal.h"
#include "journal/reader.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

/// How long what a dead run left behind has between TERM and KILL.
constexpr Duration kLeftoverGrace{5'000};

}  // namespace

std::string journal_path(const std::string& run_directory) { return run_directory + "/journal.db"; }

Result<std::string> find_run(const std::string& named) {
  const Result<std::string> here = io::current_directory();
  if (!here) return std::unexpected(here.error());
  if (!named.empty()) {
    std::string path = io::absolute_path(named, *here);
    std::error_code ignored;
    if (fs::exists(journal_path(path), ignored)) return path;
    return std::unexpected(Error{fmt::format("no run in '{}': there is no journal", named)});
  }
  std::optional<std::pair<fs::file_time_type, std::string>> latest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(*here + "/runs", error)) {
    // The write-ahead log is written to more often than the journal itself.
    for (const char* const name : {"/journal.db", "/journal.db-wal"}) {
      std::error_code missing;
      const fs::file_time_type written = fs::last_write_time(entry.path().string() + name, missing);
      if (missing || (latest && written <= latest->first)) continue;
      latest = {written, entry.path().string()};
    }
  }
  if (latest) return latest->second;
  return std::unexpected(
      Error{"there is no run under ./runs; name the run directory with --run-dir"});
}

Result<io::RunLock> take_new_place(const std::string& run_directory) {
  if (Result<void> made = io::make_directories(run_directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  Result<io::RunLock> lock = io::RunLock::take(run_directory);
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

Result<io::RunLock> take_old_place(const std::string& run_directory) {
  Result<io::RunLock> lock = io::RunLock::take(run_directory);
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
