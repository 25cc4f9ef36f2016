// Several processes that each run one program, or one function, and hear each other's events
// (DI-engine `Parallel`):
//
//   const auto result = trainyard::parallel({.workers = 3, .roles = {{role::kLearner},
//                                            {role::kCollector}, {role::kCollector}}},
//                                           [](trainyard::Worker& worker) {
//     trainyard::Pipeline<Train> loop(worker.pipeline());
//     worker.connect(loop);             // its events go on to the others, and so does its end
//     ...
//     if (const auto ended = loop.run(); !ended) throw std::runtime_error(ended.why);
//   });
//   if (!result) std::cerr << result.text() << '\n';
//
// The parent relays what they say to each other, and a keeper of its own ends them all when the
// parent is gone (process/keeper.h). Those of several machines meet over NATS (`attach_to`).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/step_options.h"

namespace trainyard {

class Worker;

/// The routes of events between workers.
enum class Topology : std::uint8_t {
  Mesh,   ///< All hear all.
  Star,   ///< The first hears all and is heard by all; the others do not hear each other.
  Alone,  ///< Nobody hears anybody.
};
/// "mesh", "star", "alone".
std::string_view to_text(Topology topology);

/// The treatment of an event for a worker that reads more slowly than events arrive.
enum class WhenFull : std::uint8_t {
  Block,       ///< Whoever emits waits until there is room: nothing is lost.
  DropOldest,  ///< The oldest that waits for it is dropped, and counted: kEventsLost.
  Fail,        ///< It is not told; on the bus of who emitted, that is an error.
};
/// "block", "drop oldest", "fail".
std::string_view to_text(WhenFull when_full);

struct QueueLimits {
  /// Limits of the queue for one worker in the router, in addition to its socket. With Block they
  /// apply to the events of each machine of the run separately.
  std::size_t events_max = 8'192;
  std::size_t bytes_max = std::size_t{16} << 20;
  WhenFull when_full = WhenFull::Block;
};

/// How servers of NATS are spoken to, beside what their addresses say.
struct NatsOptions {
  /// Either a token or a user; neither where an address of `attach_to` has one.
  std::string token = {};
  std::string user = {};
  std::string password = {};
  /// The public nkey of a user, and a file with its seed: both or none.
  std::string nkey = {};
  std::string nkey_seed_file = {};
  /// Whose certificates are trusted; for `tls://` only. Empty: those that the machine trusts.
  std::string ca_file = {};
  /// The name in the certificate, where that is not the host of the address; for `tls://` only.
  std::string host_name = {};
  /// The run ends after this time without a server or without a message of one machine.
  std::chrono::milliseconds lost_after{60'000};
};

struct ParallelOptions {
  int workers = 1;
  Topology topology = Topology::Mesh;
  /// Their numbers. None: from 0 on. One: from it on. Otherwise one for each, all different, from 0
  /// to 65,535 (DI-engine `node_ids`).
  std::vector<int> node_ids = {};
  /// A port for each, all different, for what it listens on itself; padded like node_ids, from 50515
  /// on (DI-engine `ports`). The events need none.
  std::vector<int> ports = {};
  /// Labels of all workers, in addition to those of a pipeline.
  std::vector<std::string> labels = {};
  /// The roles of each worker, in the order of the workers, all different. A worker with an empty
  /// list has every role, and so has each worker beyond the end.
  std::vector<std::vector<Role>> roles = {};
  QueueLimits queue = {};
  /// A worker that fails begins again, the others go on: after `retry_delay`, then twice that, and
  /// so on up to half a minute.
  bool auto_recover = false;
  int max_retries = std::numeric_limits<int>::max();
  std::chrono::milliseconds retry_delay{200};
  /// Between asking all to end and killing those that have not. TERM comes after half of it to
  /// those that have joined, at once to the others.
  std::chrono::milliseconds stop_grace{10'000};
  /// Where worker-<n>.log is written, with what each prints. Empty: a directory that goes when all
  /// has gone well, and what they print to standard output goes to that of this program.
  std::string directory = {};
  /// Each line that a worker prints is also printed here, to standard error, behind its number:
  /// "[2] epoch 3". For programs whose users look on; needs `directory`.
  bool show = false;
  /// Where workers of other machines are met: "nats://[token@|user:password@]host:port", or tls://.
  /// Several are the servers of one cluster, tried in this order.
  std::vector<std::string> attach_to = {};
  /// The name of the run: all its machines give the same, other runs of these servers another. Of
  /// letters, digits, '-' and '_'. Their node ids must all differ, so give node_ids.
  std::string run = {};
  /// Another machine has begun the run, or will. That one counts barriers and keeps what is
  /// retained: when it ends, all end.
  bool joins = false;
  /// On the machine that begins the run: the number of workers on all machines that join. Its
  /// events wait for these workers, too.
  int workers_elsewhere = 0;
  NatsOptions nats = {};
  /// Called with notes that are no errors. Empty: they go to standard error.
  std::function<void(std::string_view)> note = {};
};

/// A worker that failed, and did not begin again.
struct WorkerFailure {
  int node = 0;
  /// The exception that it threw, or how its process ended: "killed by signal 9". Nested exceptions
  /// (std::nested_exception) follow, one a line.
  std::string what;
  std::string stderr_end;  ///< The last lines of what it printed to standard error.
  int signal = 0;          ///< The signal that killed its process; 0: it exited, or was cut off.
};

struct [[nodiscard]] ParallelResult {
  std::vector<WorkerFailure> failures;  ///< The first one is why all were ended.
  /// Why they could not be started, or could not go on: the servers or machines of the run are
  /// gone.
  std::string error;
  bool started = false;  ///< Workers have been started: the error came later.
  bool stopped = false;  ///< The stop token ended it.
  int retries = 0;       ///< How often workers began again.
  explicit operator bool() const { return failures.empty() && error.empty(); }
  /// "worker 2 failed: std::runtime_error: boom", and what it printed last.
  [[nodiscard]] std::string text() const;
};

/// Runs `work` in so many forks of this process, and returns when all have ended. What one of them
/// throws ends all of them, unless `auto_recover`. One worker alone runs here, in this process and
/// thread, and what it throws is in the result all the same.
///
/// From a thread that may fork: other threads of this program are not there in the workers, nor
/// what they hold locked. Costs some milliseconds to start.
ParallelResult parallel(const ParallelOptions& options, std::function<void(Worker&)> work,
                        const std::stop_token& stop = {});

/// The same with a program, which joins by Worker::from_environment(). It need not.
ParallelResult parallel(const ParallelOptions& options, const std::vector<std::string>& command,
                        const std::stop_token& stop = {});

}  // namespace trainyard
