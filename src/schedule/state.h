// What the scheduler remembers, and the steps that its decisions are made of. Private to
// schedule/scheduler.h: nobody else includes it.
//
// A task of the run is in one place at a time:
//
//   its group is Blocked         in none of the containers below
//   another is tried first       in none either, while its group is in trials_
//   waits to be started          in waiting_
//   waits for its retry's time   in delayed_, where it asks for nothing
//   needs tasks that are open,
//   or is on hold                in aside_
//   has an attempt               in running_; while it waits for its device in loaded_ as well
//   has its verdict              in none of them any more, nor in passed_, grown_gpu_ or
//                                reached_memory_
//
// What holds whenever an event has been taken in:
//
// (1) running_ and ledger_ name the same tasks, and gpus_ those of them that hold GPUs. A task is
//     entered in start() and taken out in ended(), and nowhere else: one that was asked to end
//     holds what it has until the keeper says that it is gone. Running::promise is what the ledgers
//     have reserved for it. A two-phase task has its CPUs and GPUs reserved by train().
// (2) A task is in loaded_ if and only if its Running::waits. It has no deadline then, has said no
//     last word and was not asked to end.
// (3) `deadlines` has each Running::deadline, and nothing else. Only set_deadline() changes either.
// (4) ahead_, ahead_on_gpus_ and ahead_cpus_ count the attempts that are Running::ahead. Only
//     set_ahead() changes them.
// (5) Tasks wait in waiting_, delayed_ and aside_ only while their group is Running. A group with a
// task
//     without a verdict is Blocked or Running, and one that is Running has such a task
//     (group_book.h).
// (6) passed_ has tasks of waiting_ and loaded_ only. Who starts, trains or gives up waiting leaves
//     it: being passed is counted anew for each wait.
// (7) A shape has a reason only while a task of it waits in a room, for its group, or for the one
//     that is tried first; told_ counts the shapes that have one.
// (8) After the first interrupt nothing waits anywhere: what has no verdict is in running_.
// (9) What is numbered by shape (reasons_, noted_in_) has one entry for each of shapes_; what is
//     numbered by group (members_, durations_) one for each of groups_. Only batch_added() adds.
// (10) A group is in trials_ while one of its tasks is tried first and others wait for it: at least
//     one. Until it leaves, that task is the only one of its group that was started. It is Running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
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
#include "model/waiting.h"
#include "schedule/another_try.h"
#include "schedule/delayed_tries.h"
#include "schedule/durations.h"
#include "schedule/ending.h"
#include "schedule/estimates.h"
#include "schedule/gpu_ledger.h"
#include "schedule/gpu_room.h"
#include "schedule/group_book.h"
#include "schedule/ledger.h"
#include "schedule/lookahead.h"
#include "schedule/neighbours.h"
#include "schedule/paces.h"
#include "schedule/running.h"
#include "schedule/scheduler.h"
#include "schedule/startup_gate.h"
#include "schedule/task_needs.h"
#include "schedule/task_table.h"
#include "schedule/vacancy.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

/// What a task that ran out of memory asks for next: a fifth more than it had, or what it was seen
/// to use when that is more; never more than can be given.
Bytes grown(Bytes had, Bytes peak, Bytes most);

struct Scheduler::State {
  State(const model::Policy& policy, const model::Capacity& capacity);

