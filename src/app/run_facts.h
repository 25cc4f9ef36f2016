// The facts by which typed words are understood: the user's runs, their tasks, and files.
//
// RunFacts is the seam between the rules (app/run_name.h, app/task_selection.h) and the machine:
// the program reads runs from the disk, a test says what is there. From one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/reader.h"

namespace trainyard::app {

enum class PathKind : std::uint8_t {
  Missing,       ///< No file, or another kind of file, such as a pipe.
  File,          ///< A regular file, links followed.
  Directory,     ///< A directory without a run.
  RunDirectory,  ///< A directory that has a run.
};

/// A run that a word may mean.
struct KnownRun {
  std::string directory;        ///< Absolute.
  std::string real;             ///< `directory` with links followed, by which runs are compared.
  std::string shown;            ///< `directory` as seen from the current directory.
  std::uint32_t number = 0;     ///< 0: the run has none on this machine.
  bool is_running = false;      ///< A process runs it now.
  bool is_queued = false;       ///< The queue will start or resume it.
  bool is_gone = false;         ///< The directory no longer contains it.
  bool has_journal = false;     ///< The run has, or had, tasks.
  bool is_unreadable = false;   ///< The journal cannot be read.
  std::int64_t started_ms = 0;  ///< Unix time when its last execution started; 0: unknown. Failed
                                ///< attempts to start a run there do not change it.
  std::int64_t created_ms = 0;  ///< When it was submitted, or started first; 0: unknown.
  std::int64_t ended_ms = 0;    ///< When its last execution ended; 0: unknown, or it has not ended.

  [[nodiscard]] bool is_active() const { return is_running || is_queued; }
  /// "run 46 ('runs/digits')"; without a number the directory alone.
  [[nodiscard]] std::string name() const;
  /// The word that means this run alone, quoted for a shell.
  [[nodiscard]] std::string own_word() const;
};

/// The tasks of one run.
class RunTasks {
 public:
  RunTasks() = default;
  RunTasks(const RunTasks&) = delete;
  RunTasks& operator=(const RunTasks&) = delete;
  virtual ~RunTasks() = default;

  /// The tasks whose id or "group/id" this is, or similar names. Fast in a run of many tasks.
  virtual Result<journal::JournalReader::Lookup> look_up(std::string_view name) = 0;
  /// All tasks, in the order of the run.
  virtual Result<std::vector<journal::TaskRow>> all() = 0;
  /// Whether the run is not active: tasks that seem to run are lost.
  virtual bool is_over() = 0;
};

/// Paths are absolute or seen from the current directory.
class RunFacts {
 public:
  RunFacts() = default;
  RunFacts(const RunFacts&) = delete;
  RunFacts& operator=(const RunFacts&) = delete;
  virtual ~RunFacts() = default;

  [[nodiscard]] virtual PathKind kind_of(const std::string& path) const = 0;
  /// Whether a directory has a directory runs/.
  [[nodiscard]] virtual bool has_runs_in(const std::string& directory) const = 0;

  /// The run of this number, also if it is gone; nothing if the number was never assigned, or is
  /// forgotten.
  [[nodiscard]] virtual std::optional<KnownRun> of_number(std::uint32_t number) const = 0;
  /// The run in this directory itself, also if the directory of a submission in the queue is gone.
  [[nodiscard]] virtual std::optional<KnownRun> in(const std::string& directory) const = 0;
  /// The runs in the runs/ of a directory.
  [[nodiscard]] virtual std::vector<KnownRun> below(const std::string& directory) const = 0;
  /// The runs of a job file. An error if the file cannot be read.
  [[nodiscard]] virtual Result<std::vector<KnownRun>> of_job(const std::string& job_file) const = 0;
  /// The runs of the current directory: in its runs/, in the runs/ of the configured workdir, and
  /// those that were started or submitted from it.
  [[nodiscard]] virtual std::vector<KnownRun> here() const = 0;
  /// The runs of here() that have this name.
  [[nodiscard]] virtual std::vector<KnownRun> here_named(const std::string& name) const = 0;
  /// The runs of this name on this machine, in any directory.
  [[nodiscard]] virtual std::vector<KnownRun> anywhere_named(const std::string& name) const = 0;
  /// The run with the largest number on this machine.
  [[nodiscard]] virtual std::optional<KnownRun> last() const = 0;

  /// The tasks of the run in this directory. An error if it has not started, or its journal cannot
  /// be read.
  [[nodiscard]] virtual Result<std::unique_ptr<RunTasks>> tasks_of(
      const std::string& run) const = 0;
};

}  // namespace trainyard::app
