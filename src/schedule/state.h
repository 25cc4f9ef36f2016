// The state of the scheduler, and the steps that its decisions are made of. Private to
// schedule/scheduler.h: no other file includes it.
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
//   has its verdict              in none of them any more, nor in passed_, retry_at_,
//                                retry_requests_ or refusals_
//
// Invariants after each event:
//
// (1) A task of running_ is in the ledger of the machine of its Running::site and of no other, and
//     in that of its GPUs if it holds some. A task is entered in begin_attempt() and taken out in
//     ended(), and nowhere else: one that was asked to end holds what it has until the keeper says
//     that it is gone. Running::promise is what the ledgers have reserved for it. A two-phase task
//     has its CPUs and GPUs reserved by train().
// (2) A task is in loaded_ if and only if its Running::waits. It has no deadline then, has said no
//     last word and was not asked to end.
// (3) deadlines_ has each Running::deadline, and nothing else. Only set_deadline() changes either.
// (4) ahead_, and `ahead`, `ahead_on_gpus` and `ahead_cpus` of a machine, count the attempts that
//     are Running::ahead. Only set_ahead() changes them.
// (5) Tasks wait in waiting_, delayed_ and aside_ only while their group is Running. A group with a
//     task without a verdict is Blocked or Running, and one that is Running has such a task
//     (group_book.h).
// (6) passed_ has tasks of waiting_ and loaded_ only. A task that starts, trains or gives up
//     waiting leaves it: being passed is counted from 0 for each wait.
// (7) A shape has a reason only while a task of it waits in a room, for its group, or for the one
//     that is tried first; shapes_with_reason_ counts the shapes that have one.
// (8) After the first interrupt nothing waits anywhere: each task without a verdict is in running_.
// (9) Lists that are numbered by shape (reasons_, noted_in_) have one entry for each of shapes_;
//     lists numbered by group (since_, durations_) one for each of groups_. Only batch_added()
//     adds.
// (10) A group is in trials_ while one of its tasks is tried first and others wait for it: at least
//     one. Until it leaves, that task is the only one of its group that was started. It is Running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
#include "model/site_wish.h"
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/estimates.h"
#include "schedule/gpu_room.h"
#include "schedule/group_book.h"
#include "schedule/ledger.h"
#include "schedule/lookahead.h"
#include "schedule/machine_book.h"
#include "schedule/paces.h"
#include "schedule/retry_requests.h"
#include "schedule/round.h"
#include "schedule/running.h"
#include "schedule/scheduler.h"
#include "schedule/start_refusals.h"
#include "schedule/task_needs.h"
#include "schedule/task_table.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

/// The next request of a task that ran out of memory: a fifth more than it had, or its measured use
/// when that is more; never more than can be given.
Bytes grown(Bytes had, Bytes peak, Bytes most);

struct Scheduler::State {
  explicit State(const model::Policy& policy);

  // One function for each event. Each adds its results to `out`.
  void machine_joined(Instant at, const model::MachineJoined& event);
  void machine_gone(const model::MachineGone& event);
  void keeper_silent(const model::KeeperSilent& event);
  void batch_added(const model::Plan& plan, Instant since, model::Decision& out);
  /// Returns whether others may start that waited for this one to be started.
  bool started(Instant at, const model::AttemptStarted& event, model::Decision& out);
  void reported(Instant at, const model::StageReported& event, model::Decision& out);
  void ended(Instant at, const model::AttemptEnded& event, model::Decision& out);
  void interrupted(Instant at, const model::InterruptAsked& event, model::Decision& out);
  void kill_asked(Instant at, const model::KillAsked& event, model::Decision& out);
  void retry_asked(const model::RetryAsked& event, model::Decision& out);
  void hold_asked(const model::HoldAsked& event, model::Decision& out);
  void priority_asked(const model::PriorityAsked& event, model::Decision& out);
  void sampled(Instant at, const model::Sampled& reading, model::Decision& out);
  void gpus_sampled(Instant at, const model::GpusSampled& reading, model::Decision& out);
  /// A task that reports progress has begun: tasks that wait for it to settle or to live may begin.
  void progressed(Instant at, const model::Progressed& event, model::Decision& out);
  void neighbours_seen(const model::NeighboursSeen& event);
  void claim_refused(Instant at, const model::ClaimRefused& event, model::Decision& out);
  void limits_changed(Instant at, const model::LimitsChanged& event, model::Decision& out);
  void attempt_found(Instant at, const model::AttemptFound& event, model::Decision& out);
  [[nodiscard]] model::Headroom headroom_of(model::MachineIndex machine, Instant at) const;
  /// Releases the GPU memory of ended tasks that the driver has not shown to be free in time.
  void let_go(Instant at);
  /// Does what is due at the deadlines that have passed: a signal, TERM, or KILL.
  void end_overdue(Instant at, model::Decision& out);
  /// Interrupts tasks whose machine is taken away soon.
  void end_before_machines(Instant at, model::Decision& out);
  /// The same as those of Scheduler.
  [[nodiscard]] std::optional<Instant> wakeup() const;
  [[nodiscard]] bool is_of_use(model::MachineIndex machine, Instant at) const;
  [[nodiscard]] std::size_t count_waiting() const {
    return static_cast<std::size_t>(tasks.open()) - running_.size();
  }
  /// Lets tasks whose time for another try has come wait for room. Returns whether there were any.
  bool come_back(Instant at);
  /// Lets the others of those groups begin whose first task has lived long enough. Returns whether
  /// there were any.
  bool end_long_trials(Instant at, model::Decision& out);
  /// Reports since when a task that is tried first trains, for the tasks that wait for it.
  void tell_of_trials(model::Decision& out);

