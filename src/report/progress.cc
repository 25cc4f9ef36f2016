#include "report/progress.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/duration_text.h"
#include "base/match.h"
#include "model/sharing_text.h"
#include "report/digest.h"
#include "report/help_line.h"
#include "report/terminal_text.h"

namespace trainyard::report {
namespace {

constexpr std::size_t kGroupsNamed = 5;
constexpr int kFractionsShown = 4;

}  // namespace

void Forecast::finished(std::uint32_t group, Duration took) {
  groups_.at(group).sum += took;
  ++groups_.at(group).count;
}

void Forecast::ended(std::uint32_t group) { --groups_.at(group).left; }

void Forecast::begins_anew(std::uint32_t group) {
  if (group < groups_.size()) ++groups_[group].left;
}

void Forecast::at_once(int tasks) {
  // The number falls when nothing is left to start, which says nothing about the machine.
  int left = 0;
  for (const Group& group : groups_) left += group.left;
  if (tasks > 0 && (left > tasks || tasks > at_once_)) at_once_ = tasks;
}

std::optional<Remaining> Forecast::remaining(std::span<const RunningTask> running) const {
  std::vector<int> not_started;
  not_started.reserve(groups_.size());
  for (const Group& group : groups_) not_started.push_back(group.left);

  Duration work{0};
  Duration longest{0};
  for (const RunningTask& task : running) {
    const Group& group = groups_.at(task.group);
    --not_started.at(task.group);
    if (group.count == 0) continue;
    const Duration left = std::max(Duration{0}, (group.sum / group.count) - task.so_far);
    work += left;
    longest = std::max(longest, left);
  }
  Remaining remaining;
  bool known = false;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    if (group.left <= 0) continue;
    if (group.count == 0) {
      remaining.at_least = true;
      continue;
    }
    known = true;
    work += group.sum / group.count * std::max(0, not_started[i]);
  }
  if (!known || at_once_ == 0) return std::nullopt;
  remaining.time = std::max(longest, work / at_once_);
  return remaining;
}

ProgressLine::ProgressLine(ProgressOptions options) : options_(std::move(options)) {}

ProgressLine::Added ProgressLine::add(const model::BatchAdded& batch) {
  const model::Plan& plan = *batch.plan;
  std::vector<int> tasks(plan.groups.size());
  std::vector<int> left(plan.groups.size());
  int finished = 0;
  int not_selected = 0;
  const auto first = static_cast<std::uint32_t>(total_);
  model::TaskIndex index{first};
  for (const model::PlannedTask& task : plan.tasks) {
    const std::uint32_t group = plan.shapes[task.shape.value].group.value;
    ++tasks[group];
    left[group] += task.is_open() ? 1 : 0;
    finished += task.finished_before() ? 1 : 0;
    not_selected += task.before == model::Verdict::NotSelected ? 1 : 0;
    count_end(index, task.before, 1);
    ++index.value;
  }
  for (const model::Shape& shape : plan.shapes) {
    shape_groups_.push_back(static_cast<std::uint32_t>(names_.size()) + shape.group.value);
    shape_batches_.push_back(batch.number);
  }
  Added added{.groups = static_cast<int>(plan.groups.size()),
              .tasks = std::accumulate(tasks.begin(), tasks.end(), 0),
              .finished = finished,
              .not_selected = not_selected};
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    total_ += tasks[i];
    names_.push_back(plan.groups[i].shown());
    group_ends_.push_back(static_cast<std::uint32_t>(total_));
    forecast_.add_group(left[i]);
    was_open_.push_back(left[i] > 0);
    if (i < kGroupsNamed)
      added.names.push_back(
          fmt::format("{} of {}", with_commas(tasks[i]), plan.groups[i].shown_in_list()));
  }
  for (const model::SaidOfTask& said : plan.said) {
    if (said.on_hold && plan.tasks[said.task.value].is_open()) hold({first + said.task.value});
  }
  return added;
}

void ProgressLine::count_end(model::TaskIndex task, model::Verdict verdict, int by) {
  if (verdict == model::Verdict::Finished) counts_.done += by;
  if (verdict == model::Verdict::Failed) counts_.failed += by;
  if (verdict == model::Verdict::Skipped) counts_.skipped += by;
  if (verdict == model::Verdict::Stopped) counts_.stopped += by;
  if (verdict == model::Verdict::NotSelected || verdict == model::Verdict::NotNeeded)
    uncounted_ += by;
  const bool kept =
      by > 0 && verdict != model::Verdict::None && verdict != model::Verdict::Finished;
  if (kept) {
    ended_badly_[task] = verdict;
  } else if (by < 0) {
    ended_badly_.erase(task);
  }
}

