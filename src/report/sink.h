// The output for text for people, piece by piece: a terminal, a file, a string in a test.
#pragma once

#include <functional>
#include <string_view>

namespace trainyard::report {

using Sink = std::move_only_function<void(std::string_view)>;

}  // namespace trainyard::report