  /// Checks tasks that need tasks that have ended since the last call. Returns whether some wait
  /// for room now.
  bool settle_needs(Instant at, model::Decision& out);

  [[nodiscard]] const std::string& refused_by_machine() const { return refused_by_machine_; }

  /// Starts every waiting task that fits, oldest first, and notes why the others wait.
  void start_what_fits(Instant at, model::Decision& out);
  /// Reports the room that could be reserved, if that is new: of a machine after a reading of it,
  /// and of all with a new reason.
  void tell_headroom(Instant at, std::optional<model::MachineIndex> was_read, model::Decision& out);
  /// Reports the cost of sharing GPUs, if that is new.
  void tell_prices(model::Decision& out);

  TaskTable tasks;

 private:
  using Lack = schedule::Lack;
  using Running = schedule::Running;
  static Lack lack_of(const Running& running, bool of_gpu);
  /// "retrying with 2 GB"
  [[nodiscard]] static std::string retried_text(Lack lack, const model::Request& promise);
  [[nodiscard]] const model::Shape& shape_of(model::TaskIndex task) const {
    return shapes_[tasks[task].shape.value];
  }
  [[nodiscard]] model::GroupIndex group_of(model::TaskIndex task) const {
    return shape_of(task).group;
  }

  // Groups.
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
  void begin_trial(model::GroupIndex group, model::Decision& out);
  void end_trial(model::GroupIndex group, model::Decision& out);
  void fail_trial(const Running& running, const Ending& ending, model::Decision& out);
  void leave_trial(model::TaskIndex task, model::Decision& out);
  void tell_of_trial(model::GroupIndex group, const Trial& trial, model::Decision& out);
  [[nodiscard]] std::optional<Instant> lives_since(const Trial& trial) const;
  void wait_to_start(model::TaskIndex task, model::Decision& out);
  /// When the tasks of a shape may start at the earliest.
  [[nodiscard]] Instant start_of(model::ShapeIndex shape) const;
  /// A task has left delayed_, for its first try or a later one.
  void leave_not_yet(model::TaskIndex task);

  void add_groups(const model::Plan& plan, const model::PlanStart& start);
  void add_task_needs(const model::Plan& plan, const model::PlanStart& start);
  void go_on_with(const model::Plan& plan, const model::PlanStart& start);
  void tell_who_is_blocked(const model::PlanStart& start, model::Decision& out);
  /// Names the groups that tasks of this shape wait for, whose own group waits.
  void tell_why_blocked(model::ShapeIndex shape, model::Decision& out);

  // Stages of two-phase tasks.
  void begin_loading(model::TaskIndex task, model::Decision& out);
  void wait_for_device(Running& running, Instant at, model::Decision& out);
  void train(std::uint32_t lane, const model::Site& site, Instant at, model::Decision& out);
  void trained(Running& running, Instant at, model::Decision& out);
  void ran_out_of_memory(Running& running, const std::string& message, Instant at,
                         model::Decision& out);
  void say_last(Running& running, LastWord word, Instant at, model::Decision& out);
  void misspoke(Running& running, std::string what, Instant at, model::Decision& out);
  /// The task waits for its device in loaded_ from now on.
  void enter_room(Running& running, Instant at);
  void leave_room(Running& running, model::Decision& out);
  void set_ahead(Running& running, bool ahead);

