#include "report/ranks_text.h"

#include <fmt/format.h>

#include "report/terminal_text.h"

namespace trainyard::report {

std::string ranks_text(const model::Shape& shape) {
  const int ranks = shape.terms.ranks;
  const int gpus = shape.terms.request.gpus;
  if (gpus == 0) return fmt::format("{} processes", ranks);
  if (gpus < ranks) return fmt::format("{} processes that share the GPUs", ranks);
  const auto each = counted(gpus / ranks, "GPU");
  return fmt::format("{} processes with {} each", ranks, each);
}

}  // namespace trainyard::report
