// `trainyard client`: requests of a shell script to the yard that runs it. Outside of a yard the
// same script simply continues.
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "cli/version.h"
#include "link/conversation.h"
#include "model/event.h"
#include "run/run_directory.h"
#include "settings/setting_value.h"
#include "sys/environment.h"
#include "sys/files.h"
#include "sys/tail.h"
#include "wire/field_reader.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/memory_text.h"
#include "wire/metric_line.h"
#include "wire/result_text.h"
#include "wire/task.h"

namespace trainyard::cli {
namespace {

/// Requests of a script to the yard that runs it. Outside of a yard: waits for nothing, and prints
/// "cpu"; reports nothing; prints the result.
struct ClientOptions {
  const CLI::App* wait = nullptr;
  const CLI::App* progress = nullptr;
  bool after_out_of_memory = false;
  std::optional<double> fraction;
  std::vector<std::string> values;  ///< "loss=0.3"
};

constexpr Duration kTellWithin{10'000};

/// A variable of the environment, or empty.
std::string text(const char* name) { return sys::variable(name).value_or(""); }

/// A variable as a whole number; nothing if it is not one.
std::optional<int> number(const char* name) {
  const Result<int> value = settings::parse_count(text(name));
  return value ? std::optional(*value) : std::nullopt;
}

struct Yard {
  std::string socket;
  std::string token;
  /// For a task with ranks: the rank of this process and their number (set by `trainyard ranks`).
  std::optional<int> rank;
  std::optional<int> ranks;
};

/// Rank 0 reports the progress and the result of a task for all its processes.
bool speaks_for_all() { return number("TRAINYARD_RANK").value_or(0) == 0; }

/// A task of a single phase has its device from its beginning on.
bool waits_for_a_device() { return text("TRAINYARD_PHASES") != "1"; }

/// The yard that runs this task; nothing outside of a task.
std::optional<Yard> yard_of_this_task() {
  Yard found{.socket = text("TRAINYARD_SOCKET"),
             .token = text("TRAINYARD_TOKEN"),
             .rank = number("TRAINYARD_RANK"),
             .ranks = number("WORLD_SIZE")};
  if (found.socket.empty() || found.token.empty()) return std::nullopt;
  return found;
}

Result<link::Conversation> meet(const Yard& yard, wire::Role role, std::optional<Duration> within) {
  link::Conversation conversation(
      {.with = "the yard", .within = within, .limits = wire::kTaskLimits});
  Result<void> met = conversation.connect(yard.socket);
  if (met) {
    met = conversation.greet({.role = role,
                              .version = wire::kProtocolVersion,
                              .program = std::string(kProgram),
                              .token = yard.token,
                              .rank = role == wire::Role::Rank ? yard.rank : std::nullopt,
                              .ranks = role == wire::Role::Rank ? yard.ranks : std::nullopt});
  }
  if (!met) return std::unexpected(std::move(met.error()));
  return conversation;
}

Result<void> report(link::Conversation& conversation, const wire::TaskReport& what) {
  return conversation.tell({.kind = wire::FrameKind::Report, .fields = wire::to_fields(what)});
}

Result<void> say(link::Conversation& conversation, model::Said said, std::string message = {}) {
  return report(conversation,
                wire::StageWord{.said = said, .message = std::move(message), .traceback = {}});
}

/// `new_one`: skips the order by which it has trained until now, which comes again with each
/// connection.
Result<wire::TrainOrder> hear_order(link::Conversation& conversation, bool new_one) {
  while (true) {
    const Result<wire::Frame> frame = conversation.hear(wire::FrameKind::Order);
    if (!frame) return std::unexpected(frame.error());
    Result<wire::TaskOrder> order = wire::read_order(frame->fields);
    if (!order) return std::unexpected(std::move(order.error()));
    wire::TrainOrder train = std::get<wire::TrainOrder>(std::move(*order));
    if (!new_one || !train.again) return train;
  }
}

/// A JSON value unchanged, any other as text. A number that JSON does not have becomes null, as in
/// a result file, and a line on standard error says so.
nlohmann::json value_of(std::string_view name, const std::string& value) {
  nlohmann::json parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_discarded()) return parsed;
  const std::optional<wire::Metric> metric = wire::metric_of("value", value);
  if (!metric || metric->number) return value;
  note(fmt::format("'{}' was {}, a number that JSON does not have: kept as null", name, value));
  return nullptr;
}

/// "acc=0.98" and "name=x" as an object.
Result<nlohmann::json> object_of(const std::vector<std::string>& words) {
  nlohmann::json object = nlohmann::json::object();
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return std::unexpected(
          Error{fmt::format("'{}' is not <name>=<value>, as in acc=0.98", word)});
    }
    const std::string name = word.substr(0, equals);
    object[name] = value_of(name, word.substr(equals + 1));
  }
  return object;
}

