// The components of a group as the user configured them, checked against the registry: all mistakes
// at once, each with its place and the nearest right word. Nothing is made here.
//
//   - id: trainer
//     type: trainer              # `path` and `name` are accepted too: pkg.Trainer, Trainer
//     args: {rate: 0.1, loss: {type: huber}, watcher: {ref: watcher}}
//   - {id: watcher, type: watcher, disabled: true}
//
// YAML or JSON. No state; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trainyard/component_registry.h"

namespace trainyard::ranks {

struct CheckedComponents {
  /// A JSON list of {"id", "type", "args"}: every argument is there, of its kind; what was disabled
  /// is not, or is null.
  std::string json;
  /// They are made by a Python program, and not by this one.
  bool in_python = false;
};

/// `file` stands for the text in mistakes. `executor` is the id of the component that executes. An
/// error has a mistake a line.
Result<CheckedComponents> check_components(std::string_view text, const std::string& file,
                                           std::string_view executor,
                                           const ComponentRegistry& registry);

}  // namespace trainyard::ranks
