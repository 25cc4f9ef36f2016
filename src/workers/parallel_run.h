// One parallel run from its beginning to its end: the keeper that starts the workers, the door by
// which they come, the router between them, and what becomes of those that fail.
//
// All on the thread that calls run().
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "link/frame_server.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "sys/event_loop.h"
#include "sys/tail.h"
#include "trainyard/parallel.h"
#include "trainyard/worker.h"
#include "wire/hello.h"
#include "wire/worker.h"
#include "workers/child_home.h"
#include "workers/datagram.h"
#include "workers/machine_words.h"
#include "workers/machines.h"
#include "workers/nats_bridge.h"
#include "workers/parallel_options.h"
#include "workers/router.h"
#include "workers/run_logs.h"
#include "workers/waits.h"

namespace trainyard::workers {

/// The record of a parallel run as a file that is always whole: written when it is made, in the next
/// turn of the loop and then once a second, or more seldom, so that it takes no more than a fiftieth
/// of the time.
///
/// Belongs to the thread of its event loop.
class RecordFile {
 public:
  static constexpr Duration kEvery{1'000};

  struct Options {
    std::string path;
    std::function<std::string()> text;
  };
  RecordFile(sys::EventLoop& loop, Options options);
  RecordFile(RecordFile&&) = delete;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  /// At once, for the last time. An error: why it, or one before it, could not be written.
  Result<void> write_last();

 private:
  void write();
  void write_after(Duration delay);

  sys::EventLoop& loop_;
  Options options_;
  std::optional<sys::EventLoop::TimerId> timer_;
  Result<void> written_;
};

class ParallelRun {
 public:
  struct Work {
    std::function<int()> function;       ///< In a fork; its exit code. Or:
    std::vector<std::string> command;    ///< A program and its arguments.
    std::vector<int> stop_signals = {};  ///< Signals to this process that end all workers.
  };

  /// Periods that tests shorten.
  struct Periods {
    Duration ask_every = Machines::kAskEvery;  ///< See Machines::Options.
    /// When the run ends: the time that another machine has besides the grace of its workers, and
    /// after which it is not waited for if no message comes from it.
    Duration others_within{5'000};
  };

  ParallelRun(const ParallelOptions& options, std::vector<WorkerPlan> plan, Periods periods);
  ParallelRun(ParallelRun&&) = delete;
  ParallelRun& operator=(ParallelRun&&) = delete;
  ~ParallelRun();

  ParallelResult run(Work work, const std::stop_token& stop);

  /// The first of its signals that came, also while the run was ending; 0: none did.
  [[nodiscard]] int stop_signal() const { return stop_signal_; }

 private:
  static constexpr int kStrangerNotesMax = 5;

  struct Life {
    WorkerPlan plan;
    int index = 0;
    std::uint32_t number = 0;                    ///< 1, 2, ...: which life it is.
    std::string token;                           ///< Admits this life, for one connection.
    std::optional<link::ConnectionId> arriving;  ///< Let in, and not with the router yet.
    bool running = false;
    std::int64_t process = 0;  ///< While it runs; 0: the keeper has not started it yet.
    bool listens = false;      ///< It has joined, and receives the order to end.
    std::string refused;       ///< Why it was cut off, whatever it does since.
    bool in_pipeline = false;  ///< The pipeline that it began last has not finished.
    std::optional<wire::FinishWord> finish;
    std::optional<sys::EventLoop::TimerId> timer;
    std::unique_ptr<sys::Tail> printed;
    std::string line;  ///< The part of its last line that has come.
  };

  Result<void> prepare(Work work);
  /// Before there is a keeper, which holds the lock of the directory, too. None of a private one.
  Result<void> take_logs();
  /// Where servers are not there yet they are waited for.
  Result<void> attach();
  std::expected<std::unique_ptr<Bridge>, NoNats> wait_for_servers(const NatsBridgeOptions& servers);
  /// Waits, before any worker is started, until the run is this machine's, or another machine
  /// refuses it, or this user may not publish.
  void wait_until_begun();
  /// Waits until this machine is admitted, and takes in the answer.
  void join_others();
  void make_router(std::unique_ptr<const Router::Options::Elsewhere> others);
  [[nodiscard]] Router::Options::Elsewhere elsewhere();
  /// Those of other machines have not ended, or have not come yet.
  [[nodiscard]] bool waits_for_others() const;
  /// Says after a while who has not come, and ends the run when that takes too long.
  void limit_the_wait_for_others();
  /// Waits for no machine that does not answer. One that does has the grace of its workers.
  void give_up_on_silent_others();
  void leave_others();
  /// The other machines cannot be reached any more, so all workers here end.
  void is_cut_off(const std::string& why);
  /// Notifies the other machines of the end of the run, with the reason that this machine knows.
  void end_others(const std::string& why);
  /// Another machine says that the run ends.
  void ended_elsewhere(const MachineEnd& end);
  void failed_elsewhere(int node, const std::string& why);
  void open_doors();
  void start(Life& life);
  [[nodiscard]] model::Launch launch_of(const Life& life) const;
  [[nodiscard]] std::string log_of(const Life& life) const;
  [[nodiscard]] Result<void> admit(link::ConnectionId connection, const wire::Hello& hello);
  /// Hands the connection that was let in to the router; no effect where it has it already.
  void take_over(Life& life);
  void take_news(const process::KeeperNews& news);
  void has_ended(Life& life, const model::End& end);
  void has_lived(const Life& life, const std::string& outcome);
  void has_failed(Life& life, const std::string& what, int signal = 0);
  void end_all(const std::string& why);
  void signal_those_that_run(int signal);
  void signal_life(const Life& life, int signal);
  /// The router takes nothing more of it, so it is to end.
  void cut_off_worker(int node, const std::string& why);
  [[nodiscard]] bool is_over() const;
  /// None runs, and none is to begin again.
  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] bool comes_again(const Life& life) const;
  [[nodiscard]] Life* find(const model::AttemptKey& key);
  Life* life_of_node(int node);
  void show_printed();
  void show(Life& life, const std::string& text);
  [[nodiscard]] std::string status() const;
  /// Before the first log: by its record the next run knows whose logs these are, also when this
  /// one is killed. Where nothing is kept beside the result there is no record.
  void keep_record();
  void write_record();
  [[nodiscard]] std::string record_text() const;
  void note(const std::string& what) const;
  /// Reports a connection that was no worker's; the first ones alone.
  void note_stranger(std::string_view what);

  const ParallelOptions& options_;
  const Periods periods_;
  std::vector<Life> lives_;
  ParallelResult result_;
  Work work_;
  bool ending_ = false;
  int stop_signal_ = 0;
  bool gave_up_on_others_ = false;  ///< Other machines are waited for no more.
  int strangers_ = 0;               ///< Connections that were turned away or cut off.
  std::string broken_;              ///< Why nothing can be started or ended any more.
  Waits waits_;

  sys::EventLoop loop_;
  std::unique_ptr<ChildHome> home_;
  std::unique_ptr<const RunLogs> logs_;
  std::unique_ptr<link::FrameServer> server_;
  std::unique_ptr<Machines> machines_;  ///< None: all workers are of this machine.
  std::unique_ptr<Router> router_;
  std::unique_ptr<RecordFile> record_;
  std::optional<MachineWelcome> welcome_;  ///< Received by a machine that joins.
  std::string cut_off_;                    ///< Why all were ended.
};

/// Forks the workers, also if there is only one.
ParallelResult run_in_forks(const ParallelOptions& options, std::function<void(Worker&)> work,
                            const std::stop_token& stop, ParallelRun::Periods periods);

}  // namespace trainyard::workers