  // Tasks that need other tasks, and tasks on hold.
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
  bool look_again_at(model::TaskIndex task, model::Decision& out);
  bool take_out(model::TaskIndex task);
  [[nodiscard]] int priority_of(model::TaskIndex task) const;
  void tell_what_is_said(model::TaskIndex task, model::Decision& out) const;

  // Tasks that start over with all their retries.
  [[nodiscard]] bool may_begin_anew(model::TaskIndex task) const;
  void begin_anew(const model::RetryAsked& event, model::Decision& out);
  std::vector<TaskRange> reopen(const model::RetryAsked& event, model::Decision& out);
  [[nodiscard]] std::vector<TaskRange> tasks_behind(model::GroupIndex group) const;
  [[nodiscard]] bool may_be_needed_now(model::TaskIndex task) const;
  void ask_for(const model::RetryAsked& event, model::Decision& out);
  /// The time limit of an attempt; 0: there is no limit.
  [[nodiscard]] Duration time_limit_of(model::TaskIndex task) const;

  // Machines.
  [[nodiscard]] MachineBook& book_of(const Running& running) {
    return machines_[running.site.machine.value];
  }
  [[nodiscard]] const MachineBook& book_of(const Running& running) const {
    return machines_[running.site.machine.value];
  }
  /// To be changed for as long as the present pass takes.
  [[nodiscard]] MachineBook& in_pass(MachineBook& book);
  /// The capacity of all machines together, as one machine.
  [[nodiscard]] model::Capacity whole() const;
  /// The memory that can be reserved on the largest machine where a task may run, and the most that
  /// could be reserved on one such machine now if no task of this run were there.
  [[nodiscard]] Bytes memory_most(const model::SiteWish& where) const;
  [[nodiscard]] Bytes memory_free_alone(const model::SiteWish& where) const;
  /// The most that a request could have on each of its GPUs on one of them, with nothing on them.
  [[nodiscard]] Bytes gpu_memory_most(const model::Request& request) const;
  [[nodiscard]] Bytes gpu_memory_alone(const model::Request& request) const;

  // Tasks.
  void start(std::uint32_t lane, const model::Site& site, Instant at, model::Decision& out);
  Running& begin_attempt(model::TaskIndex task, const Beginning& begins, Instant at,
                         model::Decision& out);
  [[nodiscard]] bool is_next(model::AttemptKey key) const;
  [[nodiscard]] bool can_go_on(const model::AttemptFound& found) const;
  [[nodiscard]] std::optional<Blocked> train_what_fits(Instant at, model::Decision& out);
  void keep_room_for(Round& round, Blocked oldest) const;
  void take_room_in(Round& round, const Candidate& started, model::MachineIndex machine);
  void end_for(Running& running, StopCause cause, Instant at, model::Decision& out);
  void stop(Running& running, StopCause cause, Instant at, model::Decision& out);
  [[nodiscard]] bool wants_a_signal(const Running& running) const;
  [[nodiscard]] bool died_of_warning(const Running& running, const model::End& end) const;
  void signal_early(Running& running, Instant at, model::Decision& out);
  void terminate(Running& running, Instant at, model::Decision& out);
  void set_deadline(Running& running, std::optional<Instant> at);
  void enter(model::TaskIndex task, Status status, model::Decision& out);
  void conclude_attempt(Running& running, const model::AttemptEnded& event, Instant at,
                        model::Decision& out);
  void give_up_on_machine(const MachineBook& book, Instant at, model::Decision& out);
  [[nodiscard]] Ending ending_of(Running& running, const model::AttemptEnded& event) const;
  void learn_from(const Running& running, const model::Usage& usage, Instant ended);
  void conclude(model::TaskIndex task, Status status, Ending ending, model::Decision& out);
  void conclude_waiting(model::TaskIndex task, Ending ending, model::Decision& out);
  [[nodiscard]] Setback setback_of(const Running& running, const Ending& ending) const;
  [[nodiscard]] Setback setback_of_memory(const Running& running) const;
  [[nodiscard]] std::string crowding_text(const Running& running) const;
  void tell_of_last_try(const Running& running, model::Decision& out) const;
  [[nodiscard]] std::optional<AnotherTry> next_try(const Running& running, Setback setback) const;
  [[nodiscard]] std::string out_of_memory_text(const Running& running) const;
  std::string same_failure_text(const Running& running, Setback setback, const std::string& message,
                                bool has_checkpoint, Instant ended);
  [[nodiscard]] bool somebody_waits(model::ShapeIndex shape) const;
  void send_back(const Running& running, Ending ending, model::Decision& out);
  /// Requests more of the resource that the attempt ran out of. Returns the request of host memory,
  /// and the words for the retry.
  std::pair<Bytes, std::string> grow(const Running& running, Setback setback,
                                     const AnotherTry& next);
  void tell_reached(model::TaskIndex task, Bytes memory, model::Decision& out) const;
  Duration delay_of_retry(model::AttemptKey failed, Setback setback, Duration delay, Instant at);
  void retry(const Running& running, Setback setback, Ending ending, AnotherTry next, Instant at,
             model::Decision& out);
  void wait_for_room(model::TaskIndex task, Bytes memory);
  /// Removes and returns the tasks of a group that wait for room or for the time of their next try.
  std::vector<model::TaskIndex> take_waiting(model::GroupIndex group);