/// The end of the training's error output: a rank from 1 on may have its own log.
std::string what_ran_out() {
  const std::string directory = text("TRAINYARD_TASK_DIR");
  const int attempt = number("TRAINYARD_ATTEMPT").value_or(1);
  const auto read = [&](std::string_view stream) {
    return sys::read_end_of_file(
        directory + "/" + run::log_name(stream, static_cast<std::uint32_t>(attempt)),
        wire::kErrorTailBytes, sys::Links::Refuse);
  };
  const int rank = number("TRAINYARD_RANK").value_or(0);
  Result<std::string> end = read(rank > 0 ? fmt::format("rank-{}", rank) : "stderr");
  if (!end && rank > 0) end = read("stderr");
  if (rank == 0 && end && end->empty()) {
    end = read("stdout");
    if (end) *end = std::string(sys::last_lines(*end, wire::kOutputTailLines));
  }
  const std::optional<std::string> line =
      end ? wire::out_of_memory_line(*end) : std::optional<std::string>();
  return line.value_or(std::string(wire::kOfSomeMemory));
}

ExitCode client_wait_command(const ClientOptions& options) {
  const std::optional<Yard> yard = yard_of_this_task();
  if (!yard || !waits_for_a_device()) return answer("cpu\n");
  const wire::Role role = yard->rank ? wire::Role::Rank : wire::Role::Task;
  Result<link::Conversation> conversation = meet(*yard, role, std::nullopt);
  if (!conversation) return fail(conversation.error(), ExitCode::TaskFailed);
  Result<void> said;
  if (options.after_out_of_memory) {
    said = say(*conversation, model::Said::OutOfMemory, what_ran_out());
  } else {
    said = say(*conversation, model::Said::Loading);
    if (said) said = say(*conversation, model::Said::Loaded);
  }
  if (!said) return fail(said.error(), ExitCode::TaskFailed);
  if (options.after_out_of_memory && yard->rank) {
    return fail(Error{"out of memory in one rank: all of them start again"}, ExitCode::TaskFailed);
  }
  const Result<wire::TrainOrder> order = hear_order(*conversation, options.after_out_of_memory);
  if (!order) return fail(order.error(), ExitCode::TaskFailed);
  // A script has no last word: its exit code says how it went.
  said = say(*conversation, model::Said::Training);
  if (!said) return fail(said.error(), ExitCode::TaskFailed);
  return answer(order->device + "\n");
}

ExitCode client_progress_command(const ClientOptions& options) {
  const Result<nlohmann::json> values = object_of(options.values);
  if (!values) return fail(values.error());
  const std::optional<Yard> yard = yard_of_this_task();
  if (!yard || !speaks_for_all()) return ExitCode::Success;
  Result<link::Conversation> conversation = meet(*yard, wire::Role::Helper, kTellWithin);
  if (!conversation) return fail(conversation.error(), ExitCode::TaskFailed);
  const Result<void> reported = report(
      *conversation, wire::Progress{.fraction = options.fraction,
                                    .values = values->empty() ? "" : wire::fields_text(*values)});
  return reported ? ExitCode::Success : fail(reported.error(), ExitCode::TaskFailed);
}

