// One unit of training, as a C++ class: load() what it needs, then train(device).
//
//   struct Fold : trainyard::Task {
//     explicit Fold(int k) : Task({.id = std::to_string(k), .memory = 500_MB}), k(k) {}
//     void load() override { data = read_fold(k); }
//     trainyard::Json train(const trainyard::Device& device) override { return {{"acc", ...}}; }
//     ...
//
// Each task runs in a process of its own, a fork of the program at the moment of Yard::run(): what
// was loaded before is shared, and what the task changes in itself stays in that process. Files
// that the program has open stay open there, with one position for all. Only its result comes back
// (fedflow `Task`). Many wait with what they loaded while a few train.
//
// A task belongs to the thread that runs the yard; load() and train() run in the other process, on
// its only thread, and may start threads there. Those may call progress(), report() and send(), at
// the same time and until train() returns. While the task waits for its device such a call waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainyard/bytes.h"
#include "trainyard/json.h"  // IWYU pragma: export
#include "trainyard/result.h"
#include "trainyard/status.h"
#include "trainyard/task_options.h"  // IWYU pragma: export
#include "trainyard/task_outcome.h"

namespace trainyard {

/// The device on which a task trains.
struct Device {
  /// "cpu", or "cuda:1": the second of the GPUs that the process sees; "cuda:0,cuda:1" of several.
  std::string name = {};
  /// The most memory that this process should take of each GPU, which others share
  /// (gpu_memory_limit); 0: no limit. Pass it to the framework: nothing else keeps a C++ program to
  /// it.
  Bytes memory_max = {};
};

struct TaskState;

class Task {
 public:
  Task();
  explicit Task(TaskOptions options);
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task();

  /// CPU, disk, memory; there is no device yet. May throw: std::bad_alloc, and what says that
  /// memory ran out, starts the task again in a new process; anything else fails it.
  virtual void load() {}

  /// Returns the result, an object of at most 1 MiB as text, nested at most 64 deep; null is none;
  /// of anything else nothing is kept, with a note of the yard.
  /// May throw, as load(): after out of memory it is called again on the same object when there is
  /// room at once, else in a new process after load(). A process that it forks is not the task and
  /// must not come back from here: where one does it is ended, with a line in the task's log.
  virtual Json train(const Device& device) = 0;

  [[nodiscard]] const std::string& id() const;
  [[nodiscard]] Status status() const;
  /// The outcome; None while it may still run.
  [[nodiscard]] TaskOutcome outcome() const;
  /// The exit code of the last attempt that exited by itself with another code than 0; for a crash,
  /// 128 plus the number of the signal (139: SIGSEGV).
  [[nodiscard]] int exit_code() const;
  /// It had finished in an earlier execution of the program, and did not run in this one.
  [[nodiscard]] bool is_kept() const;
  /// It has a process now.
  [[nodiscard]] bool is_alive() const;
  /// The object that train() returned in its process, with report()ed values; before that an empty
  /// object.
  [[nodiscard]] Json result() const;
  /// Why it failed, in one line, and all there is to say: nested exceptions. Empty when it did not.
  [[nodiscard]] const std::string& message() const;
  [[nodiscard]] const std::string& traceback() const;
  /// Where it failed, if it did.
  [[nodiscard]] std::optional<Stage> failed_in() const;

  /// How often it began to load and to train, and how long that took the last time.
  [[nodiscard]] int load_numbers() const;
  [[nodiscard]] int train_numbers() const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> load_time() const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> train_time() const;

  /// Where what it writes belongs, and its current directory in load() and train(). Empty before a
  /// yard has started it.
  [[nodiscard]] const std::string& task_dir() const;

 protected:
  // For load() and train(), in the process of the task. Outside of it they do nothing.

  /// The number of this process among the ranks of the task, from 0; 0 of 1 in a task of one.
  [[nodiscard]] int rank() const;
  [[nodiscard]] int ranks() const;

  /// How far it is, from 0 to 1, and what it has come to: shown live, and kept in the journal.
  void progress(double fraction);
  void progress(double fraction, const Json& values);
  /// A field of the result, early: it is kept even when the task fails later (fedflow `set_item`).
  /// With several ranks, rank 0 reports it. A new key costs what it adds, but for one in each
  /// page of the file; that one, and a key that was reported before, cost writing the whole result.
  void report(const std::string& key, const Json& value);
  /// To a handler in the program that runs the yard (Yard::on_message). The data has at most
  /// 100 KiB. A buffer of more than a MiB is copied once, however large it is: it goes by memory
  /// that both processes map. Waits while the program has two of these that it has not handled. An
  /// error says why it was not sent: too long, no memory for the buffer, or why the yard has closed
  /// the connection. Without an error it is on its way, and messages of one thread come in order.
  [[nodiscard]] Result<void> send(const std::string& command, const Json& data,
                                  std::span<const std::byte> buffer = {});

 private:
  friend class TaskAccess;
  std::unique_ptr<TaskState> state_;
};

}  // namespace trainyard
