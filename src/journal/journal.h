// The run in a file: SQLite, append-only events, tables for `status` kept in the same transaction.
// Writes only; people read through journal/reader.h, from any process, at any time.
//
// One thread, one process: the run directory's lock (sys/files.h) is held while it is open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/earlier_ends.h"
#include "journal/options.h"
#include "journal/recorder.h"
#include "model/code.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/turn.h"

namespace trainyard::journal {

/// The record of one execution of the program over a run directory.
struct Execution {
  std::string command_line;  ///< Without secrets: reports show it.
  std::string version;       ///< trainyard's.
  std::string host;
  std::string run_directory;  ///< Absolute, links followed.
  std::int64_t yard_pid = 0;
  std::string socket_path;            ///< For `trainyard kill`, to reach the yard; empty: none.
  std::int64_t started_unix_ms = 0;   ///< Wall clock, for people only.
  std::string job_file;               ///< Absolute path.
  std::string job_text;               ///< The unchanged text.
  std::string config_file;            ///< The one that was read, absolute; or empty.
  std::vector<std::string> settings;  ///< Each --set, but for secrets.
  std::string configuration;          ///< The settings in force, as `config show` prints them.
  std::vector<model::Gpu> gpus;       ///< The GPUs for tasks.
  std::string git_commit;             ///< The commit of the working directory; empty outside git.
  std::string git_diff;               ///< Against that commit, at most 1 MiB.
  /// The same as the code of attempts; nothing if it is not known.
  std::optional<model::Code> code = std::nullopt;
  Duration forecast{0};               ///< Expected time of the run; 0: unknown.
  Duration forecast_at_the_worst{0};  ///< The same if sharing GPUs gains nothing.
};

/// Begins the `how` of an interrupted execution (Journal::close()), and is all of it while tasks end.
constexpr const char* kInterrupted = "interrupted";

/// The names of a batch, to be read one by one, so that they are never all in memory. Its tasks are
/// numbered from 0.
struct TaskNames {
  std::function<std::string(model::TaskIndex)> task_id;
  std::function<std::vector<std::pair<std::string, std::string>>(model::TaskIndex)> matrix_values;
  std::function<std::uint64_t(model::TaskIndex)> fingerprint;
};

/// The source of a batch. For the first batch only the command line and the job file are kept here:
/// its text may be edited, and is kept with each execution.
struct BatchSource {
  std::string command_line;  ///< Without secrets: reports show it.
  std::string job_file;      ///< Absolute path.
  std::string job_text;
  std::string config_file;            ///< The one that was read, absolute; or empty.
  std::vector<std::string> settings;  ///< Each --set, but for secrets.
  /// The environment of the submitter, as NAME=value. May hold secrets: it is in the journal, which
  /// only its user may read, and in nothing that is made of it.
  std::vector<std::string> environment;
};

/// The tasks that are added to a run in one go: its job file, or a submission.
struct Batch {
  std::uint32_t number = 1;
  std::shared_ptr<const model::Plan> plan;  ///< Shared with the event that adds it.
  TaskNames names;
  BatchSource source;
};

class Journal final : public Recorder {
 public:
  /// Whether there is a run at `path`: false when there is no journal, or only what a yard left
  /// that was killed while it made one, so that create() is right. An error when what lies there is
  /// none of ours, from another version, or damaged.
  static Result<bool> has_begun(const std::string& path);

  /// Makes a journal and writes down the first batch. A kill leaves all of it or a place that has
  /// not begun. An error when a run has begun there. Costs about 4 microseconds a task.
  static Result<std::unique_ptr<Journal>> create(const std::string& path,
                                                 const std::string& job_name, const Batch& first,
                                                 const Execution& execution,
                                                 const JournalOptions& options = {});

  /// Tasks that had finished and whose results the resumed run does not count.
  struct NotKept {
    int run_again = 0;
    int gone = 0;  ///< No longer in the job file.

    friend bool operator==(const NotKept&, const NotKept&) = default;
  };

  /// Opens an old one for another execution, with the batches that it runs, in the order of their
  /// numbers: those of before (JournalReader::batches), each of which may have been edited, and new
  /// ones. Tasks are identified by batch, group and id, and numbered from 0 over the batches given.
  /// Submissions that were not complete are forgotten. `plans` are those of the batches, with
  /// `before` and `first_attempt` filled in. The cost grows with the batches given, and with the
  /// tasks of other batches that were under way when the last execution died.
  struct Resumed {
    std::unique_ptr<Journal> journal;
    std::vector<std::shared_ptr<const model::Plan>> plans;
    Instant at;        ///< The time of the run at which it continues.
    int finished = 0;  ///< The number of tasks that need not run again.
    NotKept not_kept;
    std::vector<std::string> changes;  ///< Changes of the edit, for users, at most 8 lines.
    EarlierEndCounts ends;             ///< The number of `ends` that were news.
    /// The attempts that were found and are still running. The scheduler is notified of them next
    /// (model::AttemptFound).
    std::set<model::AttemptKey> goes_on;
  };
  /// `ends`: of attempts that ended when the last execution was dead; those that the journal does
  /// not have as running are ignored.
  static Result<Resumed> resume(const std::string& path, const std::vector<Batch>& batches,
                                const Execution& execution, const JournalOptions& options = {},
                                const std::vector<EarlierEnd>& ends = {});

  /// The results of resume() without any write. No yard may be using the journal.
  struct Preview {
    std::vector<std::shared_ptr<const model::Plan>> plans;
    int finished = 0;
    NotKept not_kept;
    std::vector<std::string> changes;
    std::set<std::uint32_t> edited;  ///< The rows of tasks that the job file says otherwise now.
    EarlierEndCounts ends;
  };
  static Result<Preview> preview(const std::string& path, const std::vector<Batch>& batches,
                                 const JournalOptions& options = {},
                                 const std::vector<EarlierEnd>& ends = {});

  ~Journal() override;

  /// From here on all events are kept, and all decisions, by this policy (journal/recording.h).
  /// Before the first turn.
  Result<void> record(const model::Policy& policy);

  /// A turn with a BatchAdded makes that batch count; one that is promised waits for the disk.
  Result<void> commit(const model::Turn& turn) override;

  /// The number of tasks in one call of write_more().
  static constexpr std::uint32_t kTasksAtOnce = 5'000;

  /// Begins to write down a batch, which counts when a turn with its BatchAdded is committed: until
  /// then a kill leaves nothing of it. One at a time; `batch` must stay as it is until that.
  Result<void> begin_batch(const Batch& batch);
  /// Writes the next of its tasks; true when all are there. After an error it must be given up.
  Result<bool> write_more();
  /// Takes away what was written of it.
  Result<void> give_up_batch();

  /// The number of this execution.
  [[nodiscard]] std::int64_t execution() const;
  /// The row of a task in `tasks`, the same in every execution.
  [[nodiscard]] std::uint32_t number_of(model::TaskIndex task) const;

  /// Writes down that the execution has ended, and how. Nothing is committed after that. An error if
  /// the row of the execution is not its own: a task has written rows of another run over it.
  Result<void> close(Instant at, const std::string& how);
  /// Puts the file back if a task has removed or replaced it, or has emptied its log: what is open
  /// here is the file of before. True if that was necessary. Gives its user access to the directory
  /// of the file again, which a task may have taken away. An error if a task has moved that
  /// directory, or put another run in its place: nothing may be written to its path then. After
  /// close(), when no task is running.
  Result<bool> put_back();

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::journal
