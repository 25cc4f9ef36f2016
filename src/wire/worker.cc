#include "wire/worker.h"

#include <algorithm>
#include <array>
#include <expected>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/match.h"
#include "wire/field_reader.h"

namespace trainyard::wire {
namespace {

using nlohmann::json;

constexpr std::int64_t kWithinMsMax = std::int64_t{1'000} * 3'600 * 24 * 365;
/// All integers up to there are exact in JSON.
constexpr std::int64_t kExactMax = std::int64_t{1} << 53;
constexpr int kNodeBits = 16;
constexpr unsigned kSharedBit = 0x80;

/// So long is what workers say of themselves.
std::string text_of(FieldReader& from, const char* name) {
  return from.text(name, kTracebackBytesMax);
}

int node_in(FieldReader& from) {
  return static_cast<int>(from.number("node", kNodesMax).value_or(0));
}

/// Without what says nothing.
std::string compact(json fields) {
  for (auto member = fields.begin(); member != fields.end();) {
    const bool says_nothing =
        (member->is_string() && member->get_ref<const std::string&>().empty()) ||
        (member->is_array() && member->empty());
    member = says_nothing ? fields.erase(member) : std::next(member);
  }
  return fields_text(fields);
}

json topic(const TopicWord& it) {
  return {{"word", "topic"}, {"name", it.name}, {"type", it.type}};
}

TopicWord read_topic(FieldReader& from) {
  TopicWord word{.name = from.event_name(), .type = from.text("type")};
  if (word.type != "json" && word.type != "buffer" && word.type != "bundle") {
    from.fail_unknown("type", "json, buffer or bundle", word.type);
  }
  return word;
}

BarrierRequest read_barrier(FieldReader& from) {
  BarrierRequest request{.name = from.text("name", kEventNameBytesMax),
                         .roles = from.texts("roles"),
                         .within_ms = from.number("within_ms", kWithinMsMax).value_or(0),
                         .asked_ms = from.number("asked_ms", kExactMax)};
  if (request.name.empty()) from.fail("name", "the name of a barrier");
  return request;
}

WaitedWord read_waited(FieldReader& from) {
  WaitedWord word{.name = from.event_name(), .ms = from.number("ms", kWithinMsMax).value_or(0)};
  if (const auto node = from.number("from", kNodesMax)) word.from = static_cast<int>(*node);
  return word;
}

json roll(const RollWord& it) {
  json workers = json::array();
  for (const RollWord::Worker& each : it.workers) {
    workers.push_back({{"node", each.node}, {"roles", each.roles}});
  }
  return {{"word", "roll"},
          {"topology", it.topology},
          {"hub", it.hub},
          {"workers", std::move(workers)},
          {"awaited", it.awaited}};
}

RollWord read_roll(FieldReader& from) {
  RollWord word{.topology = text_of(from, "topology"),
                .hub = static_cast<int>(from.number("hub", kNodesMax).value_or(0)),
                .awaited = static_cast<int>(from.number("awaited", kNodesMax).value_or(0))};
  for (const json& each : from.needed_list("workers", kNodesMax)) {
    FieldReader inner = FieldReader::of(each);
    word.workers.push_back({.node = node_in(inner), .roles = inner.texts("roles")});
    from.fail_as(inner);
  }
  return word;
}

template <class Number>
void append(std::string& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    bytes += static_cast<char>((static_cast<std::uint64_t>(number) >> (8 * i)) & 0xFFU);
  }
}

}  // namespace

std::uint64_t topic_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  }
  return hash;
}

std::uint32_t origin_of(int node, std::uint32_t life) {
  return (life << kNodeBits) | (static_cast<std::uint32_t>(node) & (kNodesMax - 1));
}

int node_of(std::uint32_t origin) { return static_cast<int>(origin & (kNodesMax - 1)); }

