#include "job/workers_text.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <utility>

#include <fmt/format.h>

#include "model/terms.h"
#include "settings/setting_value.h"
#include "wire/worker.h"

namespace trainyard::job {
namespace {

Result<int> parse_number(std::string_view text) {
  const Result<int> number = settings::parse_count(text);
  if (number && *number >= 1 && *number <= model::kWorkersMax) return *number;
  return std::unexpected(
      Error{fmt::format("'{}' is not a whole number from 1 to {}", text, model::kWorkersMax)});
}

/// Adds the workers of one role, "collector=2".
Result<void> add_role(std::string_view part, Workers& workers) {
  const std::size_t equals = part.find('=');
  const std::string_view role = part.substr(0, equals);
  if (equals == std::string_view::npos) {
    return std::unexpected(
        Error{fmt::format("'{}' has no number; write it as in 'collector=2'", part)});
  }
  if (auto wrong = wire::wrong_worker_name(role)) return std::unexpected(Error{*std::move(wrong)});
  const Result<int> number = parse_number(part.substr(equals + 1));
  if (!number) return std::unexpected(Error(number.error()).in(fmt::format("'{}'", role)));
  if (std::ranges::find(workers.roles, role) != workers.roles.end()) {
    return std::unexpected(Error{fmt::format("duplicate role '{}'", role)});
  }
  workers.count += *number;
  if (workers.count > model::kWorkersMax) {
    return std::unexpected(
        Error{fmt::format("at most {} are allowed in total", model::kWorkersMax)});
  }
  workers.roles.insert(workers.roles.end(), static_cast<std::size_t>(*number), std::string(role));
  return {};
}

}  // namespace

Result<Workers> parse_workers(std::string_view text) {
  Workers workers;
  if (text.find_first_of("=,") == std::string_view::npos) {
    const Result<int> number = parse_number(text);
    if (!number) return std::unexpected(number.error());
    workers.count = *number;
    return workers;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (Result<void> added = add_role(text.substr(begin, end - begin), workers); !added) {
      return std::unexpected(std::move(added.error()));
    }
    begin = end + 1;
  }
  return workers;
}

std::string to_text(const Workers& workers) {
  if (workers.roles.empty()) return fmt::to_string(workers.count);
  std::string text;
  for (auto role = workers.roles.begin(); role != workers.roles.end();) {
    // The workers of one role are next to each other.
    const auto next = std::find_if(role, workers.roles.end(),
                                   [&role](const std::string& it) { return it != *role; });
    text += fmt::format("{}{} of role {}", text.empty() ? "" : ", ", next - role, *role);
    role = next;
  }
  return text;
}

}  // namespace trainyard::job
