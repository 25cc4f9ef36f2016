#include "wire/control.h"

#include <algorithm>
#include <cstddef>
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
Request named(FieldReader& from) {
  Request request;
  request.group = from.needed_text("group");
  request.id = from.needed_text("id");
  return request;
}

Retry retry_of(FieldReader& from) {
  const auto amount = [&from](const char* name) {
    return from.number(name, std::numeric_limits<std::int64_t>::max()).value_or(0);
  };
  Retry retry = named<Retry>(from);
  retry.memory_bytes = amount("memory_bytes");
  retry.gpu_memory_bytes = amount("gpu_memory_bytes");
  retry.time_limit_ms = amount("time_limit_ms");
  return retry;
}

Hold hold_of(FieldReader& from, bool hold) {
  Hold request = named<Hold>(from);
  request.hold = hold;
  return request;
}

bool says_priority(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    return std::cmp_less_equal(value.get<std::uint64_t>(), model::kPriorityMost);
  }
  return value.is_number_integer() && model::is_priority(value.get<std::int64_t>());
}

SetPriority priority_of(FieldReader& from) {
  SetPriority request = named<SetPriority>(from);
  const nlohmann::json* const priority = from.find_needed("priority");
  if (priority != nullptr && says_priority(*priority)) {
    request.priority = priority->get<std::int32_t>();
  } else {
    from.fail("priority", fmt::format("a whole number from -{0} to {0}", model::kPriorityMost));
  }
  return request;
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

Submit submit_of(FieldReader& from, std::span<const std::string> buffers) {
  Submit submit{.job_file = from.needed_text("job_file"),
                .current_directory = from.needed_text("current_directory"),
                .settings = from.texts("settings"),
                .command_line = from.needed_text("command_line")};
  if (buffers.size() != 2 && buffers.size() != 3) {
    from.fail("buffers", fmt::format("2, a job file and an environment, or 3, with the options of "
                                     "a command; there are {}",
                                     buffers.size()));
    return submit;
  }
  submit.job_text = buffers[0];
  submit.environment = split_entries(buffers[1]);
  if (buffers.size() == 3) submit.line_names = split_entries(buffers[2]);
  return submit;
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
  FieldReader from(fields);
  const std::string what = from.needed_text("do");
  ControlRequest request = Ping{};
  if (what == "kill") {
    request = named<Kill>(from);
  } else if (what == "retry") {
    request = retry_of(from);
  } else if (what == "hold" || what == "release") {
    request = hold_of(from, what == "hold");
  } else if (what == "priority") {
    request = priority_of(from);
  } else if (what == "submit") {
    request = submit_of(from, buffers);
  } else if (what != "ping") {
    from.fail_unknown("do", "ping, kill, retry, hold, release, priority or submit", what);
  }
  return std::move(from).give(std::move(request), "request");
}

Result<ControlReply> read_reply(std::string_view fields) {
  static constexpr auto kOutcomes = words_of<Outcome>();
  FieldReader from(fields);
  const std::string outcome = from.needed_text("outcome");
  const auto known = std::ranges::find(kOutcomes, outcome);
  if (known == kOutcomes.end()) {
    from.fail_unknown("outcome", "done, not-running, no-such-task or error", outcome);
  }
  ControlReply reply{.outcome = static_cast<Outcome>(known - kOutcomes.begin()),
                     .text = from.text("text")};
  if (const auto number = from.number("number", std::numeric_limits<std::uint32_t>::max())) {
    reply.number = static_cast<std::uint32_t>(*number);
  }
  return std::move(from).give(std::move(reply), "reply");
}

std::string failure_fields(std::string_view why) {
  return fields_text({{"error", utf8_prefix(why, kTextBytesMax)}});
}

std::string read_failure(std::string_view fields) {
  std::string why = FieldReader(fields).text("error");
  return why.empty() ? "no reason was given" : why;
}

}  // namespace trainyard::wire
