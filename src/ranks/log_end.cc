#include "ranks/log_end.h"

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "io/files.h"

namespace trainyard {
namespace {

constexpr std::size_t kBytesMax = std::size_t{16} << 10;

}  // namespace

std::string end_of_log(const std::string& path, std::size_t lines_max) {
  const auto text = io::read_end_of_file(path, kBytesMax);
  if (!text) return {};
  std::size_t start = text->size();
  for (std::size_t lines = 0; start > 0; --start) {
    if ((*text)[start - 1] == '\n' && start != text->size() && ++lines == lines_max) break;
  }
  return text->substr(start);
}

std::string log_of_rank(const std::string& directory, int rank) {
  return fmt::format("{}/rank-{}.log", directory, rank);
}

}  // namespace trainyard