std::optional<std::string> wrong_worker_name(std::string_view name) {
  constexpr std::string_view kSigns =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  constexpr std::array<std::string_view, 3> kLabels{"standalone", "distributed", "async"};
  if (name.empty() || name.size() > kWorkerNameBytesMax || name.starts_with('-') ||
      name.find_first_not_of(kSigns) != std::string_view::npos) {
    return fmt::format("'{}' is not a valid name; use 1 to {} letters, digits, '_', '-' and '.'",
                       name, kWorkerNameBytesMax);
  }
  if (std::ranges::find(kLabels, name) == kLabels.end() && !name.starts_with("node.")) {
    return std::nullopt;
  }
  return fmt::format(
      "'{}' is reserved: pipelines have the labels {} and node.<number> anyway; use another name, "
      "such as 'learner'",
      name, fmt::join(kLabels, ", "));
}

std::string to_fields(const WorkerReport& report) {
  return compact(match(
      report, [](const TopicWord& it) { return topic(it); },
      [](const WantWord& it) {
        return json{{"word", it.wanted ? "want" : "want-not"}, {"name", it.name}};
      },
      [](const SettledWord&) { return json{{"word", "settled"}}; },
      [](const BeginWord&) { return json{{"word", "begin"}}; },
      [](const FinishWord& it) {
        return json{{"word", "finish"}, {"outcome", it.outcome}, {"why", it.why}};
      },
      [](const WaitedWord& it) {
        json word{{"word", "waited"}, {"name", it.name}, {"ms", it.ms}};
        if (it.from) word["from"] = *it.from;
        return word;
      }));
}

Result<WorkerReport> read_worker_report(std::string_view fields) {
  FieldReader from(fields);
  const std::string word = text_of(from, "word");
  WorkerReport report = SettledWord{};
  if (word == "topic") {
    report = read_topic(from);
  } else if (word == "want" || word == "want-not") {
    report = WantWord{.name = from.event_name(), .wanted = word == "want"};
  } else if (word == "begin") {
    report = BeginWord{};
  } else if (word == "finish") {
    report = FinishWord{.outcome = text_of(from, "outcome"), .why = text_of(from, "why")};
  } else if (word == "waited") {
    report = read_waited(from);
  } else if (word != "settled") {
    from.fail_unknown("word", "topic, want, want-not, settled, begin, finish or waited", word);
  }
  return std::move(from).give(std::move(report), "report");
}

std::string to_fields(const WorkerRequest& request) {
  const auto timed = [](json word, const auto& it) {
    word["within_ms"] = it.within_ms;
    if (it.asked_ms) word["asked_ms"] = *it.asked_ms;
    return word;
  };
  return compact(match(
      request,
      [&](const ReadyRequest& it) {
        return timed({{"word", "ready"}, {"workers", it.workers}}, it);
      },
      [&](const BarrierRequest& it) {
        return timed({{"word", "barrier"}, {"name", it.name}, {"roles", it.roles}}, it);
      },
      [](const StatusRequest&) { return json{{"word", "status"}}; },
      [](const WithdrawRequest&) { return json{{"word", "withdraw"}}; }));
}

Result<WorkerRequest> read_worker_request(std::string_view fields) {
  FieldReader from(fields);
  const std::string word = text_of(from, "word");
  WorkerRequest request = StatusRequest{};
  if (word == "ready") {
    request =
        ReadyRequest{.workers = static_cast<int>(from.number("workers", kNodesMax).value_or(0)),
                     .within_ms = from.number("within_ms", kWithinMsMax).value_or(0),
                     .asked_ms = from.number("asked_ms", kExactMax)};
  } else if (word == "barrier") {
    request = read_barrier(from);
  } else if (word == "withdraw") {
    request = WithdrawRequest{};
  } else if (word != "status") {
    from.fail_unknown("word", "ready, barrier, status or withdraw", word);
  }
  return std::move(from).give(std::move(request), "request");
}

std::string to_fields(const WorkerReply& reply) {
  return compact({{"error", reply.error}, {"missing", reply.missing}, {"status", reply.status}});
}