/// A task that had ended waits again.
void ProgressLine::begin_anew(model::TaskIndex task) {
  const auto ended = ended_badly_.find(task);
  if (ended == ended_badly_.end()) return;
  count_end(task, ended->second, -1);
  was_open_[group_of(task)] = true;
  forecast_.begins_anew(group_of(task));
}

void ProgressLine::hold(model::TaskIndex task) {
  if (!on_hold_.insert(task).second) return;
  const auto active = active_.find(task);
  if (active != active_.end() && active->second.doing == Doing::Retrying) leave(task);
  ++counts_.on_hold;
  forecast_.ended(group_of(task));
}

bool ProgressLine::release(model::TaskIndex task) {
  if (on_hold_.erase(task) == 0) return false;
  --counts_.on_hold;
  return true;
}

/// Counts the tasks that earlier executions did not select, and that a 'trainyard retry' selects by
/// starting the run.
int ProgressLine::count_selected_by_retry(const model::Turn& first) const {
  int selected = 0;
  for (const model::Decision& decision : first.decisions) {
    for (const model::Change& change : decision.changes) {
      const auto* const task = std::get_if<model::TaskChanged>(&change);
      if (task == nullptr || task->status != Status::Init) continue;
      const auto ended = ended_badly_.find(task->key.task);
      const bool left_out =
          ended != ended_badly_.end() && ended->second == model::Verdict::NotSelected;
      if (task->verdict == model::Verdict::None && left_out) ++selected;
    }
  }
  return selected;
}

/// The run begins with the batches of the first turn.
void ProgressLine::see_batches(const model::Turn& turn) {
  Added all;
  for (const model::Event& event : turn.events) {
    const auto* const batch = std::get_if<model::BatchAdded>(&event.what);
    if (batch == nullptr) continue;
    const Added added = add(*batch);
    if (started_) {
      const std::string name = options_.batch_name ? options_.batch_name(batch->number)
                                                   : fmt::format("submission {}", batch->number);
      lasting(fmt::format("{}: {}", name, text_of(added)));
      continue;
    }
    all.groups += added.groups;
    all.tasks += added.tasks;
    all.finished += added.finished;
    all.not_selected += added.not_selected;
    for (const std::string& name : added.names) {
      if (all.names.size() < kGroupsNamed) all.names.push_back(name);
    }
  }
  if (started_) return;
  all.not_selected -= count_selected_by_retry(turn);
  count_as_shown();
  if (!options_.terminal) options_.write(text_of(all) + "\n");
}

void ProgressLine::count_as_shown() {
  shown_at_ = now_;
  shown_ = counts_;
  step_shown_ = step();
}

int ProgressLine::step() const { return total() == 0 ? 0 : ended() * kPlainSteps / total(); }

int ProgressLine::ended() const {
  return counts_.done + counts_.failed + counts_.skipped + counts_.stopped;
}

int ProgressLine::waiting() const {
  return std::max(0, total() - ended() - counts_.running - counts_.retrying - counts_.on_hold);
}

std::uint32_t ProgressLine::group_of(model::TaskIndex task) const {
  const auto group =
      std::ranges::find_if(group_ends_, [task](std::uint32_t end) { return task.value < end; });
  return static_cast<std::uint32_t>(group - group_ends_.begin());
}

void ProgressLine::on(const model::Turn& turn) {
  if (finished_) return;
  const int ran = counts_.running;
  const std::size_t turns = std::max(turn.events.size(), turn.decisions.size());
  see_batches(turn);
  for (std::size_t i = 0; i < turns; ++i) {
    if (i < turn.events.size()) {
      now_ = std::max(now_, turn.events[i].at);
      if (!started_) last_start_ = last_start_beside_ = now_;
    }
    if (!started_) shown_at_ = now_;
    started_ = true;
    if (i < turn.events.size()) see(turn.events[i]);
    if (i < turn.decisions.size()) see(turn.decisions[i]);
  }
  // A task that ends frees its place for the next one, which may start a turn later.
  forecast_.at_once(std::max(ran, counts_.running));
  show();
}

