#include "wire/agent.h"

#include <utility>

#include "wire/model_fields.h"
#include "wire/struct_fields.h"
#include "wire/value_reader.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

TRAINYARD_ALTERNATIVE("open", AgentOpen, protocol, program, lease, until, received);
TRAINYARD_FIELDS(SoughtProgram, name, by_shell, directory, environment, modules, import_directory);
TRAINYARD_ALTERNATIVE("look", AgentLook, directory, file, file_print, programs);
TRAINYARD_ALTERNATIVE("begin", AgentBegin, run_directory, key, after, keeps, work_directory, proof,
                      token, sample_every, log_max);
TRAINYARD_ALTERNATIVE("start", AgentStart, command, launch, journal_number);
TRAINYARD_ALTERNATIVE("command", AgentCommand, command);
TRAINYARD_ALTERNATIVE("heard", AgentHeard, up_to, clock);
TRAINYARD_ALTERNATIVE("bye", AgentBye, forgets);
TRAINYARD_ALTERNATIVE("hello", AgentHello, protocol, program, path, home, host, instance, place,
                      capacity, received, acknowledged, said, begun, clock, at, unix_ms);
TRAINYARD_FIELDS(FoundProgram, why_not, missing, cannot_ask);
TRAINYARD_ALTERNATIVE("seen", AgentSeen, no_directory, no_file, disk_free, programs);
TRAINYARD_FIELDS(AgentRun, command, journal_number, two_phase, started, ended, task_directory);
TRAINYARD_ALTERNATIVE("ready", AgentReady, found, runs);
TRAINYARD_ALTERNATIVE("refuses", AgentRefuses, why);
TRAINYARD_ALTERNATIVE("tells", AgentTells, at, what);
TRAINYARD_ALTERNATIVE("note", AgentNote, text);
TRAINYARD_ALTERNATIVE("log", AgentLog, path, anew, bytes);

namespace {

template <class Said>
std::string line_of(const Said& said) {
  std::string line = "{";
  if (said.number != 0) {
    append_name(line, "number");
    append_value(line, said.number);
  }
  append_alternative(line, said.what);
  line += '}';
  return line;
}

template <class Said>
Result<Said> said_in(std::string_view line, const char* who) {
  ValueReader from(line);
  Said said;
  from.read_member(from.whole(), "number", said.number);
  from.read_alternative(from.whole(), said.what);
  return std::move(from).give(std::move(said), who);
}

}  // namespace

std::string to_line(const YardSays& said) { return line_of(said); }
std::string to_line(const AgentSays& said) { return line_of(said); }

Result<YardSays> yard_says(std::string_view line) { return said_in<YardSays>(line, "yard"); }
Result<AgentSays> agent_says(std::string_view line) { return said_in<AgentSays>(line, "agent"); }

bool is_agents_first(std::string_view line) {
  return line.starts_with(R"({"hello":)") || line.starts_with(R"({"refuses":)");
}

}  // namespace trainyard::wire
