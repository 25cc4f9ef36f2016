// Waits of workers for each other: until so many are ready, and until all have come to a barrier.
// Pure; one thread; its callers give it the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "wire/parallel_record.h"
#include "wire/worker.h"
#include "workers/roll.h"

namespace trainyard::workers {

/// The worker that asked, and the number of its question.
struct Asker {
  int node = 0;
  std::uint64_t sequence = 0;
};
/// For what who asked has waited.
struct MeetingWait {
  wire::WaitKind kind = wire::WaitKind::Ready;
  std::string name = {};
  Duration since{0};
  std::vector<int> whom = {};  ///< The last of those that were missing.
};
struct MeetingAnswer {
  Asker to;
  wire::WorkerReply reply;
  bool met = false;  ///< At a barrier: what others sent before it is to come first.
  /// By the number of a machine: its mark that is to have come first.
  std::map<int, std::uint64_t> marks = {};
  std::optional<MeetingWait> waited = {};
};

/// The request with the time that is left of it at `now`. Nothing: its worker has given up, and
/// must not count as one that has come.
std::optional<wire::WorkerRequest> still_asked(wire::WorkerRequest request, Duration now);

class Meetings {
 public:
  /// So many requests of one worker may wait.
  static constexpr std::size_t kWaitingMax = 256;
  /// Number of workers that are remembered to have left a barrier before it was passed.
  static constexpr std::size_t kLeftMax = 1'024;

  explicit Meetings(const Roll& roll) : roll_(roll) {}

  using Answers = std::vector<MeetingAnswer>;
  Answers ask(Asker asker, const wire::ReadyRequest& request, Duration now);
  Answers ask(Asker asker, const wire::BarrierRequest& request, Duration now);
  /// Ends the wait of that request as its deadline would. Nothing where it does not wait any more.
  Answers withdraw(Asker asker, Duration now);
  /// The connection of the worker has ended: it waits no more. Until its end is known it counts as
  /// one that came and gave up.
  Answers disconnect(int node);
  /// The roll has changed. `ended`: the life of that worker is over, and what it asked and where it
  /// came is forgotten.
  Answers look(std::optional<int> ended = std::nullopt);
  /// Ends the waits whose deadline has passed.
  Answers overdue(Duration now);
  [[nodiscard]] std::optional<Duration> next_deadline() const;

  /// For people: who waits for whom at which barrier.
  struct Waiting {
    std::string barrier;
    std::vector<int> arrived;
    std::vector<int> missing;
  };
  [[nodiscard]] std::vector<Waiting> waiting() const;
  /// All that goes on: who waits, and for whom.
  [[nodiscard]] std::vector<std::pair<int, MeetingWait>> open_waits() const;

 private:
  struct Ready {
    Asker asker;
    int workers = 0;
    Duration since{0};
    Duration deadline{0};
  };
  struct Arrival {
    std::uint64_t sequence = 0;
    Duration since{0};
    Duration deadline{0};
  };
  struct Barrier {
    std::vector<std::string> roles;
    std::map<int, Arrival> arrived;
    std::vector<int> missing = {};  ///< When it was last looked at.
  };
  [[nodiscard]] std::vector<int> missing_at(const Barrier& barrier) const;
  /// Ends the waits of the worker, and remembers the barriers at which it was.
  void leave_all(int node);
  void remember_left(const std::string& barrier, int node);
  /// Names the missing workers, apart from them those that had come and left.
  [[nodiscard]] std::string late_text(const std::string& name, std::vector<int> missing) const;
  /// The workers that have failed and never reach the barrier.
  [[nodiscard]] std::vector<int> failed_at(const Barrier& barrier) const;
  /// `known` has none of `roles`, and no worker can have one: a barrier of them is a mistake.
  [[nodiscard]] bool lacks_all(const std::set<std::string>& known,
                               const std::vector<std::string>& roles) const;
  /// The ends of those that never will be ready; empty: so many still can.
  [[nodiscard]] std::vector<std::string> never_ready(const Ready& ready) const;
  [[nodiscard]] std::vector<int> not_ready() const;
  [[nodiscard]] static MeetingWait wait_at(const std::string& name, const Barrier& barrier,
                                           const Arrival& arrival);
  [[nodiscard]] static MeetingAnswer answer_to(const std::string& name, const Barrier& barrier,
                                               const std::pair<const int, Arrival>& arrival);
  /// Whether nobody waits at it any more: all have come, or one never will.
  bool is_over(const std::string& name, Barrier& barrier, Answers& answers) const;
  [[nodiscard]] std::vector<std::string> names_of(const std::vector<int>& nodes) const;
  /// And how many are missing of whom nobody knows yet.
  [[nodiscard]] std::vector<std::string> missing_names(const std::vector<int>& nodes) const;
  [[nodiscard]] std::size_t waiting_of(int node) const;
  [[nodiscard]] wire::WorkerReply late(const Ready& ready) const;

  const Roll& roll_;
  std::vector<Ready> ready_;
  std::vector<int> missing_;  ///< Those that were not ready when it was last looked.
  std::map<std::string, Barrier> barriers_;
  /// The barrier and the node of each worker that left one before it was passed, has not come back,
  /// and whose end is not known.
  std::deque<std::pair<std::string, int>> left_;
};

}  // namespace trainyard::workers
