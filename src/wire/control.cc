#include "wire/control.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "base/utf8.h"
#include "model/priority.h"
#include "wire/field_reader.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

TRAINYARD_WORDS(Outcome, (Done, "done"), (NotRunning, "not-running"), (NoSuchTask, "no-such-task"),
                (Error, "error"));

namespace {

constexpr std::size_t kTextBytesMax = 1000;
/// All the mistakes of a job file that is submitted.
constexpr std::size_t kReplyBytesMax = 16'000;

/// A request about one task, with the names of this.
template <class Request>
Result<Request> named(const nlohmann::json& fields) {
  Request request;
  for (const auto& [name, member] :
       {std::pair{"group", &Request::group}, std::pair{"id", &Request::id}}) {
    auto text = text_field(fields, name);
    if (!text) return std::unexpected(std::move(text.error()));
    request.*member = std::move(*text);
  }
  return request;
}

/// 0 where there is none.
Result<std::int64_t> amount_of(const nlohmann::json& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return 0;
  const bool fits = found->is_number_unsigned() &&
                    found->get<std::uint64_t>() <=
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!fits) {
    return std::unexpected(
        Error{fmt::format("'{}' must be a whole number from 0 to 2^63 - 1", name)});
  }
  return found->get<std::int64_t>();
}

Result<ControlRequest> retry_of(const nlohmann::json& fields) {
  Result<Retry> retry = named<Retry>(fields);
  if (!retry) return std::unexpected(std::move(retry.error()));
  for (const auto& [name, member] : {std::pair{"memory_bytes", &Retry::memory_bytes},
                                     std::pair{"gpu_memory_bytes", &Retry::gpu_memory_bytes},
                                     std::pair{"time_limit_ms", &Retry::time_limit_ms}}) {
    const Result<std::int64_t> amount = amount_of(fields, name);
    if (!amount) return std::unexpected(amount.error());
    *retry.*member = *amount;
  }
  return *std::move(retry);
}

Result<ControlRequest> hold_of(const nlohmann::json& fields, bool hold) {
  Result<Hold> request = named<Hold>(fields);
  if (!request) return std::unexpected(std::move(request.error()));
  request->hold = hold;
  return *std::move(request);
}

bool says_priority(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    return std::cmp_less_equal(value.get<std::uint64_t>(), model::kPriorityMost);
  }
  return value.is_number_integer() && model::is_priority(value.get<std::int64_t>());
}

Result<ControlRequest> priority_of(const nlohmann::json& fields) {
  Result<SetPriority> request = named<SetPriority>(fields);
  if (!request) return std::unexpected(std::move(request.error()));
  const auto found = fields.find("priority");
  if (found == fields.end() || !says_priority(*found)) {
    return std::unexpected(Error{
        fmt::format("'priority' must be a whole number from -{0} to {0}", model::kPriorityMost)});
  }
  request->priority = found->get<std::int32_t>();
  return *std::move(request);
}

