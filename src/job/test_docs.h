// The text of the documentation, for tests that compare the program with it.
#pragma once

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace trainyard::job {

/// A file of docs/.
inline std::string text_of(std::string_view name) {
  const std::ifstream file(fmt::format("{}/{}", TRAINYARD_DOCS, name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

using Names = std::set<std::string>;

/// The keys of an object of JSON.
template <class Json>
Names names_in(const Json& properties) {
  Names names;
  for (const auto& [name, value] : properties.items()) names.insert(name);
  return names;
}

}  // namespace trainyard::job
