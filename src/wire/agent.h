// Messages between a yard and its agents on other machines: one JSON object on one line,
// {"number":7,"start":{...}}. The name of the other member is the kind of the message.
//
//   yard ──▶ agent   open, then begin once, start and command; look before that; heard all the
//                    while; bye at the end
//   agent ──▶ yard   hello to each open, ready or refused to begin; seen to each look; events,
//                    notes, and logs where these are not on a disk of both; heard
//
// A numbered message is sent until the other side has acknowledged it, also over the next stream
// when one is cut, and is taken in once, in order: the numbers of each side count from 1. A message
// without a number (0) is about the stream itself. `received` and `acknowledged` are numbers up to
// which one side has received, or the other has acknowledged, everything.
//
// The lease: an agent says what its clock shows (CLOCK_BOOTTIME: the time that the machine slept
// counts), the yard answers with the time on that clock until which tasks may run without another
// message from it. A delayed message therefore gives no additional time.
//
// No sockets here. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/launch.h"
#include "model/resources.h"

namespace trainyard::wire {

/// Both sides must have the same.
constexpr int kAgentProtocol = 2;

/// The longest line of either side.
constexpr std::size_t kAgentLineMax = std::size_t{16} << 20;

/// The first word of the yard over each stream.
struct AgentOpen {
  int protocol = 0;
  std::string program;  ///< Who asks: "trainyard 0.1.0".
  Duration lease{0};    ///< The time that it waits for a run to begin without a message.
  Duration until{0};    ///< For a run that has begun: until when tasks may run, as AgentHeard.
  std::uint64_t received = 0;  ///< Number of the last message of this agent that the yard received.

  friend bool operator==(const AgentOpen&, const AgentOpen&) = default;
};

/// A program that tasks are to run, and what decides which one that is.
struct SoughtProgram {
  std::string name;                      ///< Its first word: "python3", "./train.sh".
  bool by_shell = false;                 ///< A shell reads it: what that has built in will do.
  std::string directory;                 ///< Where it is started; absolute.
  std::vector<std::string> environment;  ///< Beside the agent's own, as NAME=value.
  std::vector<std::string> modules;      ///< Modules that it is to import, where it is a Python,
  std::string import_directory;          ///< and where it looks for that first; empty: nowhere.

  friend bool operator==(const SoughtProgram&, const SoughtProgram&) = default;
};

/// A search by an agent on its machine, where nothing is started for it that stays: after
/// its hello, and before a run begins.
struct AgentLook {
  std::string directory;         ///< Where files are to be written.
  std::string file;              ///< That is the same on both machines; empty: none.
  std::uint64_t file_print = 0;  ///< Fingerprint of what the yard sees in it (base/fingerprint.h).
  std::vector<SoughtProgram> programs;

  friend bool operator==(const AgentLook&, const AgentLook&) = default;
};

/// Names the run, before the first task. The agent first kills what is left of the run there. If it
/// has begun the same run for an earlier execution whose yard died, it reports what runs instead.
struct AgentBegin {
  std::string run_directory;
  std::string key;  ///< Names this machine in this run.
  /// Names the agent with this key whose remains are ended; empty: the remains of the run, of which
  /// nothing is at work yet.
  std::string after;
  /// For an agent that an earlier execution of the run has begun: the attempts there that go on, as
  /// all others are ended first. Nothing: all of them go on for now.
  std::optional<std::vector<model::AttemptKey>> keeps = std::nullopt;
  /// Where the code of the run is there, which must be there; the run's directory is made, and is
  /// this machine's alone. Empty: both are on a disk that is the yard's too.
  std::string work_directory;
  std::string proof;  ///< A file in there that the yard has just written, to be seen by the agent,
  std::string token;  ///< and what stands in it. Empty: it has none.
  Duration sample_every{1'000};
  Bytes log_max;  ///< Most disk that a log of a task may take; 0: no limit.

  friend bool operator==(const AgentBegin&, const AgentBegin&) = default;
};

struct AgentStart {
  model::StartAttempt command;
  model::Launch launch;
  std::uint32_t journal_number = 0;  ///< That of its task.

  friend bool operator==(const AgentStart&, const AgentStart&) = default;
};

struct AgentCommand {
  model::Command command;

  friend bool operator==(const AgentCommand&, const AgentCommand&) = default;
};

/// From either side, also when there is nothing else to say.
struct AgentHeard {
  std::uint64_t up_to = 0;
  Duration clock{0};  ///< From an agent: its clock. From the yard: until when tasks may run.

  friend bool operator==(const AgentHeard&, const AgentHeard&) = default;
};

/// The yard is over with it: whatever runs ends, and the agent goes.
struct AgentBye {
  bool forgets = false;  ///< The run's directory, which is its machine's alone, is not needed more.

