// The better direction of a number in a result: more of it, or less. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard {

enum class Better : std::uint8_t { More, Less };

/// By the name of the number, also after "eval_", "test_", "val_" or "valid_": of "acc" more is
/// better, of "loss" less. Nothing for a name that is no obvious score.
std::optional<Better> score_direction(std::string_view key);

}  // namespace trainyard
