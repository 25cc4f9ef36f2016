#include "config/early_signal.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/nearest.h"
#include "base/result.h"
#include "base/time.h"
#include "config/setting_value.h"
#include "model/plan.h"
#include "schedule/ending.h"

namespace trainyard {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 12> kSignals{{{"USR1", SIGUSR1},
                                                                     {"USR2", SIGUSR2},
                                                                     {"HUP", SIGHUP},
                                                                     {"INT", SIGINT},
                                                                     {"QUIT", SIGQUIT},
                                                                     {"ALRM", SIGALRM},
                                                                     {"CONT", SIGCONT},
                                                                     {"URG", SIGURG},
                                                                     {"XCPU", SIGXCPU},
                                                                     {"XFSZ", SIGXFSZ},
                                                                     {"WINCH", SIGWINCH},
                                                                     {"IO", SIGIO}}};
constexpr Duration kUsual{60'000};
constexpr Duration kLeast{1'000};
constexpr Duration kMost{86'400'000};

std::string unknown_text(std::string_view name) {
  constexpr std::string_view kExample = "as in signal: USR1@120";
  if (name == "KILL" || name == "STOP") {
    return fmt::format("SIG{} cannot be caught: take another, {}", name, kExample);
  }
  if (name == "TERM") return fmt::format("SIGTERM comes anyway: take another, {}", kExample);
  std::array<std::string_view, kSignals.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names.at(i) = kSignals.at(i).first;
  const auto meant = nearest(name, names);
  if (meant) return fmt::format("there is no signal '{}'; did you mean {}?", name, *meant);
  return fmt::format("there is no signal '{}'; it is a name, {}", name, kExample);
}

}  // namespace

Result<EarlySignal> parse_early_signal(std::string_view text) {
  const auto at = text.find('@');
  std::string_view name = text.substr(0, at);
  if (name.starts_with("SIG")) name.remove_prefix(3);
  EarlySignal signal{.number = 0, .before = kUsual};
  for (const auto& [known, number] : kSignals) {
    if (known == name) signal.number = number;
  }
  if (signal.number == 0) return std::unexpected(Error{unknown_text(name)});
  if (at == std::string_view::npos) return signal;
  const Result<Duration> before = parse_seconds(text.substr(at + 1));
  if (!before) return std::unexpected(before.error());
  if (*before < kLeast || *before > kMost) {
    return std::unexpected(
        Error{fmt::format("'{}' is not from a second to a day", text.substr(at + 1))});
  }
  signal.before = *before;
  return signal;
}

bool fits_into(Duration time_limit, const EarlySignal& signal) {
  return signal.number == 0 || time_limit == Duration{0} || signal.before < time_limit;
}

std::string too_early_text(Duration time_limit, const EarlySignal& signal) {
  return fmt::format("signal: it comes {} before the time limit, which is {}",
                     to_text(signal.before), to_text(time_limit));
}

std::string to_text(const EarlySignal& signal) {
  return fmt::format("{}, {} before TERM", signal_name(signal.number), to_text(signal.before));
}

}  // namespace trainyard