  friend bool operator==(const AgentBye&, const AgentBye&) = default;
};

struct YardSays {
  std::uint64_t number = 0;
  std::variant<AgentOpen, AgentLook, AgentBegin, AgentStart, AgentCommand, AgentHeard, AgentBye>
      what;

  friend bool operator==(const YardSays&, const YardSays&) = default;
};

struct AgentHello {
  int protocol = 0;
  std::string program;   ///< Who answers: "trainyard 0.1.0".
  std::string path;      ///< Path of that program.
  std::string home;      ///< Home of its user; empty: not known.
  std::string host;      ///< As that machine calls itself.
  std::string instance;  ///< Another one each time an agent begins.
  std::string place;     ///< The same as long as it can see what runs there: of one boot.
  model::Capacity capacity;
  std::uint64_t received = 0;      ///< Number of the last message that this instance received.
  std::uint64_t acknowledged = 0;  ///< Number of its last message that a yard has acknowledged.
  std::uint64_t said = 0;          ///< The number of the last thing that it has said.
  bool begun = false;              ///< A run has begun with it.
  Duration clock{0};               ///< Its CLOCK_BOOTTIME.
  Instant at;                      ///< Its time on the clock of its events.
  std::int64_t unix_ms = 0;        ///< Its clock on the wall: milliseconds since 1970.

  friend bool operator==(const AgentHello&, const AgentHello&) = default;
};

/// The state of a program on that machine.
struct FoundProgram {
  std::string why_not;               ///< It cannot be run, for people; empty: it can.
  std::vector<std::string> missing;  ///< Modules that it would not find.
  std::string cannot_ask;            ///< Why nobody knows which these are; empty: they are known.

  friend bool operator==(const FoundProgram&, const FoundProgram&) = default;
};

/// The outcome of a search; texts are for people, and empty where all is well.
struct AgentSeen {
  std::string no_directory;            ///< Nothing can be written there.
  std::string no_file;                 ///< Reason: the file is missing, or another one.
  Bytes disk_free;                     ///< Free space on that directory's disk, for its user.
  std::vector<FoundProgram> programs;  ///< In their order.

  friend bool operator==(const AgentSeen&, const AgentSeen&) = default;
};

/// An attempt that an earlier execution has started. Its yard may not have received the end.
struct AgentRun {
  model::StartAttempt command;                   ///< By which it was started.
  std::uint32_t journal_number = 0;              ///< That of its task.
  bool two_phase = false;                        ///< It waits for the order to train.
  std::optional<model::AttemptStarted> started;  ///< Nothing: it has not begun yet.
  bool ended = false;                            ///< Its end is reported, too.
  std::string task_directory;                    ///< There.

  friend bool operator==(const AgentRun&, const AgentRun&) = default;
};

struct AgentReady {
  bool found = false;  ///< Something of the run was there already, in its machine's own directory.
  std::vector<AgentRun> runs;  ///< In the order of their tasks.

  friend bool operator==(const AgentReady&, const AgentReady&) = default;
};

/// It cannot do what it was asked, and says why for people.
struct AgentRefuses {
  std::string why;

  friend bool operator==(const AgentRefuses&, const AgentRefuses&) = default;
};

/// Something happened on its machine, which has the number 0 there, at a moment of its own clock.
struct AgentTells {
  Instant at;
  model::What what;

  friend bool operator==(const AgentTells&, const AgentTells&) = default;
};

/// A note for people, in a line.
struct AgentNote {
  std::string text;

  friend bool operator==(const AgentNote&, const AgentNote&) = default;
};

/// The next piece of a log that is not on a disk of the yard. Pieces that are left out come with
/// the file, when its attempt has ended.
struct AgentLog {
  std::string path;   ///< There; absolute.
  bool anew = false;  ///< It begins with this.
  std::string bytes;

  friend bool operator==(const AgentLog&, const AgentLog&) = default;
};

struct AgentSays {
  std::uint64_t number = 0;
  std::variant<AgentHello, AgentSeen, AgentReady, AgentRefuses, AgentTells, AgentNote, AgentLog,
               AgentHeard>
      what;

  friend bool operator==(const AgentSays&, const AgentSays&) = default;
};

/// One line, without its end.
std::string to_line(const YardSays& said);
std::string to_line(const AgentSays& said);

/// From any text, whoever wrote it. An error names what is wrong: "yard: start.launch.ranks: must
/// be a whole number from ...".
Result<YardSays> yard_says(std::string_view line);
Result<AgentSays> agent_says(std::string_view line);

/// Whether a line is where an agent begins to speak: what comes before is somebody's greeting.
bool is_agents_first(std::string_view line);

}  // namespace trainyard::wire
