// What stands in the result of a task, which is a JSON object as text, by its key. Pure.
#pragma once

#include <optional>
#include <string>

namespace trainyard::job {

/// A value as text: a number or a text as it is, anything else as JSON. Nothing where it is not
/// there, or null.
std::optional<std::string> value_in_result(const std::string& result, const std::string& key);

/// The same as a number; nothing where it is none.
std::optional<double> number_in_result(const std::string& result, const std::string& key);

}  // namespace trainyard::job
