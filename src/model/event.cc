#include "model/event.h"

#include <array>
#include <string_view>
#include <utility>

namespace trainyard {

std::string_view to_text(Said said) {
  constexpr std::array<std::string_view, 7> kNames{"loading",       "loaded", "training", "trained",
                                                   "out_of_memory", "failed", "nonsense"};
  return kNames.at(std::to_underlying(said));
}

}  // namespace trainyard
