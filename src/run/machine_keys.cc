#include "run/machine_keys.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "base/bytes.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

constexpr Bytes kKeysMax = mib(16);

std::string keys_path(const std::string& run_directory) { return run_directory + "/machines.keys"; }

}  // namespace

bool is_machine_key(const std::string& key) {
  return !key.empty() && key.size() <= kMachineKeyMax &&
         std::ranges::all_of(key, [](unsigned char byte) { return std::isalnum(byte) != 0; });
}

std::string mark_of_agent(const std::string& key) { return "TRAINYARD_AGENT=" + key; }

MachineKeys read_machine_keys(const std::string& run_directory) {
  MachineKeys keys;
  const Result<std::optional<std::string>> read =
      sys::read_plain_file(keys_path(run_directory), kKeysMax, sys::Links::Refuse);
  std::istringstream lines(read ? read->value_or("") : std::string());
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.find(' ');
    const std::string key = line.substr(0, end);
    if (end == std::string::npos || !is_machine_key(key)) return {};
    keys.insert_or_assign(line.substr(end + 1), key);
  }
  return keys;
}

Result<void> write_machine_keys(const std::string& run_directory, const MachineKeys& keys) {
  std::string text;
  for (const auto& [name, key] : keys) text += fmt::format("{} {}\n", key, name);
  return sys::write_file_atomically(keys_path(run_directory), text);
}

void remove_machine_keys(const std::string& run_directory) {
  std::error_code ignored;
  std::filesystem::remove(keys_path(run_directory), ignored);
}

}  // namespace trainyard::run