  [[nodiscard]] Bytes grown_request(const Running& running, Bytes peak) const;

  // GPUs.
  [[nodiscard]] model::Request gpu_request_of(model::TaskIndex task) const;
  [[nodiscard]] model::Request within_gpus(model::Request request, model::ShapeIndex shape) const;
  void learn_from_running(const MachineBook& book);
  void tell_taken(Running& running, const Peak& taken);
  void end_those_over_their_limit(const MachineBook& book, Instant at, model::Decision& out);
  void watch_memory(MachineBook& book, Instant at, model::Decision& out);
  [[nodiscard]] Running* to_be_preempted(const MachineBook& book);
  /// The kernel's memory limit for a task with this reservation; 0: no limit.
  [[nodiscard]] Bytes memory_max_of(model::TaskIndex task, Bytes promised) const;
  [[nodiscard]] Bytes learned_memory(Bytes asked, model::ShapeIndex shape) const;
  [[nodiscard]] Bytes learned_gpu_memory(Bytes asked, model::ShapeIndex shape) const;
  void tell_learned(model::ShapeIndex shape, const model::Request& asked,
                    const model::Request& given, model::Decision& out);
  /// MachineBook::choose_gpus() with as many idle GPUs first as the strategy says.
  [[nodiscard]] model::Cause choose_gpus(const model::Request& request, const MachineBook& book,
                                         Instant at, GpuSet& gpus) const;
  [[nodiscard]] bool waits_for_whole_gpu(const MachineBook& book) const;
  void watch_gpus(MachineBook& book, Instant at, model::Decision& out);
  [[nodiscard]] Running* most_over_on(const MachineBook& book, model::GpuIndex gpu);
  [[nodiscard]] bool gpus_have_room_for_more(const Running& running, Bytes each) const;
  /// The GPUs of a machine that may still be there, with nothing on them; nothing: all are.
  [[nodiscard]] std::vector<GpuRoom> left_of(const MachineBook& book, Instant at, bool& gone) const;
  void give_up_on_gpus(Instant at, bool some_found, model::Decision& out);
  void give_up_waiting(model::TaskIndex task, std::string_view why, Instant at,
                       model::Decision& out);

  // The order in which tasks start.
  void put_in_order();
  void order_by_size();
  [[nodiscard]] std::vector<Prospect> prospects_of(const std::vector<model::TaskIndex>& open);
  void look_ahead_over(std::vector<Prospect> prospects);
  void look_further();
  void follow();

  // Caps on the GPU memory of tasks.
  void cap(std::size_t first_command, model::Decision& out);
  [[nodiscard]] Bytes cap_of(const Running& running) const;
  [[nodiscard]] bool has_hard_gpu_limit(model::TaskIndex task) const;
  void end_those_over_their_gpu_limit(const MachineBook& book, Instant at, model::Decision& out);

  // The cost of sharing GPUs.
  void promise_gpus(model::TaskIndex task, const model::Site& site, const model::Request& request,
                    Instant at);
  [[nodiscard]] int gpu_share_of(model::ShapeIndex shape) const;
  [[nodiscard]] model::SharingMeasured price_of(model::ShapeIndex shape) const;
  [[nodiscard]] model::GpuSharing priced(model::GpuSharing written, model::ShapeIndex shape) const;

  // The gate before GPUs.
  void close_gates(Instant at);
  void hold(const model::Request& request, const model::Site& site);

