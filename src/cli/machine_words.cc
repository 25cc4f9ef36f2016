#include "cli/machine_words.h"

#include <CLI/CLI.hpp>

#include "base/duration_text.h"
#include "base/time.h"
#include "cli/value_checks.h"
#include "cli/value_kinds.h"
#include "sys/environment.h"

namespace trainyard::cli {
namespace {

constexpr int kElsewhereMax = 65'535;
constexpr Duration kLostAfterLeast{1};
constexpr Duration kLostAfterMost{86'400'000};

}  // namespace

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

}  // namespace trainyard::cli
