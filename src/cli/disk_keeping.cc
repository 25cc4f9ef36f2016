#include "cli/disk_keeping.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/result.h"
#include "base/time.h"
#include "job/job.h"
#include "job/keep.h"
#include "job/result_value.h"
#include "journal/reader.h"
#include "model/command.h"
#include "model/status.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"

namespace trainyard::cli {
namespace {

/// The time that the end of a run waits for the next directory to be emptied.
constexpr Duration kPatience{60'000};
/// The time that it waits before it says so.
constexpr Duration kSilentlyDeleting{1'000};

const std::string& run_directory_of(const JobTasks& tasks) {
  return tasks.jobs().first().paths().run_directory;
}

/// The numbers that tasks have left, from the journal; it is opened at the first use.
class LeftNumbers {
 public:
  explicit LeftNumbers(const JobTasks& tasks) : tasks_(tasks) {}

  std::optional<double> of(model::TaskIndex task, const job::Keep& keep) {
    if (!reader_) {
      auto opened = journal::JournalReader::open(run::journal_path(run_directory_of(tasks_)));
      if (!opened) return std::nullopt;
      reader_.emplace(std::move(*opened));
    }
    const auto [batch, in_batch] = tasks_.jobs().place_of(task);
    const auto result = reader_->find_result(batch, in_batch).value_or(std::nullopt);
    return result ? job::number_in_result(*result, keep.key) : std::nullopt;
  }

 private:
  const JobTasks& tasks_;
  std::optional<journal::JournalReader> reader_;
};

/// "197 of 200 tasks of 'train' were not among the best 3 by acc: 985 GB were freed"
std::string told_of(const job::BestKept::Told& told, Bytes given_back) {
  std::string text = fmt::format("keep: {} of {} of '{}' {} not among the best {} by {}",
                                 told.worse, report::counted(told.finished, "task"), told.name,
                                 told.worse == 1 ? "was" : "were", told.keep.best, told.keep.key);
  if (given_back > Bytes{}) text += fmt::format(": {} were freed", to_text(given_back));
  if (const std::size_t held = told.worse - told.given; held > 0) {
    text += fmt::format(
        "; the files of {} of them stay, as a task that needs them has not finished", held);
  }
  return text;
}

}  // namespace

DiskKeeping::DiskKeeping(JobTasks& tasks)
    : tasks_(tasks), sweeper_({.root = run_directory_of(tasks), .kept = [](std::string_view name) {
                                 return run::is_result_file(name) || run::is_log_file(name);
                               }}) {}

void DiskKeeping::add(const model::BatchAdded& batch) {
  kept_.add(*batch.plan, tasks_.jobs().at(batch.number - 1).kept_groups());
  more_follow_ = batch.more_follow;
  const std::uint32_t first = known_;
  known_ += static_cast<std::uint32_t>(batch.plan->tasks.size());
  LeftNumbers numbers(tasks_);
  for (std::uint32_t task = first; task < known_; ++task) {
    const job::Keep* const keep = kept_.keep_of({task});
    if (keep == nullptr || !batch.plan->tasks[task - first].finished_before()) continue;
    kept_.change({task}, model::Verdict::Finished, numbers.of({task}, *keep));
  }
}

void DiskKeeping::see(const model::Turn& turn) {
  LeftNumbers numbers(tasks_);
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    if (const auto* const batch = std::get_if<model::BatchAdded>(&turn.events[i].what)) add(*batch);
    for (const model::Change& change : turn.decisions[i].changes) {
      const auto* const task = std::get_if<model::TaskChanged>(&change);
      if (task == nullptr) continue;
      const bool has_finished = task->verdict == model::Verdict::Finished;
      const job::Keep* const keep = has_finished ? kept_.keep_of(task->key.task) : nullptr;
      kept_.change(task->key.task, task->verdict,
                   keep == nullptr ? std::nullopt : numbers.of(task->key.task, *keep));
    }
  }
  sweep();
}

void DiskKeeping::sweep() {
  if (tasks_.rounds_are_over()) kept_.no_more_rounds();
  if (!more_follow_) std::ranges::move(kept_.take(), std::back_inserter(to_go_));
  hear(sweeper_.hear());
  const std::size_t root = run_directory_of(tasks_).size() + 1;
  while (gone_ < to_go_.size() && sweeper_.has_room()) {
    const model::TaskIndex task = to_go_[gone_++];
    sweeper_.sweep(task.value, tasks_.jobs().task_directory(task).substr(root));
  }
}

void DiskKeeping::hear(std::vector<process::Sweeper::Swept> swept) {
  for (process::Sweeper::Swept& each : swept) {
    given_back_[kept_.number_of({each.number})] += each.bytes;
    for (std::string& why : each.failed) {
      if (failed_.size() < kFailedMax) failed_.push_back(std::move(why));
    }
  }
}

void DiskKeeping::wait() {
  Duration patience = kSilentlyDeleting;
  for (sweep(); !sweeper_.is_idle(); sweep()) {
    std::vector<process::Sweeper::Swept> swept = sweeper_.wait(patience);
    const bool heard = !swept.empty();
    hear(std::move(swept));
    if (heard) continue;
    if (std::exchange(patience, kPatience) == kPatience) {
      return tasks_.note(
          fmt::format("keep: the disk has not answered for {} s: the files to delete stay until "
                      "the run is resumed",
                      kPatience.count() / 1000));
    }
    tasks_.note("keep: deleting takes a while; Ctrl-C leaves the remaining files");
  }
}

void DiskKeeping::finish() {
  wait();
  tell();
}

void DiskKeeping::tell() {
  const std::vector<job::BestKept::Told> all = kept_.told();
  for (std::size_t number = 0; number < all.size(); ++number) {
    const job::BestKept::Told& told = all[number];
    if (told.worse > 0) tasks_.note(told_of(told, given_back_[number]));
    if (told.without == 0) continue;
    std::vector<std::string> names;
    for (const model::TaskIndex task : told.unknown) names.push_back(tasks_.jobs().name_of(task));
    if (told.without > names.size()) names.emplace_back("...");
    tasks_.note(fmt::format(
        "keep: {} of {} of '{}' reported no number '{}', so their files stay: {}", told.without,
        report::counted(told.finished, "task"), told.name, told.keep.key, fmt::join(names, ", ")));
  }
  for (const std::string& why : failed_) tasks_.note(fmt::format("keep: not deleted: {}", why));
}

}  // namespace trainyard::cli
