#include "sys/environment.h"

#include <cstddef>
#include <cstdlib>
#include <map>

#include <unistd.h>

#include "model/set_variables.h"

namespace trainyard::sys {
namespace {

using ValuesByName = std::map<std::string, std::string>;

ValuesByName by_name(const std::vector<std::string>& variables) {
  ValuesByName values;
  for (const std::string& entry : variables) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) values[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return values;
}

std::optional<std::string> value_in(const ValuesByName& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

void give_value(const std::string& name, const std::optional<std::string>& value) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread reads it now.
  if (value) {
    ::setenv(name.c_str(), value->c_str(), /*overwrite=*/1);
  } else {
    ::unsetenv(name.c_str());
  }
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (const char* const* entry = environ; *entry != nullptr; ++entry)
    variables.emplace_back(*entry);
  return variables;
}

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): none changes it.
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

void set_variable(const std::string& name_and_value) {
  const std::size_t equals = name_and_value.find('=');
  const std::string value = name_and_value.substr(equals + 1);
  give_value(name_and_value.substr(0, equals), value.empty() ? std::nullopt : std::optional(value));
}

bool is_in_task() { return variable(model::kSetVariables).has_value(); }

OwnEnvironment::OwnEnvironment() {
  const ValuesByName now = by_name(environment());
  const ValuesByName own = by_name(model::without_set_variables(environment()));
  ValuesByName all = now;
  all.insert(own.begin(), own.end());
  for (const auto& [name, ignored] : all) {
    const std::optional<std::string> value = value_in(own, name);
    std::optional<std::string> of_task = value_in(now, name);
    if (value == of_task) continue;
    give_value(name, value);
    of_task_.emplace_back(name, std::move(of_task));
  }
}

OwnEnvironment::~OwnEnvironment() {
  for (const auto& [name, value] : of_task_) give_value(name, value);
}

}  // namespace trainyard::sys
