// Any bytes as the components of a group: checked, and what was accepted is made, as a rank makes
// it.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "ranks/component_builder.h"
#include "ranks/component_config.h"
#include "trainyard/component.h"
#include "trainyard/component_registry.h"
#include "trainyard/rank_context.h"
#include "trainyard/shareable.h"

namespace {

using trainyard::Arguments;
using trainyard::Component;

/// Has an argument of each kind, and looks at all of them.
class Any final : public trainyard::Executor {
 public:
  explicit Any(const Arguments& given)
      : part(given.component<Component>("part")),
        parts(given.components<Component>("parts")),
        map(given.component_map<Component>("map")) {
    static_cast<void>(given.get<bool>("flag"));
    static_cast<void>(given.get<std::int64_t>("whole"));
    static_cast<void>(given.get<double>("real"));
    static_cast<void>(given.get<std::string>("text"));
    static_cast<void>(given.get<trainyard::Json>("list"));
    static_cast<void>(given.get<trainyard::Json>("object"));
    static_cast<void>(given.get<trainyard::Json>("any"));
  }
  trainyard::Shareable execute(std::string_view, const trainyard::Shareable&,
                               trainyard::RankContext&, std::stop_token) override {
    return {};
  }

  std::shared_ptr<Component> part;
  std::vector<std::shared_ptr<Component>> parts;
  std::map<std::string, std::shared_ptr<Component>> map;
};

trainyard::ComponentRegistry make_registry() {
  using trainyard::argument;
  using trainyard::ArgumentKind;
  using trainyard::optional_argument;
  trainyard::ComponentRegistry made;
  made.add<Any>("any", {argument("flag", false), argument("whole", 1), argument("real", 0.5),
                        argument("text", ""), optional_argument("list", ArgumentKind::List),
                        optional_argument("object", ArgumentKind::Object),
                        optional_argument("any", ArgumentKind::Any), trainyard::component("part"),
                        trainyard::components("parts"),
                        optional_argument("map", ArgumentKind::ComponentMap)});
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const trainyard::ComponentRegistry registry = make_registry();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto checked = trainyard::ranks::check_components(text, "parts.yaml", "it", registry);
  if (!checked) {
    trainyard::check(!checked.error().message.empty(), "refused components with a reason");
    return 0;
  }
  if (checked->in_python || checked->json.contains(R"("type":"command")")) return 0;
  const auto built = trainyard::ranks::build_components(checked->json, "it", registry);
  trainyard::check(built.executor != nullptr, "accepted components with an executor");
  return 0;
}
