#include "schedule/another_try.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/result.h"
#include "base/split_mix64.h"
#include "schedule/ending.h"

namespace trainyard::schedule {
namespace {

/// Comes before the delay in the text of a retry.
constexpr std::string_view kRetryIn = " in ";

void add_one(std::uint8_t& count) {
  if (count < std::numeric_limits<std::uint8_t>::max()) ++count;
}

/// The delay before the next try, after so many that failed. Doubled without overflow.
Duration delay_after(int failed, Duration first) {
  Duration delay = std::min(first, kRetryDelayMax);
  for (int i = 1; i < failed && delay < kRetryDelayMax && delay > Duration{0}; ++i) {
    delay = std::min(2 * delay, kRetryDelayMax);
  }
  return delay;
}

/// The try that comes where a task has a first one and `more`, and `gone` of them went wrong.
std::optional<AnotherTry> one_of(int more, int gone, Duration delay = Duration{0}) {
  const int most = std::min(more, kRetriesMax) + 1;
  if (gone >= most) return std::nullopt;
  return AnotherTry{.delay = delay, .number = gone + 1, .most = most};
}

/// From 0 to `most`: the same on every machine.
Duration draw(model::AttemptKey of, Duration most) {
  const std::uint64_t drawn = SplitMix64(std::uint64_t{of.task.value} << 32U | of.attempt).next();
  return Duration{
      static_cast<std::int64_t>(drawn % (static_cast<std::uint64_t>(most.count()) + 1))};
}

}  // namespace

void Tries::count(Setback setback, Stage stage) {
  switch (setback) {
    case Setback::OutOfMemory:
      add_one(stage == Stage::Load ? load_out_of_memory : train_out_of_memory);
      break;
    case Setback::Failed:
    case Setback::TimeLimit:
      add_one(failed);
      break;
    case Setback::Lost:
      add_one(lost);
      break;
    case Setback::Preempted:
      add_one(preempted);
      break;
    case Setback::Crowded:
      add_one(crowded);
      break;
    case Setback::Cleared:
      add_one(cleared);
      break;
    case Setback::StartRefused:
    case Setback::Final:
      break;
  }
}

model::MemoryTries Tries::of_memory() const {
  return {.load = load_out_of_memory,
          .train = train_out_of_memory,
          .preempted = preempted,
          .crowded = crowded};
}

Tries tries_after_resume(const model::MemoryTries& before, const model::Terms& terms,
                         const model::Policy& policy) {
  const auto but_one = [&](std::uint8_t gone, Stage stage) {
    const int most = std::max(memory_tries_max(stage, terms, policy) - 1, 0);
    return static_cast<std::uint8_t>(std::min<int>(gone, most));
  };
  return {.load_out_of_memory = but_one(before.load, Stage::Load),
          .train_out_of_memory = but_one(before.train, Stage::Train),
          .preempted = before.preempted,
          .crowded = before.crowded};
}

int memory_tries_max(Stage stage, const model::Terms& terms, const model::Policy& policy) {
  const int of_all = stage == Stage::Load ? policy.load_retries : policy.train_retries;
  const auto& more = terms.retries.out_of_memory;
  return std::min(more ? *more : of_all - 1, kRetriesMax) + 1;
}

bool ends_without_gpu_memory(const model::Terms& terms, const model::Policy& policy) {
  return terms.gpu_memory_limit == model::GpuMemoryLimit::Hard ||
         memory_tries_max(Stage::Train, terms, policy) <= 1;
}

std::optional<AnotherTry> another_try(Setback setback, Stage stage, const Tries& tries,
                                      const model::Terms& terms, const model::Policy& policy) {
  const model::Retries& retries = terms.retries;
  switch (setback) {
    case Setback::OutOfMemory:
      return one_of(memory_tries_max(stage, terms, policy) - 1,
                    stage == Stage::Load ? tries.load_out_of_memory : tries.train_out_of_memory);
    case Setback::TimeLimit:
      if (!retries.after_time_limit) return std::nullopt;
      [[fallthrough]];
    case Setback::Failed:
      return one_of(retries.failures, tries.failed, delay_after(tries.failed, retries.delay));
    case Setback::Lost:
      return one_of(kFaultlessTriesMax, tries.lost);
    case Setback::Preempted:
      return one_of(kFaultlessTriesMax, tries.preempted);
    case Setback::Crowded:
      return one_of(kFaultlessTriesMax, tries.crowded);
    case Setback::Cleared:
      return AnotherTry{.number = tries.cleared + 1, .most = 0};
    case Setback::StartRefused:
      return AnotherTry{.most = 0};
    case Setback::Final:
      break;
  }
  return std::nullopt;
}

Duration drawn_delay(Duration delay, model::AttemptKey failed) {
  return delay + draw(failed, delay / 2);
}

Duration spread_delay(model::AttemptKey failed) { return draw(failed, kRetrySpread); }

std::string delay_text(Duration delay) {
  if (delay >= Duration{60'000}) return trainyard::to_text(delay);
  return exact_text(Duration{delay.count() - (delay.count() % 100)});
}

std::string to_text(const AnotherTry& next) {
  std::string text = fmt::format("{}{}", kRetried, next.number - 1);
  if (next.most > 0) text += fmt::format(" of {}", next.most - 1);
  if (next.delay > Duration{0}) text += fmt::format("{}{}", kRetryIn, delay_text(next.delay));
  return text;
}

std::string with_time_left(std::string_view message, Duration age) {
  // What follows is the failure, in which these words mean something else.
  const std::string_view head = message.substr(0, message.find(": "));
  const std::string_view before = head.starts_with(kRetried) ? kRetryIn : kNextStart;
  const std::size_t begin = head.rfind(before);
  if (begin == std::string_view::npos) return std::string(message);
  std::string_view delay = head.substr(begin + before.size());
  if (delay.ends_with(')')) delay.remove_suffix(1);
  const Result<Duration> whole = parse_duration(delay);
  if (!whole) return std::string(message);
  const Duration left = *whole - age;
  const std::string counted =
      left > Duration{0} ? fmt::format("{}{}", before, delay_text(left)) : std::string();
  return fmt::format("{}{}{}", message.substr(0, begin), counted,
                     message.substr(begin + before.size() + delay.size()));
}

}  // namespace trainyard::schedule
