// Periods that only tests set, so that they need not wait for real seconds:
// `--set period.gpu-steady=200ms`. Programs built for users do not know these keys.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "base/time.h"
#include "model/plan.h"

namespace trainyard::settings {

/// A period of the scheduler's policy.
struct PolicyPeriod {
  std::string_view key;
  Duration model::Policy::* member;
};

inline constexpr std::array kPolicyPeriods{
    PolicyPeriod{.key = "period.gpu-gone", .member = &model::Policy::gpu_gone_max},
    PolicyPeriod{.key = "period.gpu-linger", .member = &model::Policy::gpu_linger_max},
    PolicyPeriod{.key = "period.gpu-steady", .member = &model::Policy::gpu_steady_after},
    PolicyPeriod{.key = "period.passed-time", .member = &model::Policy::passed_time_max},
};

/// How long an allocation is kept in which no task runs or could start.
inline constexpr std::string_view kAllocationIdle = "period.allocation-idle";

/// How long the keeper may take to answer before it is silent.
inline constexpr std::string_view kKeeperSilence = "period.keeper-silence";

/// How long what runs on another machine may take to end when its lease is over.
inline constexpr std::string_view kMachineEnd = "period.machine-end";

/// How long another machine may take to answer before it is silent.
inline constexpr std::string_view kMachineSilence = "period.machine-silence";

/// The pause between two tries of a notification when the run is over.
inline constexpr std::string_view kNotifyAgain = "period.notify-again";

/// How long notifications may take to be sent when the run is over.
inline constexpr std::string_view kNotifyEnd = "period.notify-end";

/// How long one of its tasks must have trained for a run to keep what it has learned.
inline constexpr std::string_view kTrainedLeast = "period.trained-least";

/// The periods whose defaults are with what they are periods of: see Configuration::period().
inline constexpr std::array kOtherPeriods{kAllocationIdle, kKeeperSilence, kMachineEnd,
                                          kMachineSilence, kNotifyAgain,   kNotifyEnd,
                                          kTrainedLeast};

#ifdef TRAINYARD_PERIODS
inline constexpr bool kTakesPeriods = true;
#else
inline constexpr bool kTakesPeriods = false;
#endif

/// Whether a period has this key. False in a program that was built for users.
constexpr bool is_period(std::string_view key) {
  return kTakesPeriods &&
         (std::ranges::find(kPolicyPeriods, key, &PolicyPeriod::key) != kPolicyPeriods.end() ||
          std::ranges::find(kOtherPeriods, key) != kOtherPeriods.end());
}

}  // namespace trainyard::settings
