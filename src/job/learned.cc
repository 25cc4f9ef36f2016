#include "job/learned.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "base/check.h"
#include "base/number_text.h"
#include "base/percentile.h"
#include "run/run_directory.h"

namespace trainyard::job {
namespace {

std::vector<std::string_view> gpus_in(std::string_view labels) {
  std::vector<std::string_view> gpus;
  while (!labels.empty()) {
    const std::size_t comma = std::min(labels.find(','), labels.size());
    gpus.push_back(labels.substr(0, comma));
    labels.remove_prefix(std::min(comma + 1, labels.size()));
  }
  return gpus;
}

/// The work that `together` tasks do, at least and at most, as a multiple of the work of one.
std::pair<double, double> work_of(int together, const WorkTogether& work) {
  constexpr double kLeastBeyond = 0.5;
  if (together == 1) return {1, 1};
  if (work.best == 0) return {1, together};
  if (together > work.best) return {kLeastBeyond, work.factor};
  const double part = static_cast<double>(together - 1) / (work.best - 1);
  const double known = 1 + (work.factor - 1) * part;
  return {known, known};
}

/// Up to two significant digits, or coarsely to the next of 1, 1.3, 1.69, ...: the tasks of a large
/// group should not each be a separate kind.
std::int64_t rounded_up(std::int64_t value, bool coarsely) {
  if (coarsely) {
    double step = 1;
    while (step < static_cast<double>(value)) step *= 1.3;
    return static_cast<std::int64_t>(step);
  }
  return up_to_two_digits(value);
}

bool differs(std::int64_t own, std::int64_t usual, double by) {
  return std::abs(static_cast<double>(own - usual)) > by * static_cast<double>(usual);
}

/// The expected memory: the usual one with a margin, or that of the task itself.
Expected<Bytes> with_margin(const Expected<Bytes>& own, const Expected<Bytes>& usual,
                            bool coarsely) {
  constexpr double kClearly = 0.1;
  const bool counts = own.value > Bytes{} && differs(own.value.count, usual.value.count, kClearly);
  Expected<Bytes> expected = counts ? own : usual;
  const std::int64_t base = counts ? rounded_up(own.value.count, coarsely) : usual.value.count;
  expected.value = {base + (base / 10)};
  return expected;
}

Expected<Duration> time_expected(const Expected<Duration>& own, const Expected<Duration>& usual,
                                 bool coarsely) {
  constexpr double kClearly = 0.25;
  const bool counts =
      own.value > Duration{0} && differs(own.value.count(), usual.value.count(), kClearly);
  if (!counts) return usual;
  Expected<Duration> expected = own;
  expected.value = Duration{rounded_up(own.value.count(), coarsely)};
  return expected;
}

/// If only the bounds of the time are known: the value within them that is nearest to the usual
/// one.
Duration train_alone(const LearnedTask& task, Duration usual) {
  if (task.train_least == Duration{0}) return task.train;
  return std::clamp(usual, task.train_least, task.train);
}

/// Gathers what the tasks of a group took, and who was the last to teach it.
template <class Value>
struct Gathered {
  std::vector<std::int64_t> values;
  LearnedFrom last;
  std::int64_t largest_at_least = 0;

