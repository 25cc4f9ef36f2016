// Runs groups of tasks on this machine: each task in a process of its own, as memory and CPUs
// allow, tried again with more when memory runs out (fedflow `FedFlow`).
//
//   trainyard::TaskGroup folds{"folds", {.memory = 1_GB}};
//   for (int k = 0; k < 10; ++k) folds.add<Fold>(k);
//   trainyard::Yard yard;
//   if (auto done = yard.run(folds); !done) return complain(done.error().message);
//   for (const auto& task : folds.tasks()) std::cout << task.id() << ' ' << task.result() << '\n';
//
// run() forks: the program must have one thread then, or say that it knows better. It changes
// nothing of the process that calls it: no signals, no current directory, no subreaper. When the
// program ends, however it does, its tasks end within a second.
//
// Belongs to one thread; run() works there until all has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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
  /// They are idle, and of libraries that bear a fork (a pool of OpenMP).
  AnyThreads,
};

struct YardOptions {
  std::string name = "yard";
  /// Where each group gets a directory, with a journal, logs, results and a report; empty:
  /// runs/<name>, or runs/<name>-2 and so on when that is there and not empty.
  std::string directory;
  Fork fork = Fork::OneThread;
  /// Told what is worth knowing and no error; without one it goes to standard error.
  std::function<void(std::string_view)> note;
};

/// How the tasks of a run have ended.
struct RunSummary {
  int finished = 0;
  int failed = 0;
  int skipped = 0;  ///< Never started: fail-fast.
  int stopped = 0;
};

/// What a task sent.
struct Message {
  std::string source;  ///< The id of the task.
  std::string command;
  const Json& data;
  std::span<const std::byte> buffer;  ///< Valid while the handler runs.
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

  /// Runs what was added, group after group, whatever becomes of the tasks: a group starts when the
  /// one before it has ended. An error says that it could not be run: threads, names that occur
  /// twice, tasks that can never fit, no place for the journal. Everything that could be run has
  /// ended then.
  Result<RunSummary> run();
  /// The same for one group. Its ids must differ from those of all groups that have run, if
  /// `task.allow-duplicate-id` is false.
  Result<RunSummary> run(TaskGroup& group);
  /// The same for one task, in a group "default", "default-2" and so on (fedflow `execute_task`).
  Result<RunSummary> run(Task& task);

  /// Who hears what the task `source` sends. One that is there stays, with a note and `false`,
  /// unless `overwrite` (fedflow `register_handler`). What a handler throws is noted, and the next
  /// message is handed on.
  bool on_message(std::string source, Handler handler, bool overwrite = false);
  /// Who hears what nobody else does. Without one it is noted.
  void on_any_message(Handler handler);

  /// Where the groups have their directories; empty before the first run.
  [[nodiscard]] const std::string& directory() const;

 private:
  struct State;
  Result<RunSummary> run(TaskGroup& group, const std::vector<Task*>& tasks);
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
