// Relations between paths by their names alone. Reads no file. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard {

/// Whether a path is this directory's or one below it, both absolute, by their names alone.
constexpr bool lies_in(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || path[directory.size()] == '/';
}

/// Whether a part of a path is "..".
constexpr bool goes_up(std::string_view path) {
  while (true) {
    const std::size_t end = path.find('/');
    if (path.substr(0, end) == "..") return true;
    if (end == std::string_view::npos) return false;
    path.remove_prefix(end + 1);
  }
}

/// `path` seen from an absolute directory, without `.`, `..` and a slash at the end.
std::string absolute_path(std::string_view path, std::string_view directory);

}  // namespace trainyard