  void add(std::int64_t value, const LearnedFrom& from, bool at_least = false) {
    if (value == 0) return;
    if (values.empty() || from.started_unix_ms > last.started_unix_ms) last = from;
    values.push_back(value);
    if (at_least) largest_at_least = std::max(largest_at_least, value);
  }
  [[nodiscard]] Expected<Value> as_expected(std::int64_t value) const {
    return {
        .value = Value{value}, .from = last, .at_least = value > 0 && largest_at_least >= value};
  }
  [[nodiscard]] Expected<Value> least() const {
    return as_expected(values.empty() ? 0 : std::ranges::min(values));
  }
  [[nodiscard]] Expected<Value> percentile() const { return as_expected(percentile_95(values)); }
  [[nodiscard]] Expected<Value> average() const {
    double sum = 0;
    for (const std::int64_t value : values) sum += static_cast<double>(value);
    const auto count = static_cast<double>(std::max<std::size_t>(values.size(), 1));
    return as_expected(static_cast<std::int64_t>(sum / count));
  }
};

}  // namespace

void TimeAlone::add(const StayOnGpus& stay) {
  check(!sorted_, "all stays are added before the first is asked for");
  if (stay.until <= stay.from) return;
  for (const std::string_view gpu : gpus_in(stay.gpus)) {
    Presence& presence = on_gpu_[std::string(gpu)];
    presence.emplace_back(stay.from, 1);
    presence.emplace_back(stay.until, -1);
  }
}

void TimeAlone::sort() {
  if (std::exchange(sorted_, true)) return;
  for (auto& [gpu, presence] : on_gpu_) {
    std::ranges::sort(presence);
    int there = 0;
    for (auto& [at, count] : presence) count = there += count;
  }
}

TimeAlone::Bounds TimeAlone::of(const StayOnGpus& stay, const WorkTogether& work) {
  sort();
  // The count changes when a task comes to or leaves any of its GPUs; the fullest GPU counts.
  std::vector<Instant> moments{stay.from, stay.until};
  std::vector<const Presence*> on;
  const auto after = [](const Presence& presence, Instant at) {
    return std::ranges::upper_bound(presence, at, {}, &Presence::value_type::first);
  };
  for (const std::string_view gpu : gpus_in(stay.gpus)) {
    const auto found = on_gpu_.find(gpu);
    if (found == on_gpu_.end()) continue;
    on.push_back(&found->second);
    const Presence& presence = found->second;
    for (auto at = after(presence, stay.from); at != presence.end() && at->first < stay.until;
         ++at) {
      moments.push_back(at->first);
    }
  }
  std::ranges::sort(moments);
  double least = 0;
  double most = 0;
  for (std::size_t i = 1; i < moments.size(); ++i) {
    int there = 1;
    for (const Presence* const presence : on) {
      const auto next = after(*presence, moments[i - 1]);
      if (next != presence->begin()) there = std::max(there, std::prev(next)->second);
    }
    const auto took = static_cast<double>((moments[i] - moments[i - 1]).count());
    const auto [low, high] = work_of(there, work);
    least += took * std::min(1.0, low / there);
    most += took * std::min(1.0, high / there);
  }
  return {.least = Duration{std::llround(least)}, .most = Duration{std::llround(most)}};
}

bool is_alike(const LearnedFrom& from, const LearnedFor& here) {
  const bool nobody_knows = from.host.empty();
  return nobody_knows || from.host == here.host ||
         (!from.gpu.empty() && std::ranges::find(here.gpus, from.gpu) != here.gpus.end());
}

std::string to_text(const LearnedFrom& from, const LearnedFor& here) {
  if (from.run.empty()) return "an earlier run";
  std::string text = from.run;
  if (from.started_unix_ms > 0) {
    const std::chrono::year_month_day date{
        std::chrono::floor<std::chrono::days>(std::chrono::sys_time<std::chrono::milliseconds>(
            std::chrono::milliseconds(from.started_unix_ms)))};
    text += fmt::format(" of {:04}-{:02}-{:02}", int{date.year()}, unsigned{date.month()},
                        unsigned{date.day()});
  }
  const bool other_gpu =
      !from.gpu.empty() && std::ranges::find(here.gpus, from.gpu) == here.gpus.end();
  if (from.host != here.host) text += " on " + from.host;
  if (other_gpu) text += fmt::format("{}{}", from.host != here.host ? ", " : " on ", from.gpu);
  return text;
}

std::uint32_t Learned::number_of(const LearnedFrom& from) {
  const auto [known, fresh] =
      numbers_.try_emplace(from, static_cast<std::uint32_t>(sources_.size()));
  if (fresh) sources_.push_back(from);
  return known->second;
}

void Learned::add(std::string_view group, std::string_view id, const LearnedTask& task,
                  const LearnedFrom& from, std::int64_t command) {
  const auto known = groups_.find(group);
  const bool there = known != groups_.end() && known->second.tasks.contains(id);
  if (!there && tasks_ == kTasksMax) return;
  if (!there) ++tasks_;
  Group& of = known != groups_.end() ? known->second : groups_[std::string(group)];
  const std::uint32_t number = number_of(from);
  Known& entry = of.tasks.try_emplace(std::string(id)).first->second;
  const bool same_command = entry.command == command;
  const bool keeps_gpu =
      same_command && task.gpu_memory == Bytes{} && entry.task.gpu_memory > Bytes{};
  const Bytes gpu_memory = keeps_gpu ? entry.task.gpu_memory : task.gpu_memory;
  // A time that was measured alone there before is better than a range.
  const bool keeps_time = same_command && task.train_least > Duration{0} &&
                          entry.task.train_least == Duration{0} &&
                          entry.task.train >= task.train_least && entry.task.train <= task.train &&
                          sources_[entry.from].host == from.host;
  const Duration train = keeps_time ? entry.task.train : task.train;
  entry = {.task = task,
           .from = number,
           .gpu_from = keeps_gpu ? entry.gpu_from : number,
           .command = command};
  entry.task.gpu_memory = gpu_memory;
  entry.task.train = train;
  if (keeps_time) entry.task.train_least = Duration{0};
  of.usual.reset();
}

void Learned::set_commands(std::string_view group, std::set<std::int64_t> commands) {
  const auto known = groups_.find(group);
  if (known == groups_.end()) return;
  known->second.commands = std::move(commands);
  known->second.usual.reset();
}

void Learned::set_sharing(std::string_view group, const LearnedSharing& sharing) {
  const auto known = groups_.find(group);
  if (known != groups_.end()) known->second.sharing = sharing;
}

std::optional<LearnedSharing> Learned::sharing(std::string_view group,
                                               const LearnedFor& here) const {
  const auto known = groups_.find(group);
  if (known == groups_.end()) return std::nullopt;
  const std::optional<LearnedSharing>& sharing = known->second.sharing;
  return sharing && is_alike(sharing->from, here) ? sharing : std::nullopt;
}

std::size_t Learned::forget() {
  groups_.clear();
  return std::exchange(tasks_, 0);
}

std::size_t Learned::forget(std::string_view group) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return 0;
  const std::size_t count = found->second.tasks.size();
  groups_.erase(found);
  tasks_ -= count;
  return count;
}