  // What can happen. Each adds to `out` what it leads to.
  void batch_added(const model::Plan& plan, Instant since, model::Decision& out);
  void started(Instant at, const model::AttemptStarted& event, model::Decision& out);
  void reported(Instant at, const model::StageReported& event, model::Decision& out);
  void ended(Instant at, const model::AttemptEnded& event, model::Decision& out);
  void interrupted(Instant at, const model::InterruptAsked& event, model::Decision& out);
  void kill_asked(Instant at, const model::KillAsked& event, model::Decision& out);
  void retry_asked(const model::RetryAsked& event, model::Decision& out);
  void hold_asked(const model::HoldAsked& event, model::Decision& out);
  void priority_asked(const model::PriorityAsked& event, model::Decision& out);
  void sampled(Instant at, const model::Sampled& reading, model::Decision& out);
  void gpus_sampled(Instant at, const model::GpusSampled& reading, model::Decision& out);
  /// Who says how far it is begins nothing more, and lives: others may begin.
  void progressed(Instant at, const model::Progressed& event, model::Decision& out);
  void neighbours_seen(std::vector<model::Neighbour> neighbours);
  void claim_refused(Instant at, const model::ClaimRefused& event, model::Decision& out);
  void limits_changed(Instant at, const model::LimitsChanged& event, model::Decision& out);
  [[nodiscard]] model::Headroom headroom_now(Instant at) const;
  /// Gives the memory of GPUs free that ended tasks had, where the driver took too long to show it.
  void let_go(Instant at) { gpus_.let_go(at); }
  /// When let_go() is to be called next.
  [[nodiscard]] std::optional<Instant> next_letting_go() const { return gpus_.first_linger_end(); }
  /// Does what is due at the deadlines that have passed: a signal, TERM, or KILL.
  void end_overdue(Instant at, model::Decision& out);
  /// Lets those wait for room whose time for another try has come. Returns whether there were any.
  bool come_back(Instant at);
  /// When come_back() is to be called next.
  [[nodiscard]] std::optional<Instant> next_coming_back() const { return delayed_.first(); }
  /// Lets the others of those groups begin whose task that is tried first has lived long enough.
  /// Returns whether there were any.
  bool end_long_trials(Instant at, model::Decision& out);
  /// When that is to be called next.
  [[nodiscard]] std::optional<Instant> next_trial_end() const;
  /// Says of those who wait for one that is tried first since when it trains.
  void tell_of_trials(model::Decision& out);

  /// Looks at those who need tasks that have ended since this was called last. Returns whether some
  /// wait for room now.
  bool settle_needs(Instant at, model::Decision& out);

  /// When somebody may start who waits for another to settle on its GPU, whatever else happens.
  [[nodiscard]] std::optional<Instant> next_gate() const { return gate_opens_at_; }

  /// Starts every waiting task that fits, oldest first, and notes why the others wait.
  void start_what_fits(Instant at, model::Decision& out);
  /// Says what could be promised, if that is new: after a reading, and with a new reason.
  void tell_headroom(Instant at, bool after_reading, model::Decision& out);
  /// Says what sharing GPUs costs, where that is new.
  void tell_prices(model::Decision& out);

  std::set<std::pair<Instant, model::TaskIndex>> deadlines;  ///< See (3).
  TaskTable tasks;
  bool keeper_silent = false;  ///< Nothing is started then.

 private:
  /// So many are loaded ahead of a GPU where nothing better is known: enough that there is always
  /// one that fits into a gap.
  static constexpr int kAheadMax = 24;

  using Lack = schedule::Lack;
  using Running = schedule::Running;
  using GrownGpu = schedule::GrownGpu;
  static Lack lack_of(const Running& running, bool of_gpu);
  /// How much of what it lacked an attempt with this promise has, for people.
  [[nodiscard]] static std::string tried_with(Lack lack, const model::Request& promise);
  /// How often younger tasks started while this one was the oldest that lacked room, and since
  /// when.
  struct Passed {
    int times = 0;
    Instant since;
  };
  /// One that lacks room, and what it asks for.
  struct Blocked {
    model::TaskIndex task;
    model::Request request;
  };
  /// A task that is looked ahead over, and which of the prospects it is part of.
  struct LookedAhead {
    model::TaskIndex task;
    std::uint32_t prospect = 0;
  };
  /// One that begins as soon as another has settled on its GPUs: until then these are kept for it.
  struct Held {
    model::Request request;
    GpuSet gpus;
  };
  /// One look at those who wait, oldest first.
  struct Round {
    Instant at;
    std::optional<Blocked> oldest;
    bool owed = false;            ///< It was passed too often.
    std::optional<Vacancy> kept;  ///< The room that is kept for it then.
    bool loads_wait = false;      ///< An older task may not be loaded ahead yet.
    bool gpu_loads_wait = false;  ///< The same of those that want GPUs.
    /// An older task waits for the disk that those that run may not need: nobody takes it before.
    bool disk_waits = false;
  };
  [[nodiscard]] const model::Shape& shape_of(model::TaskIndex task) const {
    return shapes_[tasks[task].shape.value];
  }
  [[nodiscard]] model::GroupIndex group_of(model::TaskIndex task) const {
    return shape_of(task).group;
  }

  /// A group that begins with one of its tasks.
  struct Trial {
    model::TaskIndex task;              ///< That one.
    std::optional<Instant> told_since;  ///< Since when it trains, as was last said.
  };

