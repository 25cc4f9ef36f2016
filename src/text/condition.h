// A comparison as people write it: "lr<1e-3", "server.result.acc >= 0.97". Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::text {

/// What something is compared with: "lr<1e-3", "status=FINISHED", "model!=resnet18".
struct Condition {
  enum class Is : std::uint8_t { Equal, Unequal, Less, LessOrEqual, Greater, GreaterOrEqual };
  std::string name;
  Is is = Is::Equal;
  std::string value;

  friend bool operator==(const Condition&, const Condition&) = default;
};

/// An error for what has no comparison in it, or compares the size of what is no number.
Result<Condition> parse_condition(std::string_view text);

/// The number that a condition compares with: 0.86 for "0.86", "86%" and "86 %". Nothing for what
/// is no number.
std::optional<double> number_of(std::string_view value);

/// Whether a number is to another as the condition says.
bool holds(Condition::Is is, double number, double other);

}  // namespace trainyard::text
