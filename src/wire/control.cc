#include "wire/control.h"

#include <array>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "base/result.h"
#include "wire/fields.h"
#include "wire/utf8.h"

namespace trainyard::wire {
namespace {

constexpr std::array<Outcome, 4> kOutcomes{Outcome::Done, Outcome::NotRunning, Outcome::NoSuchTask,
                                           Outcome::Error};
constexpr std::size_t kTextBytesMax = 1000;
constexpr std::size_t kShownBytesMax = 64;

Result<ControlRequest> kill_of(const nlohmann::json& fields) {
  auto group = text_field(fields, "group");
  if (!group) return std::unexpected(std::move(group.error()));
  auto id = text_field(fields, "id");
  if (!id) return std::unexpected(std::move(id.error()));
  return Kill{.group = std::move(*group), .id = std::move(*id)};
}

Result<ControlRequest> request_of(std::string_view text) {
  const auto fields = parse_fields(text);
  if (!fields) return std::unexpected(fields.error());
  const auto what = text_field(*fields, "do");
  if (!what) return std::unexpected(what.error());
  if (*what == "ping") return Ping{};
  if (*what == "kill") return kill_of(*fields);
  return std::unexpected(Error{fmt::format("'do': unknown request '{}'; there are ping and kill",
                                           utf8_prefix(*what, kShownBytesMax))});
}

Result<ControlReply> reply_of(std::string_view whole) {
  const auto fields = parse_fields(whole);
  if (!fields) return std::unexpected(fields.error());
  const auto outcome = text_field(*fields, "outcome");
  if (!outcome) return std::unexpected(outcome.error());
  auto text = fields->contains("text") ? text_field(*fields, "text") : std::string();
  if (!text) return std::unexpected(std::move(text.error()));
  for (const Outcome known : kOutcomes) {
    if (to_text(known) == *outcome) return ControlReply{.outcome = known, .text = std::move(*text)};
  }
  return std::unexpected(
      Error{fmt::format("'outcome': unknown outcome '{}'", utf8_prefix(*outcome, kShownBytesMax))});
}

}  // namespace

std::string_view to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::Done:
      return "done";
    case Outcome::NotRunning:
      return "not-running";
    case Outcome::NoSuchTask:
      return "no-such-task";
    case Outcome::Error:
      return "error";
  }
  return "unknown";
}

std::string to_fields(const ControlRequest& request) {
  return match(
      request, [](const Ping&) { return fields_text({{"do", "ping"}}); },
      [](const Kill& kill) {
        return fields_text({{"do", "kill"}, {"group", kill.group}, {"id", kill.id}});
      });
}

std::string to_fields(const ControlReply& reply) {
  return fields_text(
      {{"outcome", to_text(reply.outcome)}, {"text", utf8_prefix(reply.text, kTextBytesMax)}});
}

Result<ControlRequest> read_request(std::string_view fields) {
  auto request = request_of(fields);
  if (!request) return std::unexpected(std::move(request.error()).in("request"));
  return request;
}

Result<ControlReply> read_reply(std::string_view fields) {
  auto reply = reply_of(fields);
  if (!reply) return std::unexpected(std::move(reply.error()).in("reply"));
  return reply;
}

std::string failure_fields(std::string_view why) {
  return fields_text({{"error", utf8_prefix(why, kTextBytesMax)}});
}

std::string read_failure(std::string_view fields) {
  const auto object = parse_fields(fields);
  const auto why = object ? text_field(*object, "error") : std::unexpected(object.error());
  return why ? *why : "no reason was given";
}

}  // namespace trainyard::wire