  // Of groups.
  void open_group(model::GroupIndex group, model::Decision& out);
  void skip_group(model::GroupIndex group, const std::string& cause, model::Decision& out);
  void stop_blocked_group(model::GroupIndex group, model::Decision& out);
  void close_group_if_over(model::GroupIndex group, model::Decision& out);
  void look_at_blocked_groups(model::Decision& out);
  void fail_fast(model::GroupIndex group, Instant at, model::Decision& out);

  [[nodiscard]] std::vector<model::TaskIndex> held_of(model::GroupIndex group) const;
  [[nodiscard]] bool is_tried_first(model::TaskIndex task) const;
  [[nodiscard]] bool is_held(model::TaskIndex task) const;
  [[nodiscard]] bool holds_any(model::ShapeIndex shape) const;
  [[nodiscard]] model::Request whole_request_of(model::TaskIndex task) const;
  void begin_trial(model::GroupIndex group, model::Decision& out);
  void end_trial(model::GroupIndex group, model::Decision& out);
  void fail_trial(const Running& running, const Ending& ending, model::Decision& out);
  void leave_trial(model::TaskIndex task, model::Decision& out);
  void tell_of_trial(model::GroupIndex group, const Trial& trial, model::Decision& out);
  [[nodiscard]] std::optional<Instant> lives_since(const Trial& trial) const;
  void wait_to_start(model::TaskIndex task, model::Decision& out);
  /// When the tasks of a shape may start at the earliest.
  [[nodiscard]] Instant start_of(model::ShapeIndex shape) const;
  /// One has left delayed_, for its first try or a later one.
  void leave_not_yet(model::TaskIndex task);

  void add_groups(const model::Plan& plan, const model::PlanStart& start);
  void add_task_needs(const model::Plan& plan, const model::PlanStart& start);
  void go_on_with(const model::Plan& plan, const model::PlanStart& start);
  void tell_who_is_blocked(const model::PlanStart& start, model::Decision& out);

  // Of the stages of a two-phase task.
  void begin_loading(model::TaskIndex task, model::Decision& out);
  void wait_for_device(Running& running, Instant at, model::Decision& out);
  void train(std::uint32_t lane, const GpuSet& gpus, Instant at, model::Decision& out);
  void trained(Running& running, Instant at, model::Decision& out);
  void ran_out_of_memory(Running& running, const std::string& message, Instant at,
                         model::Decision& out);
  void say_last(Running& running, LastWord word, Instant at, model::Decision& out);
  void misspoke(Running& running, std::string what, Instant at, model::Decision& out);
  /// It waits for its device in loaded_ from now on.
  void enter_room(Running& running, Instant at);
  void leave_room(Running& running, model::Decision& out);
  void set_ahead(Running& running, bool ahead);

  // Of those that need other tasks, and of those on hold.
  enum class Fate : std::uint8_t { Open, Runs, Skipped, NotNeeded };
  [[nodiscard]] Fate fate_of(model::TaskIndex task) const;
  [[nodiscard]] bool is_not_to_run(model::TaskIndex task) const;
  [[nodiscard]] std::string why_skipped(model::TaskIndex task) const;
  bool conclude_if_not_to_run(model::TaskIndex task, model::Decision& out);
  [[nodiscard]] bool stands_aside(model::TaskIndex task) const;
  void stand_aside(model::TaskIndex task, model::Decision& out);
  bool leave_aside(model::TaskIndex task);
  std::vector<model::TaskIndex> take_aside(model::GroupIndex group);
  [[nodiscard]] model::Reason reason_aside(model::ShapeIndex shape) const;
  void count_for_those_who_need(model::TaskIndex task, model::Verdict verdict);
  bool look_again_at(model::TaskIndex task, model::Decision& out);
  bool take_out(model::TaskIndex task);
  [[nodiscard]] int priority_of(model::TaskIndex task) const;
  void tell_what_is_said(model::TaskIndex task, model::Decision& out) const;

  // Of those that begin anew.
  [[nodiscard]] bool may_begin_anew(model::TaskIndex task) const;
  void ask_for(const model::RetryAsked& event, model::Decision& out);
  /// How long an attempt of it may take; 0: there is no limit.
  [[nodiscard]] Duration time_limit_of(model::TaskIndex task) const;

