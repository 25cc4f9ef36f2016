#include "config/file_name.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "config/text_file.h"

namespace trainyard {

std::optional<std::string> why_unsafe(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name == "." || name == "..") return "is not a name of its own";
  if (name.size() > kFileNameMax) {
    return fmt::format("has {} bytes, at most {} are possible", name.size(), kFileNameMax);
  }
  for (const char byte : name) {
    if (byte == '/') return "has a '/'";
    const auto value = static_cast<std::uint8_t>(byte);
    if (value < 0x20 || value == 0x7F) return "has a control character";
  }
  if (find_bad_byte(name)) return "is not UTF-8 text";
  if (name.front() == '-') return "starts with '-', which commands take for an option";
  if (name.front() == ' ' || name.back() == ' ') return "starts or ends with a space";
  return std::nullopt;
}

std::string absolute_path(const std::string& directory, const std::string& path) {
  std::string result = (std::filesystem::path(directory) / path).lexically_normal().string();
  while (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

bool taken_in_run_directory(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames{"reports", "lock", "socket"};
  for (const std::string_view taken : kNames) {
    if (name == taken) return true;
  }
  return name.starts_with("journal") || name.starts_with(".trainyard") ||
         name.starts_with("trainyard.");
}

}  // namespace trainyard
