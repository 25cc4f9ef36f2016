// Runs groups of tasks on this machine: each task in a process of its own, as memory and CPUs
// allow, tried again with more when memory runs out (fedflow `FedFlow`).
//
//   trainyard::TaskGroup folds{"folds", {.memory = 1_GB}};
//   for (int k = 0; k < 10; ++k) folds.add<Fold>(k);
//   trainyard::Yard yard;
//   if (auto done = yard.run(folds); !done) return complain(done.error().message);
//   for (const auto& task : folds.tasks()) std::cout << task.id() << ' ' << task.result() << '\n';
//
// All that a yard runs is one run: one directory, one journal, one page, one `trainyard status`.
// The same program in the same directory goes on with it: what had finished is kept.
//
// run() forks: the program must have one thread then, or say that it knows better. It changes
// nothing of the process that calls it: no signals, no current directory, no subreaper. Where the
// program is a task of another run, the variables that trainyard set for that task are out of the
// environment while run() works. When the program dies, however it does, its tasks get SIGKILL at
// once, without SIGTERM. Those that the stop token or cancel() ends get SIGTERM first, and SIGKILL
// after a grace.
//
// Belongs to one thread; run() works there until all has ended. Only the stop token may be stopped
// from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/config.h"
#include "trainyard/result.h"
#include "trainyard/task.h"
#include "trainyard/task_group.h"

namespace trainyard {

enum class Fork : std::uint8_t {
  /// run() refuses to work beside other threads, and names them: what they hold locked would stay
  /// locked in every task.
  OneThread,
  /// They are idle, and of libraries that survive a fork (a pool of OpenMP).
  AnyThreads,
};

struct YardOptions {
  std::string name = "yard";
  /// The directory of the run, with its journal, logs, results and reports. One that an earlier
  /// execution of the program has used is gone on with. Empty: runs/<name>, or runs/<name>-2 and so
  /// on when that is there and not empty, in `workdir` or else here.
  std::string directory = {};
  Fork fork = Fork::OneThread;
  /// Ends what runs: run() returns when its tasks have ended, and nothing is run after that.
  std::stop_token stop = {};
  /// Called with notes that are no errors; without one they go to standard error.
  std::function<void(std::string_view)> note = nullptr;
  /// Called at each change of a task's status, in run() and on its thread.
  std::function<void(const Task&)> on_status = nullptr;
  /// Called with the latest progress that a task has reported, and its values, an object: about
  /// once a second, with each reading of the machine. A fraction that is none (not from 0 to 1) is
  /// left out.
  std::function<void(const Task&, std::optional<double>, const Json&)> on_progress = nullptr;
};

/// How the tasks of a run have ended.
struct RunSummary {
  int finished = 0;
  int failed = 0;
  int skipped = 0;  ///< Never started: fail-fast.
  int stopped = 0;  ///< Ended by the stop token.
  int kept = 0;     ///< Those of the finished that an earlier execution of the program has run.
};

/// A message that a task sent.
struct Message {
  std::string source = {};  ///< The id of the task.
  std::string command = {};
  const Json& data;
  std::span<const std::byte> buffer = {};  ///< Valid while the handler runs.
};

class Yard {
 public:
  using Handler = std::function<void(const Message&)>;

  explicit Yard(Config config = {}, YardOptions options = {});
  Yard(Yard&&) = delete;
  Yard& operator=(Yard&&) = delete;
  ~Yard();

  /// To be run by run(), after those added before. The group must live until then.
  void add(TaskGroup& group);

  /// Checks the groups and tasks that were added: names and ids must be unique and usable as names
  /// of directories, options must be valid and must not contradict each other, and each task must
  /// fit on the machine. run() calls this before anything runs.
  [[nodiscard]] Result<void> check();

  /// Runs what was added, group after group, whatever becomes of the tasks: a group starts when the
  /// one before it has ended. An error says that it could not be run: what check() finds, threads,
  /// no place for the journal, stopped before. Nothing that was refused has run; it and those after
  /// it stay added, and may be run when the cause is gone: the summary then has those before it,
  /// too. No error is the death of the keeper of the task processes, which is noted: what ran or
  /// waited is stopped, and the next group gets a new keeper.
  [[nodiscard]] Result<RunSummary> run();
  /// The same for one group: for those of its tasks that this yard has not run yet, so that a group
  /// may grow and be run again. Its ids must differ from those of all groups that have run, if
  /// `task.allow-duplicate-id` is false or groups have no directories.
  [[nodiscard]] Result<RunSummary> run(TaskGroup& group);
  /// The same for one task, in a group "default", "default-2" and so on (fedflow `execute_task`).
  [[nodiscard]] Result<RunSummary> run(Task& task);

  /// Ends a task that runs or waits, as `trainyard kill` does; it becomes KILLED or SKIPPED. For
  /// callbacks. False when it is not being run, or has ended.
  bool cancel(const Task& task);

  /// Sets the handler for messages of the task `source`. An earlier handler stays, with a note and
  /// `false`, unless `overwrite` is set (fedflow `register_handler`). What a handler throws is
  /// noted, and the next message is handed on.
  bool on_message(std::string source, Handler handler, bool overwrite = false);
  /// Sets the handler for messages that have none of their own. Without it they are noted.
  void on_any_message(Handler handler);

  /// The directory of the run; empty before the first run().
  [[nodiscard]] const std::string& directory() const;

 private:
  struct State;
  static std::vector<Task*> tasks_of(const TaskGroup& group);
  [[nodiscard]] Result<RunSummary> run(TaskGroup& group, const std::vector<Task*>& tasks);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