  // Of tasks.
  void start(std::uint32_t lane, const GpuSet& gpus, Instant at, model::Decision& out);
  [[nodiscard]] std::optional<Blocked> train_what_fits(Instant at, model::Decision& out);
  void block(Round& round, const Blocked& blocked) const;
  void keep_room_in(Round& round, const Blocked& oldest) const;
  void take_room_in(Round& round, const Candidate& started);
  void end_for(Running& running, StopCause cause, Instant at, model::Decision& out);
  void stop(Running& running, StopCause cause, Instant at, model::Decision& out);
  static void set_cause(Running& running, StopCause cause, Instant at);
  [[nodiscard]] bool wants_a_signal(const Running& running) const;
  [[nodiscard]] bool died_of_warning(const Running& running, const model::End& end) const;
  void signal_early(Running& running, Instant at, model::Decision& out);
  void terminate(Running& running, Instant at, model::Decision& out);
  void set_deadline(Running& running, std::optional<Instant> at);
  void enter(model::TaskIndex task, Status status, model::Decision& out);
  void conclude_attempt(Running& running, const model::AttemptEnded& event, Instant at,
                        model::Decision& out);
  [[nodiscard]] Ending ending_of(Running& running, const model::AttemptEnded& event) const;
  void learn_from(const Running& running, const model::Usage& usage, Instant ended);
  static void forget_cause_if_late(Running& running, const model::AttemptEnded& event);
  void conclude(model::TaskIndex task, Status status, Ending ending, model::Decision& out);
  void conclude_waiting(model::TaskIndex task, model::Verdict verdict, const std::string& message,
                        model::Decision& out, model::Failure failure = model::Failure::Killed);
  [[nodiscard]] Setback setback_of(const Running& running, const Ending& ending,
                                   bool over_limit) const;
  [[nodiscard]] Setback setback_of_memory(const Running& running) const;
  [[nodiscard]] std::string crowding_text(const Running& running) const;
  void tell_of_last_try(const Running& running, model::Decision& out) const;
  [[nodiscard]] std::string names_of(const GpuSet& gpus) const;
  [[nodiscard]] std::optional<AnotherTry> next_try(const Running& running, Setback setback) const;
  [[nodiscard]] std::string tries_text(const Running& running) const;
  [[nodiscard]] bool somebody_waits(model::ShapeIndex shape) const;
  void send_back(const Running& running, Ending ending, model::Decision& out);
  /// Asks for more of what the attempt ran out of. Returns what it asks of the host, and with what
  /// it is retried in words.
  std::pair<Bytes, std::string> grow(const Running& running, Setback setback,
                                     const AnotherTry& next);
  void tell_reached(model::TaskIndex task, Bytes memory, model::Decision& out) const;
  void retry(const Running& running, Setback setback, Ending ending, const AnotherTry& next,
             Instant at, model::Decision& out);
  void wait_for_room(model::TaskIndex task, Bytes memory);
  /// The tasks of a group that wait, for room or for the time of their next try; they do no more.
  std::vector<model::TaskIndex> take_waiting(model::GroupIndex group);

  [[nodiscard]] Bytes grown_request(const Running& running, Bytes peak) const;

  // Of GPUs.
  [[nodiscard]] model::Request gpu_request_of(model::TaskIndex task) const;
  [[nodiscard]] model::Request within_gpus(model::Request request, model::ShapeIndex shape) const;
  void learn_from_running();
  void end_those_over_their_limit(Instant at, model::Decision& out);
  void watch_memory(Instant at, model::Decision& out);
  [[nodiscard]] Running* to_be_preempted();
  /// What the kernel shall give a task at most that is promised so much; 0: no limit.
  [[nodiscard]] Bytes memory_max_of(model::TaskIndex task, Bytes promised) const;
  [[nodiscard]] Bytes learned_memory(Bytes asked, model::ShapeIndex shape) const;
  [[nodiscard]] Bytes learned_gpu_memory(Bytes asked, model::ShapeIndex shape) const;
  [[nodiscard]] Bytes automatic_gpu_memory(model::ShapeIndex shape) const;
  void tell_learned(model::ShapeIndex shape, const model::Request& asked,
                    const model::Request& given, model::Decision& out);
  [[nodiscard]] GrownGpu grown_gpu(const Running& running, Setback setback,
                                   const AnotherTry& next) const;
  void watch_gpus(Instant at, model::Decision& out);
  [[nodiscard]] Running* most_over_on(model::GpuIndex gpu);
  [[nodiscard]] bool gpus_have_room_for_more(const Running& running, Bytes each) const;
  [[nodiscard]] model::Cause lack_of_gpus(Instant at) const;
  void give_up_on_gpus(Instant at, bool some_found, model::Decision& out);
  void give_up_waiting(model::TaskIndex task, std::string_view why, Instant at,
                       model::Decision& out);

