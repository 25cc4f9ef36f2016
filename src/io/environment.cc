#include "io/environment.h"

#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace trainyard::io {

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (const char* const* entry = environ; *entry != nullptr; ++entry)
    variables.emplace_back(*entry);
  return variables;
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (const char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace trainyard::io
