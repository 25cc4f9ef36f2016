// `trainyard status` and the table at the end of a run, read from the journal. Reads it and writes
// text; asks no clock and no process: the caller says what time it is and whether the yard lives.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/reader.h"
#include "model/ids.h"
#include "report/sink.h"
#include "report/status_text.h"
#include "report/table.h"

namespace trainyard::report {

struct StatusRequest {
  std::string run_directory;            ///< As the user typed it: the output shows it.
  std::optional<std::uint32_t> number;  ///< The number of the run on this host.
  /// The runs that it needs and that ran again after it had started.
  std::vector<std::uint32_t> needs_run_again = {};
  std::string runs_again = {};     ///< See StatusView.
  std::string queue_resumes = {};  ///< See StatusView.
  bool yard_lives = false;         ///< A process holds the run directory's lock,
  bool yard_suspended = false;     ///< and was sent a SIGSTOP or the like.
  /// The time that tasks of a run that died may still run; zero or less: none runs.
  Duration tasks_run_for{0};
  std::vector<std::int64_t> processes_left = {};  ///< See run/noted_ends.h.
  std::int64_t now_unix_ms = 0;
  /// The tasks to show; nothing: the run as a whole.
  std::optional<std::set<model::TaskIndex>> only = std::nullopt;
};

/// Costs O(groups + running + failed + warned), not O(tasks).
Result<StatusView> read_status(journal::JournalReader& reader, const StatusRequest& request);

/// Text for people; with `table.all` the table of every task follows, however many there are. With
/// `only` some tasks it is their rows, by group. Costs O(tasks) with any of these, and for an ended
/// run whose attempts ran more than one code; else as read_status().
Result<void> write_status(journal::JournalReader& reader, const StatusRequest& request,
                          const TableOptions& table, Sink& sink);

/// JSON for programs; with `all` every task in "tasks", and of `only` some these.
Result<void> write_status_json(journal::JournalReader& reader, const StatusRequest& request,
                               bool all, Sink& sink);

/// The tables of all groups, which a run prints at its end.
Result<void> write_tables(journal::JournalReader& reader, const TableOptions& options, Sink& sink);

}  // namespace trainyard::report