  // Of the order.
  void put_in_order();
  void order_by_size();
  [[nodiscard]] std::vector<Prospect> prospects_of(const std::vector<model::TaskIndex>& open);
  void look_ahead_over(std::vector<Prospect> prospects);
  void look_further();
  void follow();

  // Of what tasks are told to take of GPUs at most.
  void cap(std::size_t first_command, model::Decision& out);
  [[nodiscard]] Bytes cap_of(const Running& running) const;
  [[nodiscard]] static bool is_near_its_cap(const Running& running, Bytes peak);
  [[nodiscard]] bool has_hard_gpu_limit(model::TaskIndex task) const;
  void end_those_over_their_gpu_limit(Instant at, model::Decision& out);

  // Of what sharing GPUs costs.
  void promise_gpus(model::TaskIndex task, const GpuSet& gpus, const model::Request& request,
                    Instant at);
  [[nodiscard]] int gpu_share_of(model::ShapeIndex shape) const;
  [[nodiscard]] model::SharingMeasured price_of(model::ShapeIndex shape) const;
  [[nodiscard]] model::GpuSharing priced(model::GpuSharing written, model::ShapeIndex shape) const;

  // Of the gate before GPUs.
  void close_gate(Instant at);
  [[nodiscard]] model::Cause choose_gpus(const model::Request& request, Instant at,
                                         GpuSet& gpus) const;
  void hold(const model::Request& request, const GpuSet& gpus);
  void occupy(const model::Request& request, const GpuSet& gpus, Instant at);
  [[nodiscard]] std::span<const GpuRoom> room_for_choice() const;

  // Of starting.
  [[nodiscard]] model::Request request_to_start(model::TaskIndex task, Bytes memory) const;
  [[nodiscard]] bool waits_in_a_room(model::ShapeIndex shape) const;
  [[nodiscard]] model::Request request_of(const WaitingRoom::Lane& lane) const;
  [[nodiscard]] Candidate candidate_of(const WaitingRoom::Lane& lane, const GpuSet& gpus) const;
  [[nodiscard]] model::Cause obstacle(const WaitingRoom::Lane& lane, const Round& round,
                                      GpuSet& gpus) const;
  [[nodiscard]] model::Cause lack_of_disk(Bytes asked, const Round& round) const;
  void give_up_on_disk(Instant at, model::Decision& out);
  [[nodiscard]] model::Cause obstacle_to_train(const WaitingRoom::Lane& lane, const Round& round,
                                               GpuSet& gpus) const;
  [[nodiscard]] bool may_load_ahead(const model::Shape& shape) const;
  [[nodiscard]] std::optional<Vacancy> vacancy_for(const model::Request& request, Instant at) const;
  void pass(model::TaskIndex task, Instant at);
  [[nodiscard]] bool passed_too_often(model::TaskIndex task, Instant at) const;
  [[nodiscard]] Duration passed_time_max(model::TaskIndex task) const;
  [[nodiscard]] std::optional<Duration> longest_expected(const model::Shape& shape) const;
  [[nodiscard]] std::optional<Instant> expected_end(const Running& running, Instant now) const;
  [[nodiscard]] bool others_use_the_cpus() const;
  [[nodiscard]] bool one_runs_on_the_cpus() const;
  [[nodiscard]] int processes_max() const;

  // Of reasons.
  void note_reason(const WaitingRoom::Lane& lane, model::Cause cause, const GpuSet& gpus,
                   model::Decision& out);
  void set_reason(model::ShapeIndex shape, model::Reason reason, model::Decision& out);
  void clear_reason(model::ShapeIndex shape, model::Decision& out);
  /// When one has left a room, or ended waiting.
  void settle_reason(model::ShapeIndex shape, model::Decision& out);
  void note_queued(model::Decision& out);
  [[nodiscard]] model::Reason reason_for(const WaitingRoom::Lane& lane, model::Cause cause,
                                         const GpuSet& gpus) const;
  void explain_gpus(const WaitingRoom::Lane& lane, model::Reason& reason) const;

  // Of the other yards on the machine, and of limits.
  void take_back_start(Running& running, Instant at, model::Decision& out);
  void take_back_grant(Running& running, Instant at, model::Decision& out);
  [[nodiscard]] model::Cause lack_of_turn(const model::Request& request, GpuSet& gpus, Instant at);
  [[nodiscard]] bool gives_way(const model::Request& request, const GpuSet& gpus, Instant at);
  [[nodiscard]] std::vector<bool> gpus_in_use() const;

