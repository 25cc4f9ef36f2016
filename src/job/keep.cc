#include "job/keep.h"

#include <array>
#include <expected>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "settings/setting_value.h"

namespace trainyard::job {
namespace {

constexpr std::array<std::string_view, 2> kKeysOfKeep{"best", "by"};

std::string_view largest_or_smallest(Better better) {
  return better == Better::More ? "the largest" : "the smallest";
}

Result<int> parse_best(std::string_view text) {
  const Result<int> number = settings::parse_count(text);
  if (number && *number >= 1 && *number <= Keep::kBestMost) return *number;
  return std::unexpected(
      Error{fmt::format("'{}' is not a whole number from 1 to {}", text, Keep::kBestMost)});
}

struct Order {
  std::string key;
  Better better = Better::More;
};

/// "acc", "-reward", "+steps": the sign is that of `results --sort`, where '-' has the largest
/// first. Since files are deleted, nothing is guessed: a name without a sign must be an obvious
/// score.
Result<Order> parse_order(std::string_view text) {
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const std::string_view key = is_signed ? text.substr(1) : text;
  if (key.empty()) {
    return std::unexpected(
        Error{"must be a key of the results: 'acc', '-reward' (the largest is best) or '+seconds' "
              "(the smallest is best)"});
  }
  const std::optional<Better> known = score_direction(key);
  if (!is_signed && !known) {
    return std::unexpected(
        Error{fmt::format("must say whether a larger '{0}' is better: write '-{0}' if the largest "
                          "is best, as in 'results --sort -{0}', or '+{0}' if the smallest is",
                          key)});
  }
  const Better said = text.starts_with('+') ? Better::Less : Better::More;
  if (is_signed && known && *known != said) {
    return std::unexpected(
        Error{fmt::format("'{0}' would keep {1}, and of '{2}' {3} are the best: write '{2}'", text,
                          largest_or_smallest(said), key, largest_or_smallest(*known))});
  }
  return Order{.key = std::string(key), .better = known.value_or(said)};
}

template <class Parse>
auto read_part(const text::Complainer& to, const text::YamlNode& node, std::string_view key,
               Parse parse) {
  std::optional<typename decltype(parse(std::string_view()))::value_type> read;
  const auto text = text::read_single(to, node, fmt::format("keep: {}", key));
  if (!text) return read;
  auto value = parse(*text);
  if (value) {
    read = std::move(*value);
  } else {
    to.complain(node, fmt::format("keep: {}: {}", key, value.error().message));
  }
  return read;
}

}  // namespace

std::optional<Keep> read_keep(const text::Complainer& to, const text::YamlNode& node) {
  const auto complain = [&to, &node](std::string_view what) {
    to.complain(node, fmt::format("'keep' {}, as in {{best: 3, by: acc}}", what));
  };
  if (node.kind != text::YamlKind::Mapping) {
    complain("must be the number of tasks to keep and the key to compare");
    return std::nullopt;
  }
  text::check_keys(to.within("keep"), node, kKeysOfKeep, {});
  const text::YamlNode* const best = node.find("best");
  const text::YamlNode* const by = node.find("by");
  if (best == nullptr) complain("has no 'best', the number of tasks to keep");
  if (by == nullptr) complain("has no 'by', the key to compare");
  const std::optional<int> count =
      best == nullptr ? std::nullopt : read_part(to, *best, "best", parse_best);
  std::optional<Order> order = by == nullptr ? std::nullopt : read_part(to, *by, "by", parse_order);
  if (!count || !order) return std::nullopt;
  return Keep{.best = *count, .key = std::move(order->key), .better = order->better};
}

std::string to_text(const Keep& keep) {
  return fmt::format("the best {} by {} ({})", keep.best, keep.key,
                     largest_or_smallest(keep.better));
}

}  // namespace trainyard::job
