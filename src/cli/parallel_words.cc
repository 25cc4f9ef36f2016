// The words of `trainyard parallel`, and the command itself.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/duration_text.h"
#include "base/list_text.h"
#include "base/nearest.h"
#include "base/path_name.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "cli/with_command.h"
#include "model/terms.h"
#include "ranks/command_ranks.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "settings/setting_value.h"
#include "sys/environment.h"
#include "sys/event_loop.h"
#include "sys/files.h"
#include "sys/this_process.h"
#include "text/shell_quote.h"
#include "trainyard/parallel.h"
#include "trainyard/step_options.h"
#include "wire/last_words.h"
#include "wire/worker.h"
#include "workers/parallel_look.h"
#include "workers/parallel_options.h"
#include "workers/parallel_run.h"

namespace trainyard::cli {
namespace {

using nlohmann::json;

constexpr Duration kTimeMax{86'400'000};
constexpr int kElsewhereMax = 65'535;
constexpr Duration kLostAfterLeast{1};
constexpr Duration kLostAfterMost{86'400'000};
constexpr Duration kAnswerWithin{2'000};
/// Between the two looks that a rate is made of.
constexpr Duration kRateTime{500};

const std::vector<std::pair<std::string_view, Topology>>& topologies() {
  static const std::vector<std::pair<std::string_view, Topology>> all{
      {"mesh", Topology::Mesh}, {"star", Topology::Star}, {"alone", Topology::Alone}};
  return all;
}

const std::vector<std::pair<std::string_view, WhenFull>>& policies() {
  static const std::vector<std::pair<std::string_view, WhenFull>> all{
      {"block", WhenFull::Block}, {"drop-oldest", WhenFull::DropOldest}, {"fail", WhenFull::Fail}};
  return all;
}

/// Stores the value that the word means. Returns the mistake if there is no such value.
template <class Value>
std::optional<std::string> read_word(const std::string& option, const std::string& word,
                                     const std::vector<std::pair<std::string_view, Value>>& all,
                                     Value& value) {
  std::vector<std::string_view> names;
  for (const auto& [name, meaning] : all) {
    if (name == word) {
      value = meaning;
      return std::nullopt;
    }
    names.push_back(name);
  }
  const auto meant = nearest(word, names);
  return fmt::format("{}: unknown value '{}'; use {}{}", option, word, fmt::join(names, ", "),
                     meant ? fmt::format(" (did you mean '{}'?)", *meant) : "");
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == at) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

/// Lines that are safe to show: an exception may hold what a terminal acts on.
std::string plain_lines(std::string_view text) {
  std::vector<std::string> lines = split(wire::without_colours(text), '\n');
  for (std::string& line : lines) line = report::plain(line);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

/// "4,7": numbers from 0 on.
std::optional<std::string> read_numbers(const std::string& option, const std::string& text,
                                        std::vector<int>& numbers) {
  if (text.empty()) return std::nullopt;
  for (const std::string& part : split(text, ',')) {
    const Result<int> number = settings::parse_count(part);
    if (!number) {
      return fmt::format("{}: '{}' is not a number; write several as 4,5,6", option, part);
    }
    numbers.push_back(*number);
  }
  return std::nullopt;
}

/// The answers of the processes that respond, and {"process", "suspended": true} for each that does
/// not; each with its directory. Processes that have ended since are left out.
std::vector<json> looks() {
  std::vector<json> all;
  const workers::ParallelLook look = workers::look_at_parallel_runs(kAnswerWithin);
  all.reserve(look.answers.size() + look.silent.size());
  for (const std::string& text : look.answers) {
    all.push_back(json::parse(text, nullptr, /*allow_exceptions=*/false));
  }
  for (const std::int64_t process : look.silent) {
    all.push_back({{"process", process}, {"suspended", true}});
  }
  std::vector<json> running;
  for (json& run : all) {
    std::error_code error;
    const auto directory = std::filesystem::read_symlink(
        fmt::format("/proc/{}/cwd", run.value("process", std::int64_t{0})), error);
    if (error == std::errc::no_such_file_or_directory) continue;  // The run has ended since.
    if (!error) run["directory"] = directory.string();
    running.push_back(std::move(run));
  }
  return running;
}

/// Adds the rates between two statuses if both are of one worker in one life, or of one machine.
void add_rates(json& peer, const json& old, double seconds) {
  // A worker that is not connected here has no counters.
  if (!peer.contains("events_in")) return;
  for (const char* const key : {"node", "life", "host", "nodes"}) {
    if (old.value(key, json()) != peer.value(key, json())) return;
  }
  for (const char* const count : {"events_in", "events_out", "bytes_in", "bytes_out"}) {
    const double more = peer.value(count, 0.0) - old.value(count, 0.0);
    peer[std::string(count) + "_per_s"] = more / seconds;
  }
}

/// Adds the rates of each worker and of each other machine.
std::vector<json> looks_with_rates() {
  std::vector<json> before = looks();
  const auto answers = [](const json& run) { return run.contains("parallel"); };
  if (std::ranges::none_of(before, answers)) return before;
  sys::let_pass(kRateTime);
  std::vector<json> now = looks();
  const double seconds = std::chrono::duration<double>(kRateTime).count();
  for (json& run : now) {
    const auto same = std::ranges::find_if(
        before, [&](const json& it) { return it["process"] == run["process"]; });
    if (same == before.end() || !run.contains("parallel") || !same->contains("parallel")) continue;
    for (const char* const peers : {"workers", "machines"}) {
      for (json& peer : run["parallel"][peers]) {
        for (const json& old : (*same)["parallel"][peers]) add_rates(peer, old, seconds);
      }
    }
  }
  return now;
}

std::string roles_of(const json& worker) {
  const auto roles = worker.value("roles", std::vector<std::string>());
  if (roles.empty()) return "-";
  return report::plain(fmt::format("{}", fmt::join(roles, ",")));
}

/// Neither before they were ready for the first time, nor while one is to begin again.
bool are_all_ready(const json& parallel) {
  return parallel.value("open", false) &&
         std::ranges::none_of(parallel["workers"], [](const json& worker) {
           const std::string presence = worker.value("presence", "");
           return presence == "awaited" || presence == "joined";
         });
}

std::string worker_line(const json& worker) {
  const auto waits = worker.value("waits_for", std::vector<int>());
  if (!worker.contains("events_in")) {
    return fmt::format("{:>6}  {:<12} {}\n", worker.value("node", 0), roles_of(worker),
                       worker.value("presence", ""));
  }
  std::string line =
      fmt::format("{:>6}  {:<12} {:<9} {:>4}  {:>10.0f}/s {:>10.0f}/s  {:>7}  {:>8} {:>8}",
                  worker.value("node", 0), roles_of(worker), worker.value("presence", ""),
                  worker.value("life", 0), worker.value("events_in_per_s", 0.0),
                  worker.value("events_out_per_s", 0.0), worker.value("queued_events", 0U),
                  worker.value("dropped", 0U), worker.value("refused", 0U));
  if (!waits.empty()) line += fmt::format("  waits for {}", fmt::join(waits, ", "));
  return line + "\n";
}

std::string machine_line(const json& machine) {
  return fmt::format(
      "machine {}: workers {}, last message {} ms ago, sends {:.0f}/s, gets {:.0f}/s, {} events "
      "queued, {} dropped, {} refused\n",
      report::plain(machine.value("host", "")),
      fmt::join(machine.value("nodes", std::vector<int>()), ", "), machine.value("heard_ms", 0),
      machine.value("events_in_per_s", 0.0), machine.value("events_out_per_s", 0.0),
      machine.value("queued_events", 0U), machine.value("dropped", 0U),
      machine.value("refused", 0U));
}

/// Lines with the command and the directory; a function of a program has no command.
std::string origin_of(const json& run) {
  std::string text;
  std::vector<std::string> words;
  for (const std::string& word : run.value("command", std::vector<std::string>())) {
    words.push_back(text::shell_word(word));
  }
  if (!words.empty()) {
    text += fmt::format("command: {}\n", report::plain(fmt::format("{}", fmt::join(words, " "))));
  }
  for (const char* const name : {"directory", "logs", "run"}) {
    const std::string value = run.value(name, "");
    if (!value.empty()) text += fmt::format("{}: {}\n", name, report::plain(value));
  }
  return text;
}

std::string table_of(const json& run) {
  if (!run.contains("parallel")) {
    return fmt::format(
               "process {0}: suspended, does not respond; 'kill -CONT {0}' "
               "resumes it\n",
               run.value("process", 0)) +
           origin_of(run);
  }
  const json& parallel = run["parallel"];
  std::string text =
      fmt::format("process {}: {}, {}\n", run.value("process", 0), parallel.value("topology", ""),
                  are_all_ready(parallel) ? "all are ready" : "not all are ready yet");
  text += origin_of(run);
  text += fmt::format("{:>6}  {:<12} {:<9} {:>4}  {:>12} {:>12}  {:>7}  {:>8} {:>8}\n", "worker",
                      "roles", "presence", "life", "sends", "gets", "queued", "dropped", "refused");
  for (const json& worker : parallel["workers"]) text += worker_line(worker);
  for (const json& machine : parallel["machines"]) text += machine_line(machine);
  for (const json& barrier : parallel["barriers"]) {
    text += fmt::format("barrier '{}': {} wait for {}\n", report::plain(barrier.value("name", "")),
                        fmt::join(barrier.value("arrived", std::vector<int>()), ", "),
                        fmt::join(barrier.value("missing", std::vector<int>()), ", "));
  }
  return text;
}

/// The given options that only a run takes, each with all its names: "'-n,--workers'".
std::vector<std::string> options_of_a_run(const CLI::App& parallel) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : parallel.get_options()) {
    if (option->count() == 0 || option->check_lname("status") || option->check_lname("json")) {
      continue;
    }
    names.push_back(fmt::format("'{}'", option->get_name(/*positional=*/false,
                                                         /*all_options=*/true)));
  }
  return names;
}

constexpr const char* kHelpEnd =
    "Examples:\n"
    "  trainyard parallel -n 4 -- ./train\n"
    "  trainyard parallel -n 2 --roles learner,collector --topology star -- ./dqn\n"
    "  trainyard parallel -n 4 --retries 3 -- python3 collect.py\n"
    "  trainyard parallel --status\n"
    "\n"
    "A single word after '--' runs in bash.\n"
    "A worker joins with trainyard::Worker::from_environment() in C++ or trainyard.Worker in\n"
    "Python; other programs run without events. Output goes to the logs (worker-0.log) and, "
    "with\n"
    "the worker's number, to standard error. When a worker fails, the other workers must stop,\n"
    "too: they get SIGTERM after half of --grace, and SIGKILL after all of it.\n"
    "In a job file: 'workers: {learner: 1, collector: 2}'.\n"
    "A run deletes the logs of an earlier run in the same directory; set another with --logs.\n"
    "On two machines; the first command starts the run:\n"
    "  trainyard parallel -n 2 --attach nats://host-a:4222 --run dqn \\\n"
    "    --elsewhere 2 -- ./dqn\n"
    "  trainyard parallel -n 2 --attach nats://host-a:4222 --run dqn \\\n"
    "    --join --node-ids 2 -- ./dqn\n"
    "Secrets: TRAINYARD_NATS_TOKEN, or TRAINYARD_NATS_USER and TRAINYARD_NATS_PASSWORD.\n"
    "Exit codes: 0 all workers succeeded; 1 a worker failed; 2 nothing was run, also when the\n"
    "program cannot be started; 130 interrupted, here or on another machine; 143 SIGTERM.\n"
    "In a task of a run, a signal that kills a worker kills this command, too.";

std::string usual_logs_of_workers() {
  return run::workers_directory(usual_logs(), ranks::own_attempt());
}

/// The options that are about other machines of the same run.
class MachineWords {
 public:
  void add_to(CLI::App& command);
  /// Puts the typed words and the secrets of the environment into the options; or returns the
  /// mistake in them.
  [[nodiscard]] std::optional<std::string> put_into(ParallelOptions& options) const;

