#include "wire/agent.h"

#include <tuple>
#include <utility>

#include "wire/command_fields.h"
#include "wire/event_fields.h"
#include "wire/launch_fields.h"
#include "wire/resource_fields.h"
#include "wire/struct_fields.h"
#include "wire/value_reader.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

template <>
inline constexpr std::string_view kWordFor<AgentOpen> = "open";
template <>
inline constexpr std::string_view kWordFor<AgentLook> = "look";
template <>
inline constexpr std::string_view kWordFor<AgentBegin> = "begin";
template <>
inline constexpr std::string_view kWordFor<AgentStart> = "start";
template <>
inline constexpr std::string_view kWordFor<AgentCommand> = "command";
template <>
inline constexpr std::string_view kWordFor<AgentHeard> = "heard";
template <>
inline constexpr std::string_view kWordFor<AgentBye> = "bye";
template <>
inline constexpr std::string_view kWordFor<AgentHello> = "hello";
template <>
inline constexpr std::string_view kWordFor<AgentSeen> = "seen";
template <>
inline constexpr std::string_view kWordFor<AgentReady> = "ready";
template <>
inline constexpr std::string_view kWordFor<AgentRefuses> = "refuses";
template <>
inline constexpr std::string_view kWordFor<AgentTells> = "tells";
template <>
inline constexpr std::string_view kWordFor<AgentNote> = "note";
template <>
inline constexpr std::string_view kWordFor<AgentLog> = "log";

template <>
inline constexpr auto kFields<AgentOpen> =
    std::tuple(field("protocol", &AgentOpen::protocol), field("program", &AgentOpen::program),
               field("lease", &AgentOpen::lease), field("until", &AgentOpen::until),
               field("heard", &AgentOpen::heard));
template <>
inline constexpr auto kFields<SoughtProgram> = std::tuple(
    field("name", &SoughtProgram::name), field("by_shell", &SoughtProgram::by_shell),
    field("directory", &SoughtProgram::directory),
    field("environment", &SoughtProgram::environment), field("modules", &SoughtProgram::modules),
    field("import_directory", &SoughtProgram::import_directory));
template <>
inline constexpr auto kFields<AgentLook> = std::tuple(
    field("directory", &AgentLook::directory), field("file", &AgentLook::file),
    field("file_print", &AgentLook::file_print), field("programs", &AgentLook::programs));
template <>
inline constexpr auto kFields<AgentBegin> = std::tuple(
    field("run_directory", &AgentBegin::run_directory), field("key", &AgentBegin::key),
    field("after", &AgentBegin::after), field("keeps", &AgentBegin::keeps),
    field("work_directory", &AgentBegin::work_directory), field("proof", &AgentBegin::proof),
    field("token", &AgentBegin::token), field("sample_every", &AgentBegin::sample_every),
    field("log_max", &AgentBegin::log_max));
template <>
inline constexpr auto kFields<AgentStart> =
    std::tuple(field("command", &AgentStart::command), field("launch", &AgentStart::launch),
               field("journal_number", &AgentStart::journal_number));
template <>
inline constexpr auto kFields<AgentCommand> = std::tuple(field("command", &AgentCommand::command));
template <>
inline constexpr auto kFields<AgentHeard> =
    std::tuple(field("up_to", &AgentHeard::up_to), field("clock", &AgentHeard::clock));
template <>
inline constexpr auto kFields<AgentBye> = std::tuple(field("forgets", &AgentBye::forgets));
template <>
inline constexpr auto kFields<AgentHello> =
    std::tuple(field("protocol", &AgentHello::protocol), field("program", &AgentHello::program),
               field("path", &AgentHello::path), field("home", &AgentHello::home),
               field("host", &AgentHello::host), field("instance", &AgentHello::instance),
               field("place", &AgentHello::place), field("capacity", &AgentHello::capacity),
               field("heard", &AgentHello::heard), field("told", &AgentHello::told),
               field("said", &AgentHello::said), field("begun", &AgentHello::begun),
               field("clock", &AgentHello::clock), field("at", &AgentHello::at),
               field("unix_ms", &AgentHello::unix_ms));
template <>
inline constexpr auto kFields<FoundProgram> =
    std::tuple(field("why_not", &FoundProgram::why_not), field("missing", &FoundProgram::missing),
               field("cannot_ask", &FoundProgram::cannot_ask));
template <>
inline constexpr auto kFields<AgentSeen> = std::tuple(
    field("no_directory", &AgentSeen::no_directory), field("no_file", &AgentSeen::no_file),
    field("disk_free", &AgentSeen::disk_free), field("programs", &AgentSeen::programs));
template <>
inline constexpr auto kFields<AgentRun> = std::tuple(
    field("command", &AgentRun::command), field("journal_number", &AgentRun::journal_number),
    field("two_phase", &AgentRun::two_phase), field("started", &AgentRun::started),
    field("ended", &AgentRun::ended), field("task_directory", &AgentRun::task_directory));
template <>
inline constexpr auto kFields<AgentReady> =
    std::tuple(field("found", &AgentReady::found), field("runs", &AgentReady::runs));
template <>
inline constexpr auto kFields<AgentRefuses> = std::tuple(field("why", &AgentRefuses::why));
template <>
inline constexpr auto kFields<AgentTells> =
    std::tuple(field("at", &AgentTells::at), field("what", &AgentTells::what));
template <>
inline constexpr auto kFields<AgentNote> = std::tuple(field("text", &AgentNote::text));
template <>
inline constexpr auto kFields<AgentLog> =
    std::tuple(field("path", &AgentLog::path), field("anew", &AgentLog::anew),
               field("bytes", &AgentLog::bytes));

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
