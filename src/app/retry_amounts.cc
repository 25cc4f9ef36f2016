#include "app/retry_amounts.h"

#include <algorithm>
#include <expected>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "app/task_selection.h"
#include "base/bytes.h"
#include "base/duration_text.h"
#include "base/time.h"
#include "model/resources.h"
#include "report/terminal_text.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

/// Number of reasons that an error names.
constexpr std::size_t kReasonsMax = 20;

std::string not_more_than_zero(const std::string& option, const std::string& typed) {
  return fmt::format("{}: '{}' must be more than 0", option, typed);
}

bool has_no_gpu(const journal::TaskRow& task) {
  return task.attempt > 0 && task.gpu_memory_requested == Bytes{} && task.gpus.empty();
}

RequestedAmounts without_smaller(RequestedAmounts amounts,
                                 const std::vector<journal::TaskRow>& tasks,
                                 const job::Jobs& jobs) {
  for (const auto& [option, typed, requested] :
       {std::tuple{"--memory", &wire::Retry::memory_bytes, &model::Request::memory},
        std::tuple{"--gpu-memory", &wire::Retry::gpu_memory_bytes, &model::Request::gpu_memory}}) {
    const Bytes amount{amounts.with.*typed};
    if (amount == Bytes{}) continue;
    std::string first;
    std::size_t count = 0;
    for (const journal::TaskRow& task : tasks) {
      const auto index = jobs.find(task.group_name, task.id);
      if (!index) continue;
      const Bytes own = jobs.terms_of(*index).request.*requested;
      if (own <= amount) continue;
      if (++count == 1) first = fmt::format("{} ({})", shown_name(task), to_text(own));
    }
    if (count == 0) continue;
    const std::string more = count == 1 ? "" : fmt::format(" and {} more", count - 1);
    amounts.notes.push_back(fmt::format("{}: {}{} {} more than {} and {}", option,
                                        report::plain(first), more,
                                        count == 1 ? "requests" : "request", to_text(amount),
                                        count == 1 ? "keeps its request" : "keep their requests"));
    if (count == tasks.size()) amounts.with.*typed = 0;
  }
  return amounts;
}

}  // namespace

void NeverRunningTasks::add(const journal::TaskRow& task, const std::string& why) {
  const auto same = std::ranges::find(reasons_, why, &Reason::why);
  if (same != reasons_.end()) {
    ++same->count;
  } else if (reasons_.size() == kReasonsMax) {
    ++not_named_;
  } else {
    reasons_.push_back({.why = why, .first = report::plain(shown_name(task))});
  }
}

void NeverRunningTasks::add_to(Error& error) const {
  for (const auto& [why, first, count] : reasons_) {
    std::string more;
    if (count > 1) more = fmt::format(" and {} more {}", count - 1, count == 2 ? "task" : "tasks");
    error.add(fmt::format("{}{} can never run here: {}{}", first, more,
                          count > 1 && why.starts_with("needs ") ? "each " : "", why));
  }
  if (not_named_ > 0) error.add(fmt::format("and {} more", not_named_));
}

Result<RequestedAmounts> read_amounts(const RetryRequest& request) {
  RequestedAmounts amounts;
  wire::Retry& with = amounts.with;
  Error wrong;
  for (const auto& [option, text, member] :
       {std::tuple{"--memory", &request.memory, &wire::Retry::memory_bytes},
        std::tuple{"--gpu-memory", &request.gpu_memory, &wire::Retry::gpu_memory_bytes}}) {
    if (text->empty()) continue;
    const Result<Bytes> amount = parse_bytes(*text);
    if (!amount) {
      wrong.add(Error(amount.error()).in(option).message);
    } else if (*amount == Bytes{}) {
      wrong.add(not_more_than_zero(option, *text));
    } else {
      with.*member = amount->count;
    }
  }
  if (!request.time_limit.empty()) {
    const Result<Duration> limit = parse_duration(request.time_limit);
    if (!limit) {
      wrong.add(Error(limit.error()).in("--time-limit").message);
    } else if (*limit <= Duration{0}) {
      wrong.add(not_more_than_zero("--time-limit", request.time_limit));
    } else {
      with.time_limit_ms = limit->count();
    }
  }
  if (wrong.message.empty()) return amounts;
  return std::unexpected(std::move(wrong));
}

Result<RequestedAmounts> note_unused_gpu_memory(RequestedAmounts amounts,
                                                const std::vector<journal::TaskRow>& tasks) {
  if (amounts.with.gpu_memory_bytes == 0) return amounts;
  const auto found = std::ranges::find_if(tasks, has_no_gpu);
  if (found == tasks.end()) return amounts;
  const auto count = std::ranges::count_if(tasks, has_no_gpu);
  const std::string which =
      fmt::format("--gpu-memory: {}{} no GPU", shown_name(*found),
                  count == 1 ? " uses" : fmt::format(" and {} more use", count - 1));
  if (std::cmp_equal(count, tasks.size())) {
    return std::unexpected(
        Error{which + "; leave it out, or reserve more of the machine's memory with --memory"});
  }
  amounts.notes.push_back(
      fmt::format("{}, and {} retried without one", which, count == 1 ? "is" : "are"));
  return amounts;
}

Result<RequestedAmounts> fitted(RequestedAmounts amounts,
                                const std::vector<journal::TaskRow>& tasks, const job::Jobs& jobs) {
  NeverRunningTasks never;
  for (const journal::TaskRow& task : tasks) {
    const auto index = jobs.find(task.group_name, task.id);
    if (!index) continue;
    const std::string why =
        jobs.why_never_with(*index, {.memory = Bytes{amounts.with.memory_bytes},
                                     .gpu_memory = Bytes{amounts.with.gpu_memory_bytes}});
    if (!why.empty()) never.add(task, why);
  }
  Error wrong;
  never.add_to(wrong);
  if (!wrong.message.empty()) return std::unexpected(std::move(wrong));
  return without_smaller(std::move(amounts), tasks, jobs);
}

std::string typed_amounts(const RetryRequest& request) {
  std::string text;
  for (const auto& [option, typed] :
       {std::pair{"--memory", &request.memory}, std::pair{"--gpu-memory", &request.gpu_memory},
        std::pair{"--time-limit", &request.time_limit}}) {
    if (!typed->empty()) text += fmt::format(" {} {}", option, text::shell_word(*typed));
  }
  return text;
}

std::string with_text(const wire::Retry& with) {
  std::string text;
  const auto add = [&text](const std::string& what) {
    text += (text.empty() ? " with " : ", ") + what;
  };
  if (with.memory_bytes > 0) add("at least " + to_text(Bytes{with.memory_bytes}) + " of memory");
  if (with.gpu_memory_bytes > 0)
    add("at least " + to_text(Bytes{with.gpu_memory_bytes}) + " on each GPU");
  if (with.time_limit_ms > 0) add("a time limit of " + exact_text(Duration{with.time_limit_ms}));
  return text;
}

}  // namespace trainyard::app