  std::vector<model::Shape> shapes_;
  /// The tasks of each group: the first, and one past the last.
  std::vector<std::pair<model::TaskIndex, model::TaskIndex>> members_;
  model::Policy policy_;
  model::Capacity capacity_;
  GroupBook groups_;
  Ledger ledger_;
  GpuLedger gpus_;
  GpuChooser chooser_;
  NeighbourBook neighbours_;
  std::optional<int> gpus_max_;  ///< limits.gpus, now.
  std::string gpus_max_until_;   ///< For people.
  Estimates estimates_;
  Paces paces_;
  std::map<model::ShapeIndex, model::SharingMeasured> prices_;         ///< As was last told.
  std::map<model::ShapeIndex, model::SharingMeasured> prices_before_;  ///< In earlier runs.
  WaitingRoom waiting_;  ///< The tasks that wait to be started.
  WaitingRoom loaded_;   ///< The two-phase tasks that have loaded and wait to train.
  std::map<model::TaskIndex, Running> running_;
  int ahead_ = 0;           ///< How many attempts are started and do not train yet.
  int ahead_on_gpus_ = 0;   ///< How many of these want GPUs.
  model::Cpus ahead_cpus_;  ///< The CPUs on which those of them will train that want no GPU.
  DelayedTries delayed_;
  std::vector<Instant> since_;  ///< By group: since when its `start_after` counts.
  /// How many tasks of a shape are in delayed_ for their first try.
  std::map<model::ShapeIndex, int> not_yet_in_;
  TaskNeeds needs_;
  std::vector<model::TaskIndex> concluded_;                        ///< For settle_needs().
  std::map<model::ShapeIndex, std::set<model::TaskIndex>> aside_;  ///< No set is empty.
  std::set<model::TaskIndex> on_hold_;                             ///< Without a verdict.
  std::map<model::TaskIndex, int> priorities_;  ///< Of those of whom another was said.
  std::map<model::GroupIndex, Trial> trials_;
  /// Groups that end as one of their tasks has failed, and that still have others running.
  std::set<model::GroupIndex> failing_fast_;
  /// What tasks that ran out of a GPU's memory ask for on each of theirs from now on.
  std::map<model::TaskIndex, GrownGpu> grown_gpu_;
  /// What tasks of a resumed run had come to ask of the host's memory, until they first wait for
  /// room.
  std::map<model::TaskIndex, Bytes> reached_memory_;
  std::map<model::TaskIndex, Duration> time_limits_;  ///< Of those for which others were asked.
  std::map<model::TaskIndex, Passed> passed_;
  std::map<model::ShapeIndex, model::Learned> told_learned_;  ///< What was last said of it.
  std::vector<Durations> durations_;     ///< By group: of tasks that ended well.
  Durations all_durations_;              ///< The same over all groups.
  std::vector<model::Reason> reasons_;   ///< By shape: why its tasks wait, as was last said.
  int told_ = 0;                         ///< How many shapes have a reason.
  model::Headroom headroom_;             ///< The headroom that was last said.
  std::vector<std::uint32_t> noted_in_;  ///< By shape: the pass in which its reason was last noted.
  std::uint32_t pass_ = 0;               ///< The number of the present pass.
  int short_of_memory_ = 0;              ///< How many readings in a row showed too little memory.
  std::vector<int> overfull_;            ///< By GPU: the same of readings that showed it overfull.
  // Of the present pass.
  StartupGate gate_;
  std::vector<Held> held_;
  std::vector<GpuRoom> room_beside_held_;  ///< While there are any.
  std::optional<Instant> gate_opens_at_;   ///< Of the last pass: where somebody waits for that.
  int ahead_max_ = kAheadMax;              ///< How many tasks that want GPUs may be loaded ahead.
  bool out_of_order_ = true;               ///< A group was opened since tasks were put in order.
  std::optional<LookAhead> search_;        ///< The search for the order of looked_ahead_.
  std::vector<LookedAhead> looked_ahead_;
  bool fresh_lanes_ = false;  ///< A group was opened, or a task came back, since the last pass.
  int interrupts_ = 0;        ///< How often the end of the run was asked for.
  std::string why_stopped_ = "the run was interrupted";  ///< For people; once it was.
};

}  // namespace trainyard::schedule