 private:
  std::vector<std::string> servers_;
  std::string run_;
  int elsewhere_ = 0;
  bool joins_ = false;
  std::string lost_after_;
  std::string ca_file_;
  std::string host_name_;
  std::string nkey_;
  std::string seed_file_;
};

void MachineWords::add_to(CLI::App& command) {
  command
      .add_option("--attach", servers_, "NATS server: nats://host:4222; repeatable, for a cluster")
      ->type_name("URL")
      ->allow_extra_args(false);
  command.add_option("--run", run_, "Name of the run, the same on all machines")
      ->type_name(value_kinds::kName);
  command
      .add_option("--elsewhere", elsewhere_, "Start the run; number of workers on other machines")
      ->type_name(value_kinds::kNumber)
      ->check(whole_number_within(1, kElsewhereMax));
  command.add_flag("--join", joins_, "Join a run that another machine starts");
  command
      .add_option("--lost-after", lost_after_,
                  "Time of silence before the run fails (default: 60s)")
      ->type_name(value_kinds::kTime)
      ->check(time_within(kLostAfterLeast, kLostAfterMost));
  command
      .add_option("--nats-ca", ca_file_, "Trusted certificates for tls:// (default: the system's)")
      ->type_name(value_kinds::kFile);
  command
      .add_option("--nats-host", host_name_, "Name in the server's certificate (default: the host)")
      ->type_name(value_kinds::kName);
  command.add_option("--nats-nkey", nkey_, "Public nkey of a user")->type_name(value_kinds::kName);
  command.add_option("--nats-seed", seed_file_, "File with the seed of that nkey")
      ->type_name(value_kinds::kFile);
  for (const char* const name : {"--attach", "--run", "--elsewhere", "--join", "--lost-after",
                                 "--nats-ca", "--nats-host", "--nats-nkey", "--nats-seed"}) {
    command.get_option(name)->group("Several machines");
  }
}

std::optional<std::string> MachineWords::put_into(ParallelOptions& options) const {
  if (servers_.empty()) {
    const bool is_nats =
        !nkey_.empty() || !seed_file_.empty() || !ca_file_.empty() || !host_name_.empty();
    if (is_nats) return "--nats-*: no server given: use '--attach nats://host:4222'";
    if (joins_ || elsewhere_ > 0 || !run_.empty() || !lost_after_.empty()) {
      return "--run, --elsewhere, --join and --lost-after need a server: use '--attach "
             "nats://host:4222'";
    }
    return std::nullopt;
  }
  if (run_.empty()) return "--attach: no run given: use '--run NAME', the same on all machines";
  if (joins_ == (elsewhere_ > 0)) {
    return "--attach: use either '--elsewhere N' on the machine that starts the run, where N is "
           "the "
           "number of workers on other machines, or '--join' on the others";
  }
  options.attach_to = servers_;
  options.run = run_;
  options.joins = joins_;
  options.workers_elsewhere = elsewhere_;
  options.nats = {.token = sys::variable("TRAINYARD_NATS_TOKEN").value_or(""),
                  .user = sys::variable("TRAINYARD_NATS_USER").value_or(""),
                  .password = sys::variable("TRAINYARD_NATS_PASSWORD").value_or(""),
                  .nkey = nkey_,
                  .nkey_seed_file = seed_file_,
                  .ca_file = ca_file_,
                  .host_name = host_name_};
  if (!lost_after_.empty()) options.nats.lost_after = parse_duration(lost_after_).value();
  return std::nullopt;
}

class ParallelWords {
 public:
  explicit ParallelWords(CLI::App& app);
  [[nodiscard]] std::optional<int> run();

