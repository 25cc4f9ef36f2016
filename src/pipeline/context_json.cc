#include "trainyard/context_json.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/nearest.h"
#include "wire/field_reader.h"

namespace trainyard::detail {
namespace {

constexpr std::size_t kShownMax = 60;
constexpr int kDepthMax = 64;

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

}  // namespace

Json number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::optional<double> number_from_json(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

Result<void> check_numbers(const Json& value, std::string_view member) {
  if (wire::nests_within(value, kDepthMax) && wire::has_only_numbers_of_json(value)) return {};
  return std::unexpected(Error{fmt::format(
      "kept member '{}': holds a number that is infinite or none, which JSON cannot say", member)});
}

Result<const Json*> kept_object(const Json& saved, std::span<const std::string_view> names) {
  const auto error = [](std::string text) { return std::unexpected(Error{std::move(text)}); };
  if (!saved.is_object()) return error(fmt::format("expected an object, got {}", shown(saved)));
  const auto kept = saved.find("kept");
  if (kept == saved.end() || !kept->is_object()) return error("there is no object 'kept'");
  for (const std::string_view name : names) {
    if (!kept->contains(name)) return error(fmt::format("kept member '{}' is missing", name));
  }
  for (const auto& [name, value] : kept->items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const auto meant = nearest(name, names);
    return error(fmt::format("there is no kept member '{}'{}", name,
                             meant ? fmt::format(" (did you mean '{}'?)", *meant) : ""));
  }
  return &*kept;
}

Result<std::uint64_t> total_step_of(const Json& saved) {
  const auto step = saved.find("total_step");
  if (step == saved.end() || !step->is_number_unsigned()) {
    return std::unexpected(Error{"'total_step' must be a count, 0 or more"});
  }
  return step->get<std::uint64_t>();
}

std::string misfit_text(const Json& value, std::string_view why) {
  return fmt::format("{} does not fit: {}", shown(value), why);
}

std::string unlike_text(std::string_view member, const Json& value, std::string_view why) {
  return fmt::format("kept member '{}': {}", member, misfit_text(value, why));
}

}  // namespace trainyard::detail