void ProgressLine::see(const model::Event& event) {
  rooms_.hear(event.what);
  if (const auto* const sampled = std::get_if<model::Sampled>(&event.what)) {
    Bytes& used = used_[sampled->machine];
    used = {};
    for (const model::TaskSample& task : sampled->tasks) used += task.memory;
  }
  if (const auto* const gone = std::get_if<model::MachineGone>(&event.what)) {
    used_.erase(gone->machine);
  }
  // The times of the journal, which the tables show.
  if (const auto* const started = std::get_if<model::AttemptStarted>(&event.what)) {
    if (Active* const active = find(started->key)) {
      active->started = model::moment_of(event, started->key);
    }
  }
  if (const auto* const ended = std::get_if<model::AttemptEnded>(&event.what)) {
    if (Active* const active = find(ended->key)) {
      active->took = std::max(model::moment_of(event, ended->key) - active->started, Duration{0});
    }
    if (!ended->warning.empty() && may_tell_trouble()) {
      lasting(fmt::format("{}: warning: {}", options_.name_of(ended->key.task), ended->warning));
    }
  }
  if (const auto* const progress = std::get_if<model::Progressed>(&event.what)) {
    Active* const active = find(progress->key);
    if (active != nullptr && progress->fraction) active->fraction = progress->fraction;
  }
  if (const auto* asked = std::get_if<model::InterruptAsked>(&event.what)) tell_interrupt(*asked);
}

ProgressLine::Active* ProgressLine::find(model::AttemptKey key) {
  const auto active = active_.find(key.task);
  const bool present = active != active_.end() && active->second.attempt == key.attempt;
  return present ? &active->second : nullptr;
}

void ProgressLine::see(const model::Decision& decision) {
  // The amounts reserved for a task are in its command, which comes after the change of its status.
  for (const model::Change& change : decision.changes) {
    match(
        change, [this](const model::TaskChanged& it) { see(it); },
        [this](const model::GroupChanged& it) { see(it); },
        [this](const model::ReasonChanged& it) {
          if (it.reason.cause == model::Cause::None) {
            reasons_.erase(it.shape);
          } else {
            reasons_[it.shape] = it.reason;
          }
        },
        [this](const model::HeadroomSeen& it) { rooms_.see(it.machine, it.headroom); },
        [this](const model::SharingMeasured& it) { see(it); }, [](const model::Reached&) {},
        [this](const model::SaidOfTask& it) { see(it); },
        [this](const model::Learned& it) { see(it); });
  }
  for (const model::Command& command : decision.commands) {
    if (const auto* const start = std::get_if<model::StartAttempt>(&command)) {
      see_start(start->key.task, start->promise.memory);
    } else if (const auto* const grant = std::get_if<model::GrantDevice>(&command)) {
      see_start(grant->key.task, grant->promise.memory);
    }
  }
}

void ProgressLine::see(const model::SharingMeasured& change) {
  if (++sharing_told_ > kSharingLinesMax) return;
  lasting(fmt::format("{}: {}", names_.at(shape_groups_.at(change.shape.value)),
                      model::sharing_text(change)));
}

void ProgressLine::see_start(model::TaskIndex task, Bytes memory) {
  last_start_ = now_;
  // Tasks that run one at a time wait for a reason, however often one starts.
  if (counts_.running > 1) last_start_beside_ = now_;
  const auto active = active_.find(task);
  if (active == active_.end()) return;
  promised_ += memory - active->second.promised;
  active->second.promised = memory;
}

void ProgressLine::see(const model::TaskChanged& change) {
  const model::TaskIndex task = change.key.task;
  std::optional<Duration> took;
  if (const auto active = active_.find(task); active != active_.end()) {
    took = active->second.took;
    if (!took && active->second.doing != Doing::Retrying) took = now_ - active->second.started;
  }
  if (change.verdict != model::Verdict::None) {
    leave(task);
    end(change, took);
    return;
  }
  if (change.status == Status::Init) return begin_anew(task);
  if (change.status == Status::Interrupt) {
    leave(task);
    active_[task] = {.doing = Doing::Retrying, .attempt = change.key.attempt, .took = took};
    ++counts_.retrying;
    tell_trouble(change, took);
    return;
  }
  const Doing doing = change.status == Status::Waiting ? Doing::Loaded : Doing::Running;
  const auto active = active_.find(task);
  const bool goes_on = active != active_.end() && active->second.doing != Doing::Retrying &&
                       active->second.attempt == change.key.attempt;
  if (!goes_on) {
    leave(task);
    active_[task] = {.doing = doing, .attempt = change.key.attempt, .started = now_};
    if (doing == Doing::Running) ++counts_.running;
    return;
  }
  if (active->second.doing == doing) return;
  active->second.doing = doing;
  counts_.running += doing == Doing::Running ? 1 : -1;
}

void ProgressLine::leave(model::TaskIndex task) {
  const auto active = active_.find(task);
  if (active == active_.end()) return;
  if (active->second.doing == Doing::Running) --counts_.running;
  if (active->second.doing == Doing::Retrying) --counts_.retrying;
  promised_ -= active->second.promised;
  active_.erase(active);
}