  // Requests of tasks to a machine.
  [[nodiscard]] model::Request request_of(const WaitingRoom::Lane& lane) const;
  [[nodiscard]] model::Request request_on(const WaitingRoom::Lane& lane,
                                          const MachineBook& book) const;
  [[nodiscard]] bool asks_too_much(const WaitingRoom::Lane& lane, const model::Request& it) const;
  [[nodiscard]] model::Request whole_of(model::TaskIndex task, const model::Request& request) const;
  [[nodiscard]] model::Request whole_on(model::TaskIndex task, const model::Request& request,
                                        const MachineBook& book) const;
  [[nodiscard]] model::Request device_of(const WaitingRoom::Lane& loaded) const;
  [[nodiscard]] bool could_have(const model::Request& whole, const MachineBook& book) const;
  [[nodiscard]] bool is_nowhere(const model::Request& whole) const;
  [[nodiscard]] model::Request as_far_as_there_is(model::Request request, model::TaskIndex task,
                                                  const MachineBook& book) const;
  [[nodiscard]] model::Cause lack_for_good(model::TaskIndex task, const model::Request& request,
                                           const MachineBook& book) const;
  [[nodiscard]] bool has_larger_gpus_elsewhere(const model::Request& whole,
                                               const MachineBook& book) const;

  // Starting tasks.
  void end_before(MachineBook& book, Instant at, model::Decision& out);
  /// Whether the time that is left of a machine is enough, as far as that is known.
  [[nodiscard]] bool has_time_for(const model::Shape& shape, const MachineBook& book,
                                  Instant at) const;
  [[nodiscard]] model::Request request_to_start(model::TaskIndex task, Bytes memory) const;
  [[nodiscard]] bool waits_in_a_room(model::ShapeIndex shape) const;
  [[nodiscard]] Candidate candidate_of(const WaitingRoom::Lane& lane, const MachineBook& book,
                                       const GpuSet& gpus) const;
  [[nodiscard]] Place place_for(const WaitingRoom::Lane& lane, const Round& round);
  bool look_at(const WaitingRoom::Lane& lane, const Round& round, Looked& looked,
               MachineBook& book);
  bool look_where_it_was_told(const WaitingRoom::Lane& lane, const Round& round, Looked& looked);
  [[nodiscard]] model::Cause obstacle(const WaitingRoom::Lane& lane, const model::Request& request,
                                      const Round& round, const MachineBook& book,
                                      GpuSet& gpus) const;
  void give_up_on_disk(Instant at, model::Decision& out);
  [[nodiscard]] model::Cause obstacle_to_train(const WaitingRoom::Lane& lane, const Round& round,
                                               GpuSet& gpus) const;
  [[nodiscard]] bool may_load_ahead(const model::Shape& shape, const MachineBook& book) const;
  [[nodiscard]] std::optional<Kept> room_to_keep(const Blocked& blocked, Instant at) const;
  [[nodiscard]] std::optional<Vacancy> vacancy_for(const model::Request& request,
                                                   const MachineBook& book, Instant at) const;
  [[nodiscard]] bool would_take_kept_room(const Round& round, const Candidate& candidate,
                                          const MachineBook& book) const;
  [[nodiscard]] bool passed_too_often(model::TaskIndex task, Instant at) const;
  [[nodiscard]] std::optional<Duration> longest_expected(const model::Shape& shape) const;
  [[nodiscard]] std::optional<Instant> expected_end(const Running& running, Instant now) const;
  [[nodiscard]] bool has_all_processes(const MachineBook& book) const;

  // Reasons why tasks wait.
  void note_reason(const WaitingRoom::Lane& lane, model::Cause cause, const model::Site& site,
                   model::Decision& out);
  void set_reason(model::ShapeIndex shape, model::Reason reason, model::Decision& out);
  /// Call when a task has left a room, or ended waiting.
  void settle_reason(model::ShapeIndex shape, model::Decision& out);
  void note_queued(model::Decision& out);
  [[nodiscard]] model::Reason reason_for(const WaitingRoom::Lane& lane, model::Cause cause,
                                         const model::Site& site) const;
  void explain_gpus(const WaitingRoom::Lane& lane, model::Reason& reason) const;