Result<WorkerReply> read_worker_reply(std::string_view fields) {
  FieldReader from(fields);
  WorkerReply reply{.error = text_of(from, "error"),
                    .missing = from.texts("missing"),
                    .status = from.text("status", kWorkerLimits.fields_bytes_max)};
  return std::move(from).give(std::move(reply), "reply");
}

std::string to_fields(const WorkerOrder& order) {
  return compact(match(
      order, [](const TopicWord& it) { return topic(it); },
      [](const PeerWord& it) {
        return json{{"word", "peer"},        {"node", it.node}, {"change", it.change},
                    {"outcome", it.outcome}, {"why", it.why},   {"roles", it.roles}};
      },
      [](const LostWord& it) {
        return json{{"word", "lost"},    {"name", it.name},       {"node", it.node},
                    {"count", it.count}, {"refused", it.refused}, {"why", it.why}};
      },
      [](const EndWord& it) {
        return json{{"word", "end"}, {"why", it.why}, {"stopped", it.stopped}};
      },
      [](const RollWord& it) { return roll(it); }));
}

Result<WorkerOrder> read_worker_order(std::string_view fields) {
  FieldReader from(fields);
  const std::string word = text_of(from, "word");
  WorkerOrder order = EndWord{};
  if (word == "topic") {
    order = read_topic(from);
  } else if (word == "peer") {
    order = PeerWord{.node = node_in(from),
                     .change = text_of(from, "change"),
                     .outcome = text_of(from, "outcome"),
                     .why = text_of(from, "why"),
                     .roles = from.texts("roles")};
  } else if (word == "lost") {
    order =
        LostWord{.name = from.event_name(),
                 .node = node_in(from),
                 .count = static_cast<std::uint64_t>(from.number("count", kExactMax).value_or(0)),
                 .refused = from.flag("refused"),
                 .why = text_of(from, "why")};
  } else if (word == "end") {
    order = EndWord{.why = text_of(from, "why"), .stopped = from.flag("stopped")};
  } else if (word == "roll") {
    order = read_roll(from);
  } else {
    from.fail_unknown("word", "topic, peer, lost, end or roll", word);
  }
  return std::move(from).give(std::move(order), "order");
}

std::string shapes_text(const std::vector<BufferShape>& shapes) {
  std::string bytes;
  for (const BufferShape& shape : shapes) {
    append(bytes, static_cast<std::uint8_t>(shape.dtype | (shape.shared ? kSharedBit : 0U)));
    append(bytes, static_cast<std::uint8_t>(shape.shape.size()));
    for (const std::int64_t size : shape.shape) append(bytes, size);
  }
  return bytes;
}

Result<std::vector<BufferShape>> read_shapes(std::string_view bytes) {
  std::vector<BufferShape> shapes;
  const Error cut{"the shapes of an event's buffers are cut short"};
  while (!bytes.empty()) {
    if (bytes.size() < 2) return std::unexpected(cut);
    const auto first = static_cast<unsigned char>(bytes[0]);
    BufferShape shape{.dtype = static_cast<std::uint8_t>(first & ~kSharedBit),
                      .shared = (first & kSharedBit) != 0};
    const std::size_t dimensions = static_cast<unsigned char>(bytes[1]);
    bytes.remove_prefix(2);
    if (dimensions > kShapeDimensionsMax || shapes.size() == kShapeBuffersMax) {
      return std::unexpected(Error{"an event's buffers with more dimensions than can be"});
    }
    if (bytes.size() < dimensions * sizeof(std::int64_t)) return std::unexpected(cut);
    for (std::size_t i = 0; i < dimensions; ++i) {
      std::uint64_t size = 0;
      for (std::size_t byte = 0; byte < sizeof size; ++byte) {
        size |= std::uint64_t{static_cast<unsigned char>(bytes[byte])} << (8 * byte);
      }
      shape.shape.push_back(static_cast<std::int64_t>(size));
      bytes.remove_prefix(sizeof size);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace trainyard::wire