Result<std::vector<std::string>> texts_of(const nlohmann::json& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end() || !found->is_array()) {
    return std::unexpected(Error{fmt::format("'{}': is no list", name)});
  }
  std::vector<std::string> texts;
  for (const nlohmann::json& item : *found) {
    if (!item.is_string()) return std::unexpected(Error{fmt::format("'{}': has no texts", name)});
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

/// The entries, each of which ends with a NUL.
std::vector<std::string> split_entries(std::string_view buffer) {
  std::vector<std::string> entries;
  for (std::size_t end = buffer.find('\0'); end != std::string_view::npos;
       end = buffer.find('\0')) {
    entries.emplace_back(buffer.substr(0, end));
    buffer.remove_prefix(end + 1);
  }
  return entries;
}

std::string joined_entries(const std::vector<std::string>& entries) {
  std::string buffer;
  for (const std::string& entry : entries) {
    buffer += entry;
    buffer.push_back('\0');
  }
  return buffer;
}

Result<ControlRequest> submit_of(const nlohmann::json& fields,
                                 std::span<const std::string> buffers) {
  Submit submit;
  for (const auto& [name, member] : {std::pair{"job_file", &Submit::job_file},
                                     std::pair{"current_directory", &Submit::current_directory},
                                     std::pair{"command_line", &Submit::command_line}}) {
    auto text = text_field(fields, name);
    if (!text) return std::unexpected(std::move(text.error()));
    submit.*member = std::move(*text);
  }
  auto settings = texts_of(fields, "settings");
  if (!settings) return std::unexpected(std::move(settings.error()));
  submit.settings = std::move(*settings);
  if (buffers.size() != 2 && buffers.size() != 3) {
    return std::unexpected(Error{
        fmt::format("a submission has 2 buffers, a job file and an environment, or 3, with the "
                    "options of a command; it has {}",
                    buffers.size())});
  }
  submit.job_text = buffers[0];
  submit.environment = split_entries(buffers[1]);
  if (buffers.size() == 3) submit.line_names = split_entries(buffers[2]);
  return submit;
}

Result<ControlRequest> request_of(std::string_view text, std::span<const std::string> buffers) {
  const auto fields = parse_fields(text);
  if (!fields) return std::unexpected(fields.error());
  const auto what = text_field(*fields, "do");
  if (!what) return std::unexpected(what.error());
  if (*what == "ping") return Ping{};
  if (*what == "kill") return named<Kill>(*fields);
  if (*what == "retry") return retry_of(*fields);
  if (*what == "hold") return hold_of(*fields, true);
  if (*what == "release") return hold_of(*fields, false);
  if (*what == "priority") return priority_of(*fields);
  if (*what == "submit") return submit_of(*fields, buffers);
  return std::unexpected(
      Error{fmt::format("'do': unknown request '{}'; there are ping, kill, retry, hold, "
                        "release, priority and submit",
                        utf8_prefix(*what, kShownBytesMax))});
}

Result<ControlReply> reply_of(std::string_view whole) {
  const auto fields = parse_fields(whole);
  if (!fields) return std::unexpected(fields.error());
  const auto outcome = text_field(*fields, "outcome");
  if (!outcome) return std::unexpected(outcome.error());
  auto text = fields->contains("text") ? text_field(*fields, "text") : std::string();
  if (!text) return std::unexpected(std::move(text.error()));
  ControlReply reply{.text = std::move(*text)};
  if (const auto number = fields->find("number"); number != fields->end()) {
    if (!number->is_number_unsigned()) return std::unexpected(Error{"'number': is no number"});
    reply.number = number->get<std::uint32_t>();
  }
  static constexpr auto kOutcomes = words_of<Outcome>();
  const auto found = std::ranges::find(kOutcomes, *outcome);
  if (found != kOutcomes.end()) {
    reply.outcome = static_cast<Outcome>(found - kOutcomes.begin());
    return reply;
  }
  return std::unexpected(
      Error{fmt::format("'outcome': unknown outcome '{}'", utf8_prefix(*outcome, kShownBytesMax))});
}

}  // namespace

std::string_view to_text(Outcome outcome) { return word_of(outcome); }

std::string to_fields(const ControlRequest& request) {
  return match(
      request, [](const Ping&) { return fields_text({{"do", "ping"}}); },
      [](const Kill& kill) {
        return fields_text({{"do", "kill"}, {"group", kill.group}, {"id", kill.id}});
      },
      [](const Retry& retry) {
        return fields_text(
            {{"do", "retry"},
             {"group", retry.group},
             {"id", retry.id},
             {"memory_bytes", static_cast<std::uint64_t>(retry.memory_bytes)},
             {"gpu_memory_bytes", static_cast<std::uint64_t>(retry.gpu_memory_bytes)},
             {"time_limit_ms", static_cast<std::uint64_t>(retry.time_limit_ms)}});
      },
      [](const Hold& it) {
        return fields_text(
            {{"do", it.hold ? "hold" : "release"}, {"group", it.group}, {"id", it.id}});
      },
      [](const SetPriority& it) {
        return fields_text(
            {{"do", "priority"}, {"group", it.group}, {"id", it.id}, {"priority", it.priority}});
      },
      [](const Submit& submit) {
        return fields_text({{"do", "submit"},
                            {"job_file", submit.job_file},
                            {"current_directory", submit.current_directory},
                            {"settings", submit.settings},
                            {"command_line", submit.command_line}});
      });
}

std::vector<std::string> to_buffers(const ControlRequest& request) {
  const auto* const submit = std::get_if<Submit>(&request);
  if (submit == nullptr) return {};
  std::vector<std::string> buffers{submit->job_text, joined_entries(submit->environment)};
  if (!submit->line_names.empty()) buffers.push_back(joined_entries(submit->line_names));
  return buffers;
}

std::string to_fields(const ControlReply& reply) {
  nlohmann::json fields{{"outcome", to_text(reply.outcome)},
                        {"text", utf8_prefix(reply.text, kReplyBytesMax)}};
  if (reply.number) fields["number"] = *reply.number;
  return fields_text(fields);
}

Result<ControlRequest> read_request(std::string_view fields, std::span<const std::string> buffers) {
  auto request = request_of(fields, buffers);
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
