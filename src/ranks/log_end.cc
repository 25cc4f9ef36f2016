#include "ranks/log_end.h"

#include <fmt/format.h>

#include "sys/files.h"
#include "sys/tail.h"

namespace trainyard::ranks {
namespace {

constexpr std::size_t kBytesMax = std::size_t{16} << 10;

}  // namespace

std::string end_of_log(const std::string& path, std::size_t lines_max) {
  const auto text = sys::read_end_of_file(path, kBytesMax, sys::Links::Refuse);
  return text ? std::string(sys::last_lines(*text, lines_max)) : std::string();
}

std::string log_of_rank(const std::string& directory, int rank, std::uint32_t attempt) {
  if (attempt > 1) return fmt::format("{}/rank-{}.{}.log", directory, rank, attempt);
  return fmt::format("{}/rank-{}.log", directory, rank);
}

}  // namespace trainyard::ranks
