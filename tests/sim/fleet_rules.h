// Watches a simulated run on several machines from outside. sim/checkers.h has the rules for each
// event on one machine; these hold wherever tasks run:
//
//   * no two attempts at a task run at once, on whichever machines: by the decisions here, by the
//     processes where they are started (sim/made_up_fleet.h);
//   * no attempt is lost: each that is decided is carried out, its end is told before the run is
//     over, and no process outlives it;
//   * a command is for a machine that has joined, was looked at, and is not gone; nothing starts on
//     one that is silent; one for an attempt is given while that runs;
//   * nothing of a machine is promised twice: CPUs, memory, parts of its GPUs;
//   * a task starts where it fits when it has the machine to itself;
//   * nothing starts on a machine that is taken away in a moment, and what runs there is told to
//     end before that;
//   * a task that a machine could not start does not fail for that;
//   * statuses follow the arrows of the picture, and in the end each task has its verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/turn.h"
#include "sim/faults.h"
#include "sim/watcher.h"

namespace trainyard::sim {

class FleetRules final : public Watcher {
 public:
  /// All of them must outlive it. The plan is that of all batches.
  FleetRules(const model::Plan& plan, const model::Policy& policy, FaultCounts& counts)
      : plan_(plan), policy_(policy), counts_(counts), tasks_(plan.tasks.size()) {}

  void offered(const model::Turn& turn, bool committed) override;
  void carried_out(const model::Command& command) override;
  void waits(std::optional<Instant> until) override;
  void over(bool gave_up, std::size_t processes_left) override;

  void complain(std::string what) override;
  [[nodiscard]] const std::optional<std::string>& complaint() const override { return complaint_; }

 private:
  /// An attempt that was decided and whose end was not reported.
  struct Held {
    model::AttemptKey key;
    model::Request promise;
    model::Site site;
    bool told_to_end = false;
  };
  struct Machine {
    model::Capacity capacity;
    std::optional<Instant> last_term;  ///< The latest time for TERM to all there.
    bool was_read = false;
    bool is_silent = false;
    bool is_gone = false;
  };
  struct Seen {
    Status status = Status::Init;
    model::Verdict verdict = model::Verdict::None;
    std::uint32_t attempt = 0;
  };

  void expect(bool holds, std::string_view rule);
  void expect_of(model::TaskIndex task, bool holds, std::string_view rule);
  void look_at(const model::Event& event, const model::Decision& decision);
  void happened(const model::Event& event);
  void joined(const model::MachineJoined& event);
  void changed(const model::TaskChanged& change);
  void decided(const model::StartAttempt& command);
  void decided(const model::GrantDevice& command);
  void decided(const model::StopAttempt& command) { ends(command.key); }
  void decided(const model::SignalAttempt& command) { ends(command.key); }
  void decided(const model::Answer& /*command*/) {}
  void forget_what_never_was();
  void concerns(model::AttemptKey key);
  void ends(model::AttemptKey key);
  void check_time();
  void check_book(model::MachineIndex machine, model::TaskIndex of);
  void check_gpus(const Machine& there, const Held& own);
  [[nodiscard]] bool is_there(model::MachineIndex machine) const;

  const model::Plan& plan_;
  const model::Policy& policy_;
  FaultCounts& counts_;
  std::optional<std::string> complaint_;
  Instant now_;
  std::size_t looked_at_ = 0;  ///< Events of the turn that is offered now.
  bool written_ = false;       ///< Whether the turn that was offered last was.
  std::vector<Machine> machines_;
  std::vector<Seen> tasks_;
  std::map<model::TaskIndex, Held> held_;
  /// Its machine could not start it, as this event says, and its end was not requested.
  std::optional<model::TaskIndex> refused_;
  std::deque<model::Command> due_;  ///< Decided, and not carried out yet.
};

}  // namespace trainyard::sim
