#include "base/path_name.h"

#include <algorithm>
#include <vector>

namespace trainyard {

std::string absolute_path(std::string_view path, std::string_view directory) {
  std::vector<std::string_view> parts;
  for (std::string_view rest : {path.starts_with('/') ? std::string_view("/") : directory, path}) {
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find('/'));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      if (part == ".." && !parts.empty()) parts.pop_back();
      if (part != ".." && part != "." && !part.empty()) parts.push_back(part);
    }
  }
  std::string result;
  for (const std::string_view part : parts) result.append("/").append(part);
  return result.empty() ? "/" : result;
}

}  // namespace trainyard
