// The look of a report and what it does when it is clicked: one style sheet and one script, which
// every report carries in itself.
#pragma once

#include <string_view>

namespace trainyard::report {

extern const std::string_view kStyle;
extern const std::string_view kScript;

}  // namespace trainyard::report