void ProgressLine::end(const model::TaskChanged& change, std::optional<Duration> took) {
  const std::uint32_t group = group_of(change.key.task);
  if (!release(change.key.task)) forecast_.ended(group);
  count_end(change.key.task, change.verdict, 1);
  if (change.verdict == model::Verdict::Finished && took) forecast_.finished(group, *took);
  if (change.verdict == model::Verdict::Failed) tell_trouble(change, took);
}

bool ProgressLine::may_tell_trouble() {
  ++troubles_told_;
  if (troubles_told_ == kTroubleLinesMax + 1) {
    lasting(
        fmt::format("more than {} tasks failed, ran out of memory or left a result missing or "
                    "changed: 'trainyard status' shows the others",
                    kTroubleLinesMax));
  }
  return troubles_told_ <= kTroubleLinesMax;
}

void ProgressLine::tell_trouble(const model::TaskChanged& change, std::optional<Duration> took) {
  if (!may_tell_trouble()) return;
  const std::string word = model::word_for({.status = change.status,
                                            .verdict = change.verdict,
                                            .failure = change.failure,
                                            .exit_code = change.exit_code});
  std::string text = fmt::format("{}: {}{}", options_.name_of(change.key.task),
                                 change.verdict == model::Verdict::Failed ? "FAILED " : "", word);
  if (took) text += " after " + to_text(*took);
  if (!change.message.empty()) text += ": " + change.message;
  if (change.verdict == model::Verdict::Failed && took &&
      change.failure != model::Failure::CannotStart && options_.log_of) {
    const std::optional<std::string> log = options_.log_of(change.key);
    text += log ? ", see " + *log : ", no output";
  }
  lasting(text);
}

void ProgressLine::see(const model::GroupChanged& change) {
  if (change.phase != model::GroupPhase::Skipped || change.group.value >= names_.size()) return;
  // A group that was skipped before is not news.
  if (!was_open_[change.group.value]) return;
  const std::string& name = names_[change.group.value];
  const std::string why = change.message.empty() ? "" : ": " + change.message;
  lasting(fmt::format("{}: SKIPPED{}", name, why));
}

void ProgressLine::see(const model::Learned& change) {
  if (change.shape.value >= shape_groups_.size() || ++learned_told_ > kLearnedLinesMax) return;
  lasting(fmt::format(
      "{}: reserving {} from now on, learned in this run from {}{}",
      names_[shape_groups_[change.shape.value]], learned_text(change.memory, change.gpu_memory),
      taught_by_text(change.tasks),
      learned_told_ < kLearnedLinesMax ? "" : "; further lines like this are not shown"));
}

void ProgressLine::see(const model::SaidOfTask& change) {
  if (change.on_hold) {
    hold(change.task);
  } else if (release(change.task)) {
    forecast_.begins_anew(group_of(change.task));
  }
}

void ProgressLine::tell_interrupt(const model::InterruptAsked& asked) {
  ++interrupts_;
  if (!asked.why.empty()) return lasting(asked.why + ": no new tasks start");
  const bool any = counts_.running > 0;
  const std::string running = counted(counts_.running, "running task");
  if (interrupts_ == 1) {
    lasting(any ? fmt::format("interrupted: no new tasks start, stopping {}; Ctrl-C or TERM again "
                              "kills all at once",
                              running)
                : std::string("interrupted: no new tasks start, no task was running"));
  } else if (interrupts_ == 2) {
    lasting(any ? fmt::format("interrupted again: {} killed", running)
                : std::string("interrupted again: no task was running"));
  }
}

void ProgressLine::note(std::string_view line) { lasting(line); }

void ProgressLine::lasting(std::string_view line) {
  if (drawn_) options_.write("\r\x1b[K");
  options_.write(plain(line) + "\n");
  drawn_ = false;  // So that the next turn redraws the line, however soon it comes.
}

std::string ProgressLine::text_of(const Added& added) {
  std::string text = fmt::format("{} in {}: {}", counted(added.tasks, "task"),
                                 counted(added.groups, "group"), fmt::join(added.names, ", "));
  const auto more = added.groups - static_cast<int>(added.names.size());
  if (more > 0) text += fmt::format(", and {} more", with_commas(more));
  if (added.finished > 0) text += fmt::format("; {} finished before", with_commas(added.finished));
  if (added.not_selected > 0)
    text += fmt::format("; {} not selected", with_commas(added.not_selected));
  return plain(text);
}

