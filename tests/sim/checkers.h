// Watches a simulated run on one machine from outside: every turn that is offered to the journal,
// every command that reaches the machine, every wait. Says what rule was broken first, in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
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
#include "sim/outside.h"
#include "sim/watcher.h"
#include "sim/workload.h"

namespace trainyard::sim {

class Checkers final : public Watcher {
 public:
  /// Both must outlive it.
  Checkers(const Workload& workload, FaultCounts& counts);

  void offered(const model::Turn& turn, bool committed) override;
  void carried_out(const model::Command& command) override;
  void waits(std::optional<Instant> until) override;
  void over(bool gave_up, std::size_t processes_left) override;

  void complain(std::string what) override;
  [[nodiscard]] const std::optional<std::string>& complaint() const override { return complaint_; }

 private:
  /// The expected outcome of an attempt that has ended.
  struct Expected {
    std::vector<Status> statuses;  ///< In order.
    model::Verdict verdict = model::Verdict::None;
    model::Failure failure = model::Failure::None;
    int exit_code = 0;

    /// True for a failure of an attempt that was not stopped, as far as the program can cause it.
    [[nodiscard]] bool may_be_its_own() const {
      return failure == model::Failure::Exit || failure == model::Failure::Crashed ||
             failure == model::Failure::Killed || failure == model::Failure::Error;
    }
  };
  /// Decided, and not carried out yet.
  struct Due {
    model::Command command;
    bool committed = false;
  };

  void expect(bool holds, std::string_view rule);
  void expect_of(model::TaskIndex task, bool holds, std::string_view rule);

  // One event with its decisions.
  void look_at(const model::Event& event, const model::Decision& decision);
  void happened(const model::Event& event);
  void attempt_started(const model::AttemptStarted& news);
  void heard_of(SeenAttempt& attempt, std::optional<Instant> began);
  void stage_reported(const model::StageReported& news);
  void set_lack(SeenAttempt& attempt, bool of_gpu) const;
  void ran_out_of_memory(SeenAttempt& attempt);
  void blame_its_cap(SeenAttempt& attempt, Bytes peak) const;
  void check_caps();
  void attempt_ended(Instant at, const model::AttemptEnded& news);
  void forget_what_was_found_late(SeenAttempt& attempt, SeenTask& task, Instant ended);
  void learn_from(const SeenAttempt& attempt, const SeenTask& task, const model::AttemptEnded& news,
                  Instant ended);
  void ask_again(const SeenAttempt& attempt, SeenTask& task, const model::Usage& usage);
  Expected judge(const SeenAttempt& attempt, const SeenTask& task, const model::End& end) const;
  static Expected failed(model::Failure failure, int code = 0);
  static Expected killed(const model::End& end);
  Expected judge_stop(const SeenAttempt& attempt, const SeenTask& task) const;
  Expected judge_own(const SeenAttempt& attempt, const SeenTask& task, const model::End& end) const;
  Expected judge_word(const SeenAttempt& attempt, const SeenTask& task,
                      const model::End& end) const;
  Expected judge_out_of_memory(const SeenAttempt& attempt, const SeenTask& task) const;
  Duration try_again(const SeenAttempt& attempt, SeenTask& task, Instant at);
  void look_at_delays();
  void look_whether_run_is_given_up();
  void kill_asked(const model::KillAsked& news);
  void retry_asked(const model::RetryAsked& news);
  void hold_asked(const model::HoldAsked& news);
  void priority_asked(const model::PriorityAsked& news);
  void changed(const model::SaidOfTask& change);
  void check_who_stands_aside();
  /// Whether this is a verdict that follows from what the task needs.
  [[nodiscard]] bool follows_from_needs(model::TaskIndex index, model::Verdict verdict) const;
  [[nodiscard]] bool may_begin_anew(model::TaskIndex index) const;
  [[nodiscard]] bool may_be_needed_now(model::TaskIndex index) const;
  void began_anew(const model::TaskChanged& change);
  [[nodiscard]] bool may_be_blocked_again(const SeenGroup& group) const;
  void look_at_trials();
  void progressed(const model::Progressed& news);
  void trial_is_over(model::GroupIndex group, model::TaskIndex tried);
  void trial_ended(const SeenAttempt& attempt);
  [[nodiscard]] bool may_have_died_with_gpu(const SeenAttempt& attempt) const;
  static bool is_excused(const SeenAttempt& attempt, const SeenTask& task);
  void ask_for_more_gpu(const SeenAttempt& attempt, model::Request& request, Bytes peak,
                        int tries_left);
  void look_at_gpus(Instant at, const model::GpusSampled& reading);
  static void not_again(SeenAttempt& attempt, StopReason reason);