  // Other yards on the machine, and limits.
  void take_back_start(Running& running, Instant at, model::Decision& out);
  void take_back_grant(Running& running, Instant at, model::Decision& out);
  [[nodiscard]] model::Cause lack_of_turn(const model::Request& request, MachineBook& book,
                                          GpuSet& gpus, Instant at);
  [[nodiscard]] bool gives_way(const model::Request& request, MachineBook& book, const GpuSet& gpus,
                               Instant at);

  std::vector<model::Shape> shapes_;
  model::Policy policy_;
  std::vector<MachineBook> machines_;  ///< By MachineIndex.
  FreeRoom free_room_;                 ///< Free room of machines_.
  Bytes memory_most_;                  ///< The most that the largest can reserve.
  // The machines that need some action, so that not all are searched for them.
  std::vector<model::MachineIndex> in_pass_;  ///< In the present pass.
  std::set<model::MachineIndex> lingering_;   ///< Ended tasks may still have memory of their GPUs.
  std::optional<Instant> first_end_;          ///< When the first attempt has to end, or earlier.
  GroupBook groups_;
  Estimates estimates_;
  Paces paces_;
  std::map<model::ShapeIndex, model::SharingMeasured> prices_;         ///< As last reported.
  std::map<model::ShapeIndex, model::SharingMeasured> prices_before_;  ///< In earlier runs.
  WaitingRoom waiting_;  ///< The tasks that wait to be started.
  WaitingRoom loaded_;   ///< The two-phase tasks that have loaded and wait to train.
  std::map<model::TaskIndex, Running> running_;
  std::set<std::pair<Instant, model::TaskIndex>> deadlines_;  ///< See (3).
  int ahead_ = 0;  ///< Number of attempts that are started and do not train yet.
  DelayedTries delayed_;
  /// The last message of tasks that failed by themselves.
  std::map<model::TaskIndex, std::string> failed_with_;
  std::vector<Instant> since_;  ///< By group: since when its `start_after` counts.
  /// Number of tasks of a shape that are in delayed_ for their first try.
  std::map<model::ShapeIndex, int> not_yet_in_;
  TaskNeeds needs_;
  std::map<model::ShapeIndex, std::set<model::TaskIndex>> aside_;  ///< No set is empty.
  std::set<model::TaskIndex> on_hold_;                             ///< Without a verdict.
  /// The times of the retries of tasks that left delayed_ for aside_, as they were put on hold.
  std::map<model::TaskIndex, Instant> retry_at_;
  std::map<model::TaskIndex, int> priorities_;  ///< Of tasks for which another was set.
  std::map<model::GroupIndex, Trial> trials_;
  /// Groups that end as one of their tasks has failed, and that still have others running.
  std::set<model::GroupIndex> failing_fast_;
  RetryRequests retry_requests_;
  std::map<model::TaskIndex, Duration> time_limits_;  ///< Of tasks for which others were set.
  std::map<model::TaskIndex, Passed> passed_;
  StartRefusals refusals_;
  std::map<model::ShapeIndex, model::Learned> reported_learned_;  ///< In the last change.
  std::vector<Durations> durations_;    ///< By group: of tasks that succeeded.
  Durations all_durations_;             ///< The same over all groups.
  std::vector<model::Reason> reasons_;  ///< By shape: why its tasks wait, as last reported.
  int shapes_with_reason_ = 0;
  std::vector<std::uint32_t> noted_in_;  ///< By shape: the pass in which its reason was last noted.
  std::uint32_t pass_ = 0;               ///< The number of the present pass.
  // The present pass.
  std::optional<Instant> gate_opens_at_;    ///< The first gate to open, by the last pass.
  std::optional<Instant> starts_again_at_;  ///< The first start pause to end, by the last pass.
  /// Maximum number of tasks that may be loaded ahead of the GPUs of a machine. Unless a better
  /// number is known, one among so many always fits into a gap.
  int ahead_max_ = 24;
  bool out_of_order_ = true;         ///< A group was opened since tasks were put in order.
  std::optional<LookAhead> search_;  ///< The search for the order of looked_ahead_.
  std::vector<LookedAhead> looked_ahead_;
  bool are_others_ = true;    ///< A machine came, was looked at or has gone since the last pass.
  bool fresh_lanes_ = false;  ///< A group was opened, or a task came back, since the last pass.
  int interrupts_ = 0;        ///< Number of requests to end the run.
  std::string refused_by_machine_;                       ///< Scheduler::refused_by_machine()
  std::string why_stopped_ = "the run was interrupted";  ///< For people; once it was interrupted.
};

}  // namespace trainyard::schedule
