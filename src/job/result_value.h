// The value of a key in the result of a task, which is a JSON object as text. Pure.
#pragma once

#include <optional>
#include <string>

namespace trainyard::job {

/// A value as text: a number or a text unchanged, anything else as JSON. Nothing if it is missing
/// or null.
std::optional<std::string> value_in_result(const std::string& result, const std::string& key);

/// The same as a number; nothing if it is not one.
std::optional<double> number_in_result(const std::string& result, const std::string& key);

}  // namespace trainyard::job
