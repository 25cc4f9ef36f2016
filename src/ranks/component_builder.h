// Makes the components of a rank of their checked configuration. User code runs here, and may
// throw; that goes through.
//
// One thread, which must be the one that executes.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/component.h"
#include "trainyard/component_registry.h"

namespace trainyard::ranks {

struct BuiltComponents {
  struct One {
    std::string id;
    std::shared_ptr<Component> component;
  };
  std::vector<One> all;  ///< In the order of the configuration; those within others behind them.
  Executor* executor = nullptr;

  /// All events to which the components listen, each name once.
  [[nodiscard]] std::vector<std::string> listens_to() const;
};

/// `json` as check_components() gives it. Throws what a constructor throws, and
/// std::invalid_argument when the registry is another one than it was checked with.
BuiltComponents build_components(std::string_view json, std::string_view executor,
                                 const ComponentRegistry& registry,
                                 const std::stop_token& stop = {});

}  // namespace trainyard::ranks
