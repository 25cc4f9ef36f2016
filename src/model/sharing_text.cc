#include "model/sharing_text.h"

#include <fmt/format.h>

namespace trainyard::model {

std::string sharing_text(const SharingMeasured& measured) {
  std::string text;
  if (measured.to_a_gpu > 1) {
    text = fmt::format("{} tasks per GPU do {:.1f} times the work of 1 (measured on {} task{})",
                       measured.to_a_gpu, measured.factor, measured.tasks,
                       measured.tasks == 1 ? "" : "s");
  }
  if (measured.to_a_gpu_max > 0) {
    text += fmt::format("{}at most {} per GPU, as more gain nothing", text.empty() ? "" : "; ",
                        measured.to_a_gpu_max);
  }
  return text;
}

}  // namespace trainyard::model