std::string ProgressLine::line() const {
  std::string text = fmt::format("{}/{} done", with_commas(counts_.done), with_commas(total()));
  const auto add = [&text](int count, std::string_view word) {
    if (count > 0) text += fmt::format(", {} {}", with_commas(count), word);
  };
  add(counts_.running, "running");
  text += fractions_text();
  add(counts_.retrying, "retrying");
  add(waiting(), "waiting");
  add(counts_.on_hold, "on hold until 'trainyard release'");
  add(counts_.failed, "failed");
  add(counts_.skipped, "skipped");
  add(counts_.stopped, "stopped");
  text += forecast_text();
  if (promised_ > Bytes{}) {
    Bytes used;
    for (const auto& [machine, by_tasks] : used_) used += by_tasks;
    text += ", memory ";
    // Not measured yet.
    if (used > Bytes{}) text += to_text(used) + " used, ";
    text += to_text(promised_) + " reserved";
  }
  return text + reason_text();
}

std::string ProgressLine::fractions_text() const {
  std::string text;
  int shown = 0;
  for (const auto& [task, active] : active_) {
    if (active.doing != Doing::Running || !active.fraction) continue;
    if (++shown > kFractionsShown) return text + ", ...)";
    text += fmt::format("{}{:.0f} %", shown == 1 ? " (" : ", ", *active.fraction * 100);
  }
  return shown == 0 ? text : text + ")";
}

std::string ProgressLine::forecast_text() const {
  if (ended() == total() || interrupts_ > 0) return {};
  std::vector<RunningTask> running;
  running.reserve(active_.size());
  for (const auto& [task, active] : active_) {
    if (active.doing != Doing::Running) continue;
    running.push_back({.group = group_of(task), .so_far = now_ - active.started});
  }
  const std::optional<Remaining> left = forecast_.remaining(running);
  // Empty if all known tasks are late: "at least 0 s" would say nothing.
  if (!left || left->time == Duration{0}) return {};
  // Tenths of a second would only flicker.
  const Duration rounded = (left->time + Duration{999}) / 1000 * 1000;
  const auto seconds = rounded.count() / 1000;
  const std::string time = seconds < 60 ? fmt::format("{} s", seconds) : to_text(rounded);
  return fmt::format(", ETA {}{}", left->at_least ? "at least " : "", time);
}

std::string ProgressLine::reason_text() const {
  if (reasons_.empty() || waiting() + counts_.retrying == 0 || interrupts_ > 0) return {};
  const bool idle = counts_.running == 0;
  if (!idle && now_ - last_start_beside_ < kReasonAfter) return {};
  // Tasks on hold are counted with their cure.
  const auto named = std::ranges::find_if(
      reasons_, [](const auto& each) { return each.second.cause != model::Cause::Held; });
  if (named == reasons_.end()) return {};
  const auto& [shape, reason] = *named;
  const std::string first = reason.first ? options_.name_of(*reason.first) : std::string();
  const model::Help help =
      model::help_for(reason, rooms_.room_of(reason), shape_batches_.at(shape.value));
  const std::string why = rooms_.reason_text(reason, first) + short_help_text(help);
  return (why.starts_with("waits ") ? ", " : ", waits: ") + plain(why);
}

void ProgressLine::show() { options_.terminal ? draw() : write_plain(); }

void ProgressLine::draw() {
  // The next turn may be a second away, and the last task that waited has started.
  const bool is_stale = shows_reason_ && reason_text().empty();
  if (drawn_ && now_ - shown_at_ < kRedrawMin && !is_stale) return;
  // The last column stays free: some terminals begin a new line when it is written to.
  const int width = std::max(1, options_.width() - 1);
  options_.write("\r" + cut(line(), width) + "\x1b[K");
  drawn_ = true;
  shows_reason_ = !reason_text().empty();
  shown_at_ = now_;
}

void ProgressLine::write_plain() {
  const Duration since = now_ - shown_at_;
  // The reason why no task runs at all is printed soon, and once.
  const bool idle = counts_.running == 0 && shown_at_ <= last_start_ &&
                    now_ - last_start_ >= kReasonAfter &&
                    (counts_.on_hold > 0 || !reason_text().empty());
  const bool due = idle || since >= (counts_ == shown_ ? kQuietMax : kPlainEvery);
  if (!due && step() <= step_shown_) return;
  options_.write(fmt::format("[{}] {}\n", to_text(now_.since_start), line()));
  count_as_shown();
}

void ProgressLine::finish() {
  if (finished_) return;
  finished_ = true;
  if (options_.terminal) {
    if (drawn_) options_.write("\r\x1b[K");
    return;
  }
  if (!started_ || counts_ == shown_) return;
  options_.write(fmt::format("[{}] {}\n", to_text(now_.since_start), line()));
}

}  // namespace trainyard::report