std::size_t Learned::forget(std::string_view group, std::string_view id) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return 0;
  const auto task = found->second.tasks.find(id);
  if (task == found->second.tasks.end()) return 0;
  if (found->second.tasks.size() == 1) return forget(group);
  found->second.tasks.erase(task);
  found->second.usual.reset();
  --tasks_;
  return 1;
}

const Learned::Usual& Learned::usual_of(Group& group, const LearnedFor& here) const {
  std::optional<Usual>& usual = group.usual;
  if (usual && usual->here.host == here.host && usual->here.gpus == here.gpus) return *usual;
  std::set<std::int64_t> measured;
  for (const auto& [id, entry] : group.tasks) measured.insert(entry.command);
  const auto is_of_now = [&group](std::int64_t it) { return group.commands.contains(it); };
  const bool any_of_now = std::ranges::any_of(measured, is_of_now);
  Gathered<Bytes> memory;
  Gathered<Bytes> gpu_memory;
  Gathered<Duration> load;
  Gathered<Duration> train;
  Gathered<Duration> train_beside_others;
  for (const auto& [id, entry] : group.tasks) {
    if (any_of_now && !is_of_now(entry.command)) continue;
    const LearnedTask& task = entry.task;
    const LearnedFrom& from = sources_[entry.from];
    memory.add(task.memory.count, from, task.memory_at_least);
    gpu_memory.add(task.gpu_memory.count, sources_[entry.gpu_from]);
    if (!is_alike(from, here)) continue;
    load.add(task.load.count(), from);
    const bool alone = task.train_least == Duration{0};
    (alone ? train : train_beside_others).add(task.train.count(), from);
  }
  return usual.emplace(Usual{
      .here = here,
      .expected = {.memory = memory.percentile(),
                   .gpu_memory = gpu_memory.percentile(),
                   .load = load.average(),
                   .train = train.values.empty() ? train_beside_others.least() : train.average(),
                   .beside_others = train.values.empty() && !train_beside_others.values.empty()},
      .commands = std::move(measured)});
}

ExpectedTask Learned::expected(std::string_view group, std::string_view id, const LearnedFor& here,
                               std::int64_t command) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return {};
  Group& of = found->second;
  const Usual& of_group = usual_of(of, here);
  const ExpectedTask& usual = of_group.expected;
  const bool compares = !of.commands.empty();
  const bool other_command = compares && !of_group.commands.contains(command);
  ExpectedTask own;
  const auto known = of.tasks.find(id);
  const bool counts =
      known != of.tasks.end() && (!compares || other_command || known->second.command == command);
  if (counts) {
    const Taken taken = taken_by(known->second);
    const bool alike = is_alike(taken.from, here);
    own = {.memory = {.value = taken.task.memory,
                      .from = taken.from,
                      .at_least = taken.task.memory_at_least},
           .gpu_memory = {.value = taken.task.gpu_memory, .from = taken.gpu_from},
           .load = {.value = alike ? taken.task.load : Duration{0}, .from = taken.from},
           .train = {.value = alike ? train_alone(taken.task, usual.train.value) : Duration{0},
                     .from = taken.from},
           .beside_others = alike && taken.task.train_least > Duration{0}};
  }
  constexpr std::size_t kMany = 100;
  const bool coarsely = of.tasks.size() > kMany;
  return {.memory = with_margin(own.memory, usual.memory, coarsely),
          .gpu_memory = with_margin(own.gpu_memory, usual.gpu_memory, coarsely),
          .load = time_expected(own.load, usual.load, coarsely),
          .train = time_expected(own.train, usual.train, coarsely),
          .beside_others = own.beside_others || usual.beside_others,
          .other_command = other_command};
}

Learned::Taken Learned::taken_by(const Known& known) const {
  return {.task = known.task,
          .from = sources_[known.from],
          .gpu_from = sources_[known.gpu_from],
          .command = known.command};
}

std::optional<Learned::Taken> Learned::taken(std::string_view group, std::string_view id) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return std::nullopt;
  const auto task = found->second.tasks.find(id);
  if (task == found->second.tasks.end()) return std::nullopt;
  return taken_by(task->second);
}

void Learned::each(
    const std::function<void(std::string_view, std::string_view, const Taken&)>& visit) const {
  for (const auto& [name, group] : groups_) {
    for (const auto& [id, known] : group.tasks) visit(name, id, taken_by(known));
  }
}

std::string learned_path(std::string_view job_file) {
  const std::filesystem::path path(job_file);
  return (path.parent_path() / ".trainyard" / (path.filename().string() + ".learned.json"))
      .string();
}

std::string learned_path(const std::string& job_file, std::string_view job_name) {
  const std::filesystem::path run = std::filesystem::path(job_file).parent_path();
  if (!run::is_kept_job_path(job_file) ||
      !run::is_directory_like(run.filename().string(), job_name)) {
    return learned_path(job_file);
  }
  return learned_path((run.parent_path() / job_name).string());
}

}  // namespace trainyard::job
