#include "job/term_text.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <expected>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/nearest.h"
#include "model/status.h"
#include "schedule/another_try.h"
#include "settings/setting_value.h"
#include "wire/worker.h"

namespace trainyard::job {
namespace {

constexpr std::array kSignals{SIGUSR1, SIGUSR2, SIGHUP,  SIGINT,  SIGQUIT,  SIGALRM,
                              SIGCONT, SIGURG,  SIGXCPU, SIGXFSZ, SIGWINCH, SIGIO};
constexpr std::string_view kPrefix = "SIG";
constexpr Duration kUsual{60'000};
constexpr Duration kLeast{1'000};
constexpr Duration kMost{86'400'000};

/// "USR1", as people say it.
std::string short_name(int number) { return model::signal_name(number).substr(kPrefix.size()); }

std::string unknown_text(std::string_view name) {
  constexpr std::string_view kExample = "as in USR1@120";
  if (name == "KILL" || name == "STOP") {
    return fmt::format("SIG{} cannot be caught; use another signal, {}", name, kExample);
  }
  if (name == "TERM")
    return fmt::format("SIGTERM is sent anyway; use another signal, {}", kExample);
  std::array<std::string, kSignals.size()> names;
  std::ranges::transform(kSignals, names.begin(), short_name);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto meant = nearest(name, known);
  if (meant) return fmt::format("unknown signal '{}' (did you mean {}?)", name, *meant);
  return fmt::format("unknown signal '{}'; write a name, {}", name, kExample);
}

Result<int> parse_number(std::string_view text) {
  const Result<int> number = settings::parse_count(text);
  if (number && *number >= 1 && *number <= model::kWorkersMax) return *number;
  return std::unexpected(
      Error{fmt::format("'{}' is not a whole number from 1 to {}", text, model::kWorkersMax)});
}

/// Adds the workers of one role, "collector=2".
Result<void> add_role(std::string_view part, Workers& workers) {
  const std::size_t equals = part.find('=');
  const std::string_view role = part.substr(0, equals);
  if (equals == std::string_view::npos) {
    return std::unexpected(
        Error{fmt::format("'{}' has no number; write it as in 'collector=2'", part)});
  }
  if (auto wrong = wire::wrong_worker_name(role)) return std::unexpected(Error{*std::move(wrong)});
  const Result<int> number = parse_number(part.substr(equals + 1));
  if (!number) return std::unexpected(Error(number.error()).in(fmt::format("'{}'", role)));
  if (std::ranges::find(workers.roles, role) != workers.roles.end()) {
    return std::unexpected(Error{fmt::format("duplicate role '{}'", role)});
  }
  workers.count += *number;
  if (workers.count > model::kWorkersMax) {
    return std::unexpected(
        Error{fmt::format("at most {} are allowed in total", model::kWorkersMax)});
  }
  workers.roles.insert(workers.roles.end(), static_cast<std::size_t>(*number), std::string(role));
  return {};
}

}  // namespace

Result<model::RunIf> parse_run_if(std::string_view text) {
  constexpr std::array kAll{model::RunIf::Success, model::RunIf::Failure, model::RunIf::Always};
  std::string_view word = text;
  if (word.ends_with("()")) word.remove_suffix(2);
  for (const model::RunIf condition : kAll) {
    std::string_view name = model::to_text(condition);
    name.remove_suffix(2);
    if (word == name) return condition;
  }
  constexpr std::array<std::string_view, 3> kNames{"success", "failure", "always"};
  const std::optional<std::string_view> near = nearest(word, kNames);
  if (near) {
    return std::unexpected(Error{fmt::format(
        "must be success, failure or always, not '{}' (did you mean '{}'?)", text, *near)});
  }
  return std::unexpected(Error{fmt::format("must be success, failure or always, not '{}'", text)});
}

Result<int> parse_retries(std::string_view text) {
  const Result<int> count = settings::parse_count(text);
  if (count && *count <= schedule::kRetriesMax) return *count;
  return std::unexpected(
      Error{fmt::format("'{}' is not a whole number from 0 to {}", text, schedule::kRetriesMax)});
}

Result<bool> parse_retry_on(std::string_view text) {
  constexpr std::array<std::string_view, 1> kWords{"time-limit"};
  bool time_limit = false;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (word != kWords.front()) {
      const auto meant = nearest(word, kWords);
      return std::unexpected(
          Error{meant ? fmt::format("'{}' is not time-limit (did you mean '{}'?)", word, *meant)
                      : fmt::format("must be time-limit, not '{}'; 'oom-retries' sets the "
                                    "retries after running out of memory",
                                    word)});
    }
    time_limit = true;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return time_limit;
}

std::string to_text(const model::Retries& retries) {
  std::string text;
  if (retries.failures > 0) {
    text = fmt::format("{} after a failure{}", retries.failures,
                       retries.after_time_limit ? " or the time limit" : "");
    if (retries.delay > Duration{0}) {
      text += fmt::format(", the first after {}", schedule::delay_text(retries.delay));
    }
  } else if (retries.after_time_limit || retries.delay > Duration{0}) {
    text = "none after a failure (0 retries)";
  }
  if (retries.out_of_memory) {
    text +=
        fmt::format("{}{} after out of memory", text.empty() ? "" : "; ", *retries.out_of_memory);
  }
  return text;
}

Result<model::EarlySignal> parse_early_signal(std::string_view text) {
  const auto at = text.find('@');
  std::string_view name = text.substr(0, at);
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  const auto* const number = std::ranges::find(kSignals, name, short_name);
  if (number == kSignals.end()) return std::unexpected(Error{unknown_text(name)});
  model::EarlySignal signal{.number = *number, .before = kUsual};
  if (at == std::string_view::npos) return signal;
  const Result<Duration> before = settings::parse_seconds(text.substr(at + 1));
  if (!before) return std::unexpected(before.error());
  if (*before < kLeast || *before > kMost) {
    return std::unexpected(
        Error{fmt::format("must be from 1 second to 1 day, not '{}'", text.substr(at + 1))});
  }
  signal.before = *before;
  return signal;
}

bool fits_into(Duration time_limit, const model::EarlySignal& signal) {
  return signal.number == 0 || time_limit == Duration{0} || signal.before < time_limit;
}

std::string too_early_text(Duration time_limit, const model::EarlySignal& signal) {
  return fmt::format("{} before the time limit is too early; 'time-limit' is {}",
                     trainyard::to_text(signal.before), trainyard::to_text(time_limit));
}

std::string to_text(const model::EarlySignal& signal) {
  return fmt::format("{}, {} before TERM", model::signal_name(signal.number),
                     trainyard::to_text(signal.before));
}

Result<Workers> parse_workers(std::string_view text) {
  Workers workers;
  if (text.find_first_of("=,") == std::string_view::npos) {
    const Result<int> number = parse_number(text);
    if (!number) return std::unexpected(number.error());
    workers.count = *number;
    return workers;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (Result<void> added = add_role(text.substr(begin, end - begin), workers); !added) {
      return std::unexpected(std::move(added.error()));
    }
    begin = end + 1;
  }
  return workers;
}

std::string to_text(const Workers& workers) {
  if (workers.roles.empty()) return fmt::to_string(workers.count);
  std::string text;
  for (auto role = workers.roles.begin(); role != workers.roles.end();) {
    // The workers of one role are next to each other.
    const auto next = std::find_if(role, workers.roles.end(),
                                   [&role](const std::string& it) { return it != *role; });
    text += fmt::format("{}{} of role {}", text.empty() ? "" : ", ", next - role, *role);
    role = next;
  }
  return text;
}

}  // namespace trainyard::job