 private:
  [[nodiscard]] int run_them();
  [[nodiscard]] ExitCode show_status() const;
  [[nodiscard]] std::optional<std::string> read_options(ParallelOptions& options);

  CLI::App* parallel_ = nullptr;
  int count_ = 0;
  std::string topology_ = "mesh";
  std::string when_full_ = "block";
  std::string roles_;
  std::deque<std::string> role_names_;
  std::vector<std::string> labels_;
  std::string nodes_;
  std::string ports_;
  std::size_t queue_ = 8'192;
  int retries_ = 0;
  std::string retry_delay_ = "0.2s";
  std::string grace_ = "10s";
  std::string logs_;
  MachineWords machines_;
  bool status_ = false;
  bool json_ = false;
};

ParallelWords::ParallelWords(CLI::App& app) {
  parallel_ = app.add_subcommand("parallel", "Run a program as workers that exchange events");
  parallel_->group(command_groups::kRun);
  const auto in_group = [](const char* group) {
    return [group](CLI::Option* option) { return option->group(group); };
  };
  const auto of_workers = in_group("Workers");
  of_workers(parallel_->add_option("-n,--workers", count_, "Number of workers"))
      ->type_name(value_kinds::kNumber)
      ->check(whole_number_within(1, model::kWorkersMax));
  of_workers(parallel_->add_option("--topology", topology_, "Connections (default: mesh)"))
      ->type_name("mesh|star|alone");
  of_workers(parallel_->add_option("--roles", roles_,
                                   "Role of each worker: learner,collector (or two roles, a+b)"))
      ->type_name(value_kinds::kName);
  of_workers(parallel_->add_option("--label", labels_, "Label of all workers; repeatable"))
      ->type_name(value_kinds::kName)
      ->allow_extra_args(false);
  of_workers(parallel_->add_option("--node-ids", nodes_, "Node ids, or the first one (default: 0)"))
      ->type_name("NUMBER,...");
  of_workers(parallel_->add_option("--ports", ports_, "Ports, or the first one (default: 50515)"))
      ->type_name("NUMBER,...");
  const auto of_queues = in_group("Event queues");
  of_queues(parallel_->add_option("--queue", queue_,
                                  "Maximum events waiting for one worker (default: 8192)"))
      ->type_name(value_kinds::kNumber)
      ->check(whole_number_within(1, 10'000'000));
  of_queues(parallel_->add_option("--when-full", when_full_,
                                  "Action when that queue is full (default: block)"))
      ->type_name("block|drop-oldest|fail");
  const auto of_retries = in_group("Retries");
  of_retries(parallel_->add_option("--retries", retries_,
                                   "Number of restarts of a failed worker (default: 0)"))
      ->type_name(value_kinds::kNumber)
      ->check(whole_number_within(0, 60'000));
  of_retries(parallel_->add_option("--retry-delay", retry_delay_,
                                   "Delay before a restart, doubled up to 30s (default: 0.2s)"))
      ->type_name(value_kinds::kTime)
      ->check(time_within(Duration{0}, kTimeMax));
  of_retries(parallel_->add_option("--grace", grace_,
                                   "Time from the request to stop to SIGKILL (default: 10s)"))
      ->type_name(value_kinds::kTime)
      ->check(time_within(Duration{0}, kTimeMax));
  machines_.add_to(*parallel_);
  const auto of_output = in_group(option_groups::kOutput);
  of_output(parallel_->add_option("--logs", logs_,
                                  "Directory of the logs (default: the task's, else this one)"))
      ->type_name(value_kinds::kDirectory);
  of_output(
      parallel_->add_flag("--status", status_, "Show your active parallel runs; run nothing"));
  of_output(parallel_->add_flag("--json", json_, "With --status: print JSON"));
  takes_command(*parallel_);
  parallel_->footer(kHelpEnd);
}

std::optional<int> ParallelWords::run() {
  if (!parallel_->parsed()) return std::nullopt;
  if (status_) return static_cast<int>(show_status());
  return run_them();
}

std::optional<std::string> ParallelWords::read_options(ParallelOptions& options) {
  if (auto wrong = read_word("--topology", topology_, topologies(), options.topology)) return wrong;
  if (auto wrong = read_word("--when-full", when_full_, policies(), options.queue.when_full)) {
    return wrong;
  }
  for (const auto& [option, value] :
       {std::pair("--roles", &roles_), std::pair("--logs", &logs_),
        std::pair("--node-ids", &nodes_), std::pair("--ports", &ports_)}) {
    if (value->empty() && parallel_->count(option) > 0) {
      return fmt::format("{}: the value is empty; give one, or leave the option out", option);
    }
  }
  options.workers = count_;
  if (auto wrong = read_numbers("--node-ids", nodes_, options.node_ids)) return wrong;
  if (auto wrong = read_numbers("--ports", ports_, options.ports)) return wrong;
  for (const std::string& label : labels_) {
    if (const auto wrong = wire::wrong_worker_name(label))
      return fmt::format("--label: {}", *wrong);
  }
  options.labels = labels_;
  options.queue.events_max = queue_;
  options.auto_recover = retries_ > 0;
  options.max_retries = retries_;
  options.retry_delay = parse_duration(retry_delay_).value();
  options.stop_grace = parse_duration(grace_).value();
  if (auto wrong = machines_.put_into(options)) return wrong;
  if (roles_.empty()) return std::nullopt;
  const std::vector<std::string> of_each = split(roles_, ',');
  if (std::cmp_not_equal(of_each.size(), count_)) {
    return fmt::format(
        "--roles: must have {} entries, one for each worker, not {} (as in "
        "learner,collector,collector)",
        count_, of_each.size());
  }
  for (const std::string& of_one : of_each) {
    std::vector<Role>& roles = options.roles.emplace_back();
    for (const std::string& role : split(of_one, '+')) {
      if (role.empty()) return fmt::format("--roles: a role without a name in '{}'", roles_);
      if (const auto wrong = wire::wrong_worker_name(role))
        return fmt::format("--roles: {}", *wrong);
      roles.push_back(Role{role_names_.emplace_back(role)});
    }
  }
  return std::nullopt;
}

int ParallelWords::run_them() {
  if (json_) return static_cast<int>(fail("--json needs --status"));
  const auto command = typed_command(*parallel_);
  if (!command) return static_cast<int>(fail(command.error()));
  if (count_ == 0) {
    return static_cast<int>(
        fail("no number of workers given: use 'trainyard parallel -n 4 -- python3 train.py'"));
  }
  ParallelOptions options;
  if (const auto wrong = read_options(options)) return static_cast<int>(fail(*wrong));
  const auto here = sys::current_directory();
  if (!here) return static_cast<int>(fail(here.error()));
  options.directory = absolute_path(logs_.empty() ? usual_logs_of_workers() : logs_, *here);
  options.show = true;
  options.note = [](std::string_view what) {
    std::cerr << "trainyard parallel: " << plain_lines(what) << '\n' << std::flush;
  };
  auto plan = workers::plan_workers(options);
  if (!plan) return static_cast<int>(fail(plan.error()));
  // SIGUSR1 and SIGUSR2 come to each process of a task before TERM, and are for the workers alone.
  // A closed terminal (SIGHUP) does not end a run, and neither does a reader of its output that goes
  // away (SIGPIPE). Workers have the default.
  for (const int signal : {SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::optional<workers::ParallelRun> run(std::in_place, options, *std::move(plan),
                                          workers::ParallelRun::Periods());
  const ParallelResult result =
      run->run({.function = {}, .command = *command, .stop_signals = {SIGINT, SIGTERM}}, {});
  const int stop_signal = run->stop_signal();
  run.reset();
  for (const WorkerFailure& each : result.failures) {
    std::cerr << fmt::format("trainyard parallel: worker {} failed: {}\n", each.node,
                             plain_lines(each.what));
  }
  std::cerr << std::flush;
  if (!result.error.empty()) {
    const ExitCode usage = fail(plain_lines(result.error));
    if (!result.stopped) return static_cast<int>(result.started ? ExitCode::TaskFailed : usage);
  }
  // A stop is reported as such, whatever went wrong while all were ending.
  if (result.stopped) return static_cast<int>(interrupted_by(stop_signal));
  if (!result && !result.started) return static_cast<int>(ExitCode::Usage);
  if (!result.failures.empty() && result.failures.front().signal != 0 && sys::is_in_task()) {
    // The run of the task judges this end as it judges that of any program.
    sys::end_by_signal(result.failures.front().signal);
  }
  return static_cast<int>(result ? ExitCode::Success : ExitCode::TaskFailed);
}

ExitCode ParallelWords::show_status() const {
  std::vector<std::string> without_effect = options_of_a_run(*parallel_);
  if (!parallel_->remaining().empty()) {
    const auto command = typed_command(*parallel_);
    if (!command) return fail(command.error());
    without_effect.push_back(
        fmt::format("the command '{}'", fmt::join(parallel_->remaining(), " ")));
  }
  if (!without_effect.empty()) {
    return fail(
        fmt::format("--status shows active runs and runs nothing: leave out {}, or --status",
                    list_text(without_effect)));
  }
  const std::vector<json> runs = looks_with_rates();
  if (json_) return answer(json(runs).dump(1) + "\n");
  if (runs.empty()) return answer("you have no active parallel run on this machine\n");
  std::string text;
  for (const json& run : runs) text += (text.empty() ? "" : "\n") + table_of(run);
  return answer(text);
}

}  // namespace

Entry parallel_entry() { return entry<ParallelWords>({"parallel"}); }

}  // namespace trainyard::cli
