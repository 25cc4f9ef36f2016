// Periods that only tests set, so that they need not wait for real seconds:
// `--set period.gpu-steady=200ms`. Programs built for users do not know these keys.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "base/time.h"
#include "model/plan.h"

namespace trainyard::settings {

struct Period {
  std::string_view key;
  Duration model::Policy::* member = nullptr;  ///< Null: it is no rule of the scheduler.
};

/// How long what runs on another machine may take to end when its lease is over.
inline constexpr Period kMachineEnd{.key = "period.machine-end"};

inline constexpr std::array kPeriods{
    Period{.key = "period.gpu-gone", .member = &model::Policy::gpu_gone_max},
    Period{.key = "period.gpu-linger", .member = &model::Policy::gpu_linger_max},
    Period{.key = "period.gpu-steady", .member = &model::Policy::gpu_steady_after},
    kMachineEnd,
    Period{.key = "period.passed-time", .member = &model::Policy::passed_time_max},
    Period{.key = "period.stop-grace", .member = &model::Policy::stop_grace},
};

#ifdef TRAINYARD_PERIODS
inline constexpr bool kTakesPeriods = true;
#else
inline constexpr bool kTakesPeriods = false;
#endif

/// The period of this key; null where there is none, or the program was built for users.
constexpr const Period* find_period(std::string_view key) {
  const auto* const found = std::ranges::find(kPeriods, key, &Period::key);
  return kTakesPeriods && found != kPeriods.end() ? found : nullptr;
}

}  // namespace trainyard::settings
