#include "report/places.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "journal/reader.h"

namespace trainyard::report {

Grouping grouping_of(const std::string& run_directory, const TaskRow& row) {
  const auto is_there = [&](Grouping grouping) {
    std::error_code ignored;
    const std::filesystem::path root(run_directory);
    return std::filesystem::is_directory(root / task_directory_of(row, grouping), ignored);
  };
  return !is_there(Grouping::ByGroup) && is_there(Grouping::Flat) ? Grouping::Flat
                                                                  : Grouping::ByGroup;
}

std::string task_directory_of(const TaskRow& row, Grouping grouping) {
  return grouping == Grouping::Flat ? row.id : row.group_name + "/" + row.id;
}

std::string log_name(std::string_view stream, std::uint32_t attempt) {
  return attempt > 1 ? fmt::format("{}.{}.log", stream, attempt) : fmt::format("{}.log", stream);
}

std::string report_name(std::string_view group) {
  std::string name(group);
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20; }, '_');
  // The page of the run is called index.
  if (name.empty() || name.front() == '.' || name == "index") name.insert(0, 1, '_');
  return name;
}

}  // namespace trainyard::report