  // Decisions.
  void changed(const model::TaskChanged& change);
  void check_verdict(const model::TaskChanged& change, const SeenTask& before);
  void changed(const model::GroupChanged& change);
  void changed(const model::ReasonChanged& change);
  void changed(const model::HeadroomSeen& change);
  void changed(const model::SharingMeasured& change);
  void changed(const model::Reached& change);
  void changed(const model::Learned& change);
  /// The state of it that is written down for a resumed run.
  [[nodiscard]] model::Reached what_is_reached(model::TaskIndex index, Bytes memory) const;
  /// Expects that learned estimates are reported before a task gets them.
  void check_learned(model::TaskIndex index, Bytes asked, Bytes given, Bytes written,
                     Bytes model::Learned::* told);
  void decided(const model::StartAttempt& command);
  void check_start(const model::StartAttempt& command, const SeenTask& task);
  void count_pass(model::TaskIndex started, const std::vector<model::GpuIndex>& on);
  [[nodiscard]] std::vector<SeenGpu> open_gpus(const model::Request& request) const;
  void pass_those_without_disk(model::TaskIndex started);
  void pass_those_before(std::optional<model::TaskIndex> granted,
                         std::optional<model::TaskIndex> started);
  bool has_to_settle_first(model::TaskIndex index);
  void check_limit(model::TaskIndex index, const model::Request& promise, Bytes memory_max);
  void check_gpus(model::TaskIndex index, const model::Request& promise,
                  const std::vector<model::GpuIndex>& gpus);
  void decided(const model::GrantDevice& command);
  void decided(const model::SignalAttempt& command);
  void decided(const model::StopAttempt& command);
  StopReason reason_for(const SeenAttempt& attempt) const;
  SeenAttempt* running_attempt(model::AttemptKey key, std::string_view rule);
  /// It wants a signal before TERM, and has not got it.
  bool wants_a_signal(const SeenAttempt& attempt) const;
  /// By the signal that announces its time limit, which it did not know.
  bool died_of_warning(const SeenAttempt& attempt, const model::End& end) const;
  /// It ended before the yard found the reason to stop it.
  static bool ended_before_it_was_found(const SeenAttempt& attempt, Instant ended);
  void look_at_memory(const model::Sampled& reading);
  void take_causes_to_heart();
  void decided(const model::Answer& command);

  // Rules that must hold after an event.
  void check_after(const model::Event& event);
  void check_news_was_heeded();
  void check_groups();
  void check_trials();
  void check_time_limits();
  void check_interrupted();
  void check_reasons();
  void check_what_is_said_to_be_free();
  void check_nobody_waits_in_vain();
  void check_no_device_is_kept_in_vain();

  const Workload& workload_;
  FaultCounts& counts_;
  Outside outside_;
  std::optional<std::string> complaint_;

  std::size_t looked_at_ = 0;  ///< Events of the turn that is offered now.
  Instant now_;
  const model::Event* event_ = nullptr;  ///< The one that is looked at.
  /// The last task that failed and is retried without a delay, and when it failed.
  std::optional<std::pair<model::TaskIndex, Instant>> last_without_delay_;
  bool begun_ = false;      ///< The machine was looked at.
  bool held_back_ = false;  ///< Starts were, until this event told of one.
  bool refused_ = false;    ///< The attempt that ended was not started: no blame.

  // About the present event.
  std::optional<model::TaskIndex> about_;  ///< The task of an attempt that began or ended.
  Expected expected_;
  std::vector<Status> entered_;                ///< By the task that it is about, and its attempt.
  std::optional<model::Reached> reached_due_;  ///< To be written down of its task.
  std::set<model::TaskIndex>
      granted_;  ///< Entered AVAILABLE, and its start is still to be commanded.
  std::map<std::uint64_t, bool> answers_due_;   ///< Expected answers to kill requests.
  std::optional<model::TaskIndex> signal_due_;  ///< Gets its signal before its report counts.
  StopReason stop_due_ = StopReason::None;      ///< For the task that it is about.
  std::map<model::TaskIndex, StopReason>
      too_much_;  ///< The tasks that have to end for their memory.
  std::optional<model::TaskIndex>
      oldest_loaded_;  ///< Lacked its device when the first younger one trained.
  std::optional<model::Headroom> said_free_;   ///< With this event.
  std::optional<model::TaskIndex> kill_of_;    ///< Waited when it was asked for.
  std::set<model::GroupIndex> lost_needs_;     ///< Of tasks that their needs skip in this turn.
  std::optional<model::RetryAsked> retry_of_;  ///< May begin anew, and has not yet.
  std::optional<model::SaidOfTask> said_due_;  ///< To be written down of users' commands.
  /// By kind of those that ask for disk: whether nothing else was lacking when the first was looked
  /// at.
  std::map<std::pair<model::ShapeIndex, model::Request>, bool> lack_disk_alone_;
  std::optional<model::TaskIndex> oldest_;  ///< Lacked room when the first younger one was started.

  /// The room kept for that one when it was first seen to be owed it; within, nothing if holding
  /// others back would not help it.
  std::optional<std::optional<Opening>> kept_;
  std::optional<std::optional<Opening>> kept_loaded_;  ///< The same for the oldest that has loaded.

  /// Requests that only wait for another to settle on their GPUs, which are kept for them.
  std::vector<std::pair<model::Request, std::vector<model::GpuIndex>>> held_;
  /// Kinds of tasks of which the first that waits was looked at and has to wait; for another to
  /// settle: true.
  std::map<std::tuple<bool, model::ShapeIndex, model::Request, model::Request>, bool> passed_by_;

  std::vector<std::pair<model::TaskIndex, Bytes>> caps_;  ///< Caps of this event.

  std::map<model::ShapeIndex, model::Learned> learned_;  ///< The last report for each shape.
  std::deque<Due> due_;
  std::set<model::AttemptKey> stopped_;  ///< TERM or KILL has reached the machine.
  std::set<model::AttemptKey> on_machine_;
  std::set<std::uint64_t> answered_;
  std::uint64_t requests_ = 0;
  bool written_ = false;    ///< Whether the turn that was offered last was.
  bool giving_up_ = false;  ///< The loop ends what runs without a journal.
};

}  // namespace trainyard::sim
