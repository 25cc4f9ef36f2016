#include "job/run_if.h"

#include <array>
#include <expected>
#include <optional>

#include <fmt/format.h>

#include "base/nearest.h"

namespace trainyard::job {

Result<model::RunIf> parse_run_if(std::string_view text) {
  constexpr std::array kAll{model::RunIf::Success, model::RunIf::Failure, model::RunIf::Always};
  std::string_view word = text;
  if (word.ends_with("()")) word.remove_suffix(2);
  for (const model::RunIf condition : kAll) {
    std::string_view name = model::to_text(condition);
    name.remove_suffix(2);
    if (word == name) return condition;
  }
  constexpr std::array<std::string_view, 3> kNames{"success", "failure", "always"};
  const std::optional<std::string_view> near = nearest(word, kNames);
  if (near) {
    return std::unexpected(Error{fmt::format(
        "must be success, failure or always, not '{}' (did you mean '{}'?)", text, *near)});
  }
  return std::unexpected(Error{fmt::format("must be success, failure or always, not '{}'", text)});
}

}  // namespace trainyard::job
