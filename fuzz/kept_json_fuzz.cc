// Anything may stand in a checkpoint: it is read or refused, and what was read is saved as it was.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "trainyard/context.h"
#include "trainyard/context_json.h"

namespace {

struct Train : trainyard::Context {
  std::int64_t env_step = 0;
  double best = 0;
  std::vector<double> returns;
  std::map<std::string, int> counts;
  std::string name;
  static constexpr auto kept = trainyard::keep<&Train::env_step, &Train::best, &Train::returns,
                                               &Train::counts, &Train::name>;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto saved = trainyard::Json::parse(data, data + size, nullptr, false);
  if (saved.is_discarded()) return 0;
  Train context;
  if (!trainyard::kept_from_json(saved, context)) return 0;
  const auto again = trainyard::kept_to_json(context);
  trainyard::check(again.has_value(), "what was read can be saved");
  Train same;
  trainyard::check(trainyard::kept_from_json(*again, same).has_value(),
                   "what was saved can be read");
  trainyard::check(trainyard::kept_to_json(same).value() == *again, "and is the same");
  return 0;
}
