// The text of python/trainyard.py, which travels within the program.
#pragma once

#include <string_view>

namespace trainyard {

extern const std::string_view kPythonClientSource;

}  // namespace trainyard
