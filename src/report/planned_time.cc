#include "report/planned_time.h"

#include <fmt/format.h>

#include "base/duration_text.h"

namespace trainyard::report {

std::string range_text(Duration free, Duration worst) {
  if (worst <= free) return to_text(free);
  return fmt::format("{}, or {} if tasks that share a GPU slow each other down", to_text(free),
                     to_text(worst));
}

std::string planned_time_text(const journal::ExecutionRow& execution) {
  if (execution.forecast == Duration{0}) return {};
  std::string text = range_text(execution.forecast, execution.forecast_at_the_worst);
  text.insert(to_text(execution.forecast).size(), " in total");
  // An interrupted run has not done all that was expected.
  if (!execution.ended || execution.is_interrupted()) return text;
  return fmt::format("{}; took {}", text, to_text(*execution.ended - execution.started));
}

}  // namespace trainyard::report
