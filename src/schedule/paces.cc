#include "schedule/paces.h"

#include <algorithm>

namespace trainyard::schedule {
namespace {

/// The least progress of a task that shows its speed.
constexpr double kProgressLeast = 0.05;
/// And the least time for it: progress is reported in steps.
constexpr Duration kProgressTimeLeast{2'000};
/// The part of its time, in hundredths, that one must have spent with the same number.
constexpr int kMostOfItsTime = 80;

/// The work of `together` tasks to a GPU that take so long: in what unit does not matter.
double work_of(std::size_t together, Duration time) {
  return static_cast<double>(together) /
         static_cast<double>(std::max<std::int64_t>(time.count(), 1));
}

}  // namespace

void Paces::Times::add(Duration time) {
  ++tasks;
  if (last.size() < kTasksMax) return last.push_back(time);
  last[next] = time;
  next = (next + 1) % kTasksMax;
}

std::optional<Duration> Paces::Times::median() const {
  if (last.size() < kTasksLeast) return std::nullopt;
  std::vector<Duration> sorted = last;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

void Paces::began(model::TaskIndex task, model::ShapeIndex shape, const model::Site& site,
                  Instant at) {
  for (const model::GpuIndex gpu : site.gpus) ++on_gpu_[{site.machine, gpu}];
  at_work_[task] = {.shape = shape,
                    .site = site,
                    .since = at,
                    .together = together_on(site),
                    .stretch = {.since = at, .first_word = {}, .last_word = at}};
  look_at_all(at);
}

void Paces::progressed(model::TaskIndex task, double fraction, Instant at) {
  const auto found = at_work_.find(task);
  if (found == at_work_.end() || fraction < found->second.fraction) return;
  AtWork& it = found->second;
  it.fraction = fraction;
  if (!it.stretch.first_word) {
    it.stretch.first_word = at;
    it.stretch.first_fraction = fraction;
  }
  it.stretch.last_word = at;
}

void Paces::ended(model::TaskIndex task, bool well, Instant at) {
  auto node = at_work_.extract(task);
  if (node.empty()) return;
  AtWork& it = node.mapped();
  close(it, at);
  for (const model::GpuIndex gpu : it.site.gpus) --on_gpu_[{it.site.machine, gpu}];
  const Duration took = at - it.since;
  const auto most = std::ranges::max_element(it.spent);
  const auto together = static_cast<std::size_t>(most - it.spent.begin());
  if (well && took > Duration{0} && *most * 100 >= took * kMostOfItsTime) {
    measure(it, together, took);
  }
  look_at_all(at);
}

std::size_t Paces::together_on(const model::Site& site) const {
  std::size_t most = 1;
  for (const model::GpuIndex gpu : site.gpus) {
    const auto found = on_gpu_.find({site.machine, gpu});
    if (found != on_gpu_.end()) most = std::max(most, found->second);
  }
  return std::min(most, kNumbers - 1);
}

/// A task has come or gone: the tasks that share a GPU with it begin a new stretch.
void Paces::look_at_all(Instant at) {
  for (auto& [task, it] : at_work_) {
    const std::size_t now = together_on(it.site);
    if (now == it.together) continue;
    close(it, at);
    it.together = now;
  }
}

void Paces::close(AtWork& task, Instant at) {
  const Stretch& of = task.stretch;
  task.spent[task.together] += at - of.since;
  if (of.first_word) {
    const double came = task.fraction - of.first_fraction;
    const Duration took = of.last_word - *of.first_word;
    if (came >= kProgressLeast && took >= kProgressTimeLeast) {
      const auto whole = static_cast<std::int64_t>(static_cast<double>(took.count()) / came);
      measure(task, task.together, Duration{whole});
    }
  }
  task.stretch = {.since = at, .first_word = {}, .last_word = at};
}

/// A task counts once for each number.
void Paces::measure(AtWork& task, std::size_t together, Duration time) {
  if (std::exchange(task.measured[together], true)) return;
  times_[task.shape][together].add(time);
  if (std::ranges::find(news_, task.shape) == news_.end()) news_.push_back(task.shape);
}

Paces::Price Paces::price(model::ShapeIndex shape) const {
  const auto found = times_.find(shape);
  if (found == times_.end()) return {};
  Price price;
  std::optional<double> alone;
  const int of_one = found->second[1].tasks;
  double most_work = 0;
  for (std::size_t together = 1; together < kNumbers; ++together) {
    const std::optional<Duration> time = found->second[together].median();
    if (!time) continue;
    const double work = work_of(together, *time);
    if (together == 1) alone = work;
    // One more is let on while the work rises, also where a number between was never measured.
    if (most_work > 0 && work * 1000 <= most_work * (1000 + kGainLeast)) {
      price.to_a_gpu_max = static_cast<int>(together) - 1;
      if (alone && !price.best) price.best = {.to_a_gpu = 1, .factor = 1, .tasks = of_one};
      return price;
    }
    most_work = work;
    if (alone && together > 1) {
      price.best = {.to_a_gpu = static_cast<int>(together),
                    .factor = work / *alone,
                    .tasks = found->second[together].tasks};
    }
  }
  return price;
}

std::vector<model::ShapeIndex> Paces::take_news() { return std::exchange(news_, {}); }

}  // namespace trainyard::schedule
