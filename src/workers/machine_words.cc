#include "workers/machine_words.h"

#include <nlohmann/json.hpp>

#include "base/match.h"
#include "base/utf8.h"
#include "wire/field_reader.h"
#include "wire/worker.h"

namespace trainyard::workers {
namespace {

using nlohmann::json;
using wire::FieldReader;

constexpr std::size_t kMachinesMax = 1'024;

int small_number(FieldReader& from, const char* name) {
  return static_cast<int>(from.needed_number(name, wire::kNodesMax));
}

int node_in(FieldReader& from) {
  return static_cast<int>(from.needed_number("node", wire::kNodesMax - 1));
}

MachineNode node_of(FieldReader& from, const json& object) {
  FieldReader inner = FieldReader::of(object);
  MachineNode node{.node = node_in(inner), .roles = inner.texts("roles")};
  from.fail_as(inner);
  return node;
}

MachineEntry machine_of(FieldReader& from, const json& object) {
  FieldReader inner = FieldReader::of(object);
  MachineEntry entry{.id = inner.needed_id("id"), .host = inner.needed_text("host")};
  if (entry.id == 0) inner.fail("id", "a number above 0");
  for (const json& each : inner.needed_list("nodes", wire::kNodesMax)) {
    entry.nodes.push_back(node_of(inner, each));
  }
  from.fail_as(inner);
  return entry;
}

/// The member `machine`.
MachineEntry machine_in(FieldReader& from) {
  const json* const object = from.find_needed("machine");
  return object == nullptr ? MachineEntry{} : machine_of(from, *object);
}

json machine_json(const MachineEntry& machine) {
  json nodes = json::array();
  for (const MachineNode& each : machine.nodes) {
    nodes.push_back({{"node", each.node}, {"roles", each.roles}});
  }
  return {{"id", machine.id}, {"host", machine.host}, {"nodes", std::move(nodes)}};
}

}  // namespace

std::string to_fields(const MachineHello& hello) {
  return wire::fields_text({{"machine", machine_json(hello.machine)},
                            {"topology", hello.topology},
                            {"when_full", hello.when_full},
                            {"begins", hello.begins},
                            {"has_begun", hello.has_begun}});
}

std::string to_fields(const MachineWelcome& welcome) {
  json machines = json::array();
  for (const MachineEntry& each : welcome.machines) machines.push_back(machine_json(each));
  return wire::fields_text({{"error", welcome.error},
                            {"machines", std::move(machines)},
                            {"index", welcome.index},
                            {"count", welcome.count},
                            {"awaited", welcome.awaited}});
}

std::string to_fields(MachineEnd end, std::size_t bytes_max) {
  const auto text = [&end] {
    json fields{{"why", end.why}, {"leaves", end.leaves}};
    if (end.node) fields["node"] = *end.node;
    return wire::fields_text(fields);
  };
  std::string fields = text();
  // How long a text is as JSON depends on its characters.
  while (fields.size() > bytes_max && !end.why.empty()) {
    end.why.resize(utf8_prefix(end.why, end.why.size() / 2).size());
    fields = text();
  }
  return fields;
}

std::string to_fields(const MachineWord& word) {
  return wire::fields_text(match(
      word,
      [](const CameWord& it) {
        return json{
            {"word", "came"}, {"machine", machine_json(it.machine)}, {"awaited", it.awaited}};
      },
      [](const LeaveWord& it) { return json{{"word", "leave"}, {"why", it.why}}; },
      [](const NeedWord& it) {
        return json{{"word", "need"}, {"node", it.node}, {"name", it.name}, {"wanted", it.wanted}};
      },
      [](const LastWord& it) {
        return json{{"word", "last"}, {"of", it.of}, {"node", it.node}, {"name", it.name}};
      },
      [](const MarkWord& it) { return json{{"word", "mark"}, {"mark", it.mark}}; },
      [](const OnlyWord& it) {
        return json{{"word", "only"}, {"node", it.node}, {"name", it.name}};
      },
      [](const AckRequestWord& it) {
        return json{{"word", "ack request"}, {"node", it.node}, {"number", it.number}};
      },
      [](const AckWord& it) {
        return json{{"word", "ack"}, {"node", it.node}, {"number", it.number}};
      }));
}

std::string to_fields(const ReplyNote& note) {
  json marks = json::array();
  for (const auto& [id, mark] : note.marks) marks.push_back({{"of", id}, {"mark", mark}});
  return wire::fields_text({{"met", note.met}, {"marks", std::move(marks)}});
}

Result<MachineHello> read_machine_hello(std::string_view fields) {
  FieldReader from(fields);
  MachineHello hello{.machine = machine_in(from),
                     .topology = from.needed_text("topology"),
                     .when_full = from.needed_text("when_full"),
                     .begins = from.flag("begins"),
                     .has_begun = from.flag("has_begun")};
  return std::move(from).give(std::move(hello), "greeting of a machine");
}

Result<MachineWelcome> read_machine_welcome(std::string_view fields) {
  FieldReader from(fields);
  MachineWelcome welcome{.error = from.text("error"),
                         .index = small_number(from, "index"),
                         .count = small_number(from, "count"),
                         .awaited = small_number(from, "awaited")};
  for (const json& each : from.needed_list("machines", kMachinesMax)) {
    welcome.machines.push_back(machine_of(from, each));
  }
  if (welcome.error.empty() && welcome.machines.empty())
    from.fail("machines", "those that are there");
  return std::move(from).give(std::move(welcome), "welcome of a machine");
}

Result<MachineEnd> read_machine_end(std::string_view fields) {
  FieldReader from(fields);
  MachineEnd end{.why = from.needed_text("why"), .leaves = from.flag("leaves")};
  if (const auto node = from.number("node", wire::kNodesMax - 1)) {
    end.node = static_cast<int>(*node);
  }
  return std::move(from).give(std::move(end), "end of a run");
}

Result<MachineWord> read_machine_word(std::string_view fields) {
  FieldReader from(fields);
  const std::string word = from.needed_text("word");
  MachineWord read = LeaveWord{};
  if (word == "need") {
    read = NeedWord{
        .node = node_in(from), .name = from.event_name(), .wanted = from.needed_flag("wanted")};
  } else if (word == "last") {
    read = LastWord{.of = from.needed_id("of"), .node = node_in(from), .name = from.event_name()};
  } else if (word == "mark") {
    read = MarkWord{.mark = from.needed_id("mark")};
  } else if (word == "only") {
    read = OnlyWord{.node = node_in(from), .name = from.text("name")};
  } else if (word == "ack request") {
    read = AckRequestWord{.node = node_in(from), .number = from.needed_id("number")};
  } else if (word == "ack") {
    read = AckWord{.node = node_in(from), .number = from.needed_id("number")};
  } else if (word == "came") {
    read = CameWord{.machine = machine_in(from), .awaited = small_number(from, "awaited")};
  } else if (word == "leave") {
    read = LeaveWord{.why = from.text("why")};
  } else {
    from.fail_unknown("word", "need, last, mark, only, ack request, ack, came or leave", word);
  }
  return std::move(from).give(std::move(read), "word of a machine");
}

Result<ReplyNote> read_reply_note(std::string_view fields) {
  FieldReader from(fields);
  ReplyNote note{.met = from.needed_flag("met")};
  for (const json& each : from.needed_list("marks", kMachinesMax)) {
    FieldReader inner = FieldReader::of(each);
    const MachineId of = inner.needed_id("of");
    note.marks.emplace_back(of, inner.needed_id("mark"));
    from.fail_as(inner);
  }
  return std::move(from).give(std::move(note), "note beside a reply");
}

}  // namespace trainyard::workers
