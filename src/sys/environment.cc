#include "sys/environment.h"

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace trainyard::sys {

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
  const std::string name = name_and_value.substr(0, equals);
  // NOLINTBEGIN(concurrency-mt-unsafe): one thread.
  if (equals + 1 == name_and_value.size()) {
    ::unsetenv(name.c_str());
  } else {
    ::setenv(name.c_str(), name_and_value.c_str() + equals + 1, /*overwrite=*/1);
  }
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace trainyard::sys
