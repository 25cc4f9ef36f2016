#include "queue/rules/setbacks.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "run/run_outcome.h"

namespace trainyard::queue {
namespace {

void count_end(IncompleteRun& run, int finished, std::int64_t unix_ms) {
  constexpr std::int64_t kFirstPauseMs = 60'000;
  constexpr std::int64_t kLongestPauseMs = 30 * kFirstPauseMs;
  const bool got_on = run.ends == 0 || finished > run.finished;
  run.ends = got_on ? 1 : run.ends + 1;
  run.finished = finished;
  std::int64_t pause = kFirstPauseMs;
  for (int end = 1; end < run.ends && pause < kLongestPauseMs; ++end) pause *= 2;
  run.resumes_unix_ms = unix_ms + std::min(pause, kLongestPauseMs);
}

}  // namespace

void Setbacks::take_up(std::uint32_t number, const IncompleteRun& run) {
  incomplete_[number] = run;
}

void Setbacks::note_death(std::uint32_t number) { ++deaths_[number]; }

int Setbacks::deaths_of(std::uint32_t number) const {
  const auto found = deaths_.find(number);
  return found == deaths_.end() ? 0 : found->second;
}

std::variant<IncompleteRun, EndedSubmission> Setbacks::note_end(std::uint32_t number,
                                                                const SetAside& step, int finished,
                                                                std::int64_t unix_ms) {
  deaths_.erase(number);
  IncompleteRun& run = incomplete_[number];
  count_end(run, finished, unix_ms);
  run.began = step.began;
  run.why = step.why;
  // A run that could not start waits until it can.
  if (!run.began || run.ends < kIncompleteEndsMax) return run;
  return EndedSubmission{
      .exit_code = static_cast<int>(run::ExitCode::NotDone),
      .why = fmt::format("ended incomplete {} times in a row ({})", run.ends, run.why)};
}

void Setbacks::note_start(std::uint32_t number) {
  const auto found = incomplete_.find(number);
  if (found != incomplete_.end()) found->second.began = true;
}

void Setbacks::forget(std::uint32_t number) {
  deaths_.erase(number);
  incomplete_.erase(number);
}

void Setbacks::forget_if(const std::function<bool(std::uint32_t number)>& is_gone) {
  std::erase_if(incomplete_, [&is_gone](const auto& each) { return is_gone(each.first); });
}

bool Setbacks::is_incomplete(std::uint32_t number) const { return incomplete_.contains(number); }

Duration Setbacks::pause_left(std::uint32_t number, std::int64_t unix_ms) const {
  const std::int64_t left = incomplete_.at(number).resumes_unix_ms - unix_ms;
  return Duration{std::max<std::int64_t>(left, 0)};
}

bool Setbacks::is_machine_short() const {
  return std::ranges::any_of(incomplete_ | std::views::values,
                             [](const IncompleteRun& run) { return !run.began; });
}

}  // namespace trainyard::queue
