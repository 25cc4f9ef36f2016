#include "trainyard/detail/codec.h"

#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "wire/field_reader.h"
#include "wire/json_text.h"
#include "wire/rank.h"

namespace trainyard::detail {

void nlohmann_json_is_that_of_the_archives(const Json* /*json*/) {}

std::string json_text_of(const nlohmann::json& value) {
  if (!wire::nests_within(value, wire::kValueLevelsMax)) {
    throw std::invalid_argument(fmt::format("it is nested deeper than {}", wire::kValueLevelsMax));
  }
  if (!wire::has_only_numbers_of_json(value)) {
    throw std::invalid_argument(
        "it holds NaN or an infinity, which JSON cannot carry: a Buffer can");
  }
  return value.dump();
}

nlohmann::json json_of(const RemotePayload& payload) {
  if (payload.json.empty()) return {};
  const auto compact = wire::compact_json(payload.json);
  if (!compact) throw std::runtime_error("what came is no JSON: " + to_text(compact.error()));
  if (!compact->mended.empty())
    throw std::runtime_error("what came is no JSON: " + compact->mended);
  return nlohmann::json::parse(compact->text);
}

void throw_misfit(const nlohmann::json& payload, std::string_view why) {
  throw std::runtime_error(fmt::format("JSON of type {} came, which does not fit the listener: {}",
                                       payload.type_name(), why));
}

const Buffer& the_buffer_of(const RemotePayload& payload) {
  if (payload.buffers.size() != 1) {
    throw std::runtime_error(fmt::format("{} buffers came, not one", payload.buffers.size()));
  }
  return payload.buffers.front();
}

}  // namespace trainyard::detail
