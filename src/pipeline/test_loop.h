// A small context and small steps, for the tests of pipelines.
#pragma once

#include <string>

#include "trainyard/context.h"
#include "trainyard/step.h"

namespace trainyard::pipeline {

struct Loop : Context {
  int count = 0;
  int loss = 0;
  static constexpr auto kept = keep<&Loop::count>;
};

/// Writes "name " on the way forward and "name' " on the way back.
inline auto both(std::string& order, const std::string& name) {
  return [&order, name](Loop&) -> Step {
    order += name + " ";
    co_yield after;
    order += name + "' ";
  };
}

/// Writes "~name", and the step of its context, when its way back is gone or dropped.
inline auto guarded(std::string& order, const std::string& name) {
  return [&order, name](Loop& context) -> Step {
    struct Guard {
      std::string& order;
      std::string name;
      Loop& context;
      Guard(std::string& to, std::string whose, Loop& of)
          : order(to), name(std::move(whose)), context(of) {}
      Guard(const Guard&) = delete;
      Guard& operator=(const Guard&) = delete;
      ~Guard() { order += "~" + name + std::to_string(context.total_step) + " "; }
    } const guard(order, name, context);
    co_yield after;
  };
}

}  // namespace trainyard::pipeline
