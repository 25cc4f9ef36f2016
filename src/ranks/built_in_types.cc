#include "ranks/built_in_types.h"

#include <memory>
#include <string>

#include "ranks/command_executor.h"
#include "trainyard/component.h"

namespace trainyard::ranks {

ComponentRegistry::Type command_type() {
  return {.name = "command",
          .arguments = {argument("commands", ArgumentKind::Object)},
          .executes = true,
          .make = [](const Arguments& given) -> std::shared_ptr<Component> {
            return std::make_shared<CommandExecutor>(given);
          }};
}

ComponentRegistry::Type python_type() {
  return {
      .name = kPythonType,
      .arguments = {argument<std::string>("script"), argument<std::string>("entry"),
                    optional_argument("args", ArgumentKind::Object), argument("python", "python3")},
      .executes = true,
      .make = {}};
}

}  // namespace trainyard::ranks
