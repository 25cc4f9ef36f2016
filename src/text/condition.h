// A comparison as people write it: "lr<1e-3", "server.result.acc >= 0.97". Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trainyard::text {

/// A comparison with a value: "lr<1e-3", "status=FINISHED", "model!=resnet18".
struct Condition {
  enum class Is : std::uint8_t { Equal, Unequal, Less, LessOrEqual, Greater, GreaterOrEqual };
  std::string name;
  Is is = Is::Equal;
  std::string value;

  friend bool operator==(const Condition&, const Condition&) = default;
};

/// An error for a text without a comparison, or one that compares the size of a value that is not a
/// number.
Result<Condition> parse_condition(std::string_view text);

/// The number that a condition compares with: 0.86 for "0.86", "86%" and "86 %". Nothing if it is
/// not a number.
std::optional<double> number_of(std::string_view value);

/// Whether two numbers compare as the condition says.
bool holds(Condition::Is is, double number, double other);

}  // namespace trainyard::text
