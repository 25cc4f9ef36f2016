#include "run/granted_nodes.h"

#include <algorithm>
#include <expected>
#include <ranges>

#include <fmt/format.h>

#include "base/duration_text.h"

namespace trainyard::run {
namespace {

constexpr std::size_t kNumberMax = 20;
constexpr std::size_t kNameMax = 255;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

bool is_allocation(std::string_view word) {
  return !word.empty() && word.size() <= kNumberMax && std::ranges::all_of(word, is_digit);
}

/// True for a valid name of a node. The name becomes a word of a command.
bool is_node(std::string_view word) {
  const auto may_be_there = [](char byte) {
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '-' || byte == '_' || byte == '.';
  };
  return !word.empty() && word.size() <= kNameMax && !word.starts_with('-') &&
         std::ranges::all_of(word, may_be_there);
}

}  // namespace

Result<GrantedNodes> granted_nodes(std::string_view line) {
  std::vector<std::string_view> words;
  for (const auto word : std::views::split(line, ' ')) {
    if (!word.empty()) words.emplace_back(word.begin(), word.end());
  }
  constexpr std::size_t kLeast = 3;
  const bool is_one = words.size() >= kLeast && words.size() - 2 <= kNodesMax &&
                      is_allocation(words[0]) &&
                      std::all_of(words.begin() + 2, words.end(), is_node);
  if (!is_one) {
    return std::unexpected(Error{fmt::format("'{}' names no nodes", line.substr(0, kNameMax))});
  }
  GrantedNodes granted{.allocation = std::string(words[0]), .left = {}, .nodes = {}};
  if (const Result<Duration> left = parse_slurm_time(words[1])) granted.left = *left;
  granted.nodes.assign(words.begin() + 2, words.end());
  std::ranges::sort(granted.nodes);
  const auto twice = std::ranges::unique(granted.nodes);
  granted.nodes.erase(twice.begin(), twice.end());
  return granted;
}

}  // namespace trainyard::run