ExitCode client_result_command(const ClientOptions& options) {
  const Result<nlohmann::json> values = object_of(options.values);
  if (!values) return fail(values.error());
  if (!speaks_for_all()) return ExitCode::Success;
  const std::string path = text("TRAINYARD_RESULT");
  if (path.empty()) {
    return answer(fmt::format("result: {}\n", wire::fields_text(*values)));
  }
  nlohmann::json object = nlohmann::json::object();
  const Result<std::optional<std::string>> before =
      sys::read_plain_file(path, Bytes{static_cast<std::int64_t>(wire::kResultBytesMax)});
  const std::string text = before ? before->value_or("") : "";
  const nlohmann::json there = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (there.is_object()) object = there;
  object.update(*values);
  const Result<void> written = sys::replace_file(path, wire::fields_text(object));
  return written ? ExitCode::Success : fail(written.error(), ExitCode::TaskFailed);
}

ExitCode client_command(const ClientOptions& options) {
  if (options.wait->parsed()) return client_wait_command(options);
  return options.progress->parsed() ? client_progress_command(options)
                                    : client_result_command(options);
}

CLI::App* add_client(CLI::App& app, ClientOptions& options) {
  CLI::App* client =
      app.add_subcommand("client", "Report progress and results from a task's script");
  client->group(command_groups::kPlumbing);
  client->require_subcommand(1);
  client->footer(
      "Examples:\n"
      "  trainyard client wait-device\n"
      "  trainyard client progress 0.4 loss=0.31\n"
      "  trainyard client result acc=0.98\n"
      "\n"
      "A task with 'two-phase: true' loads data, then waits for a device:\n"
      "  ./load.sh\n"
      "  device=$(trainyard client wait-device) || exit\n"
      "  ./train.sh --device \"$device\"\n"
      "Every task may report progress and results. Outside of a run, wait-device prints 'cpu' at\n"
      "once.");
  CLI::App* const wait = client->add_subcommand("wait-device", "Wait for a device, and print it");
  wait->add_flag("--after-out-of-memory", options.after_out_of_memory,
                 "Report that the training ran out of memory; retry with more");
  wait->footer(
      "Examples:\n"
      "  trainyard client wait-device\n"
      "\n"
      "Prints the device: cpu or cuda:0. With --after-out-of-memory, trainyard reads in the "
      "task's\n"
      "standard error which memory ran out and how much was requested (in its standard output if\n"
      "standard error is empty). Without a message there, it was GPU memory if the task has a "
      "GPU.\n"
      "Exit codes: 0 train now, 1 the run has ended, or refuses.");
  CLI::App* const progress =
      client->add_subcommand("progress", "Report the progress of the training");
  progress->add_option("fraction", options.fraction, "Fraction done, from 0 to 1")
      ->type_name(value_kinds::kNumber)
      ->check(number_within(0.0, 1.0))
      ->required();
  progress->add_option("values", options.values, "Current values: loss=0.31")
      ->type_name(value_kinds::kResult);
  progress->footer("Examples:\n  trainyard client progress 0.4 loss=0.31 epoch=2");
  CLI::App* const result = client->add_subcommand("result", "Add values to the result of the task");
  result->add_option("values", options.values, "Values: acc=0.98")
      ->type_name(value_kinds::kResult)
      ->required();
  result->footer(
      "Examples:\n"
      "  trainyard client result acc=0.98 model=resnet 'confusion=[[9,1],[0,10]]'\n"
      "\n"
      "A value that is valid JSON is stored as JSON, any other value as text. nan and inf become\n"
      "null.");
  options.wait = wait;
  options.progress = progress;
  return client;
}

}  // namespace

Entry client_entry() { return entry({"client"}, add_client, client_command); }

}  // namespace trainyard::cli
