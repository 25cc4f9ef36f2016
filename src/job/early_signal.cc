#include "job/early_signal.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <expected>
#include <vector>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/nearest.h"
#include "model/status.h"
#include "model/terms.h"
#include "settings/setting_value.h"

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

}  // namespace

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

}  // namespace trainyard::job
