#include "cli/slurm_nodes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <string_view>

#include <fmt/format.h>

#include "sys/environment.h"
#include "sys/helper_command.h"

namespace trainyard::cli {
namespace {

constexpr const char* kNodeList = "SLURM_JOB_NODELIST";

constexpr std::array<std::string_view, 7> kHoldNothing{"--no-shell", "--",        "--help", "-h",
                                                       "--usage",    "--version", "-V"};

constexpr const char* kSeeItsEnd =
    "scontrol show config | grep -q 'proctrack/cgroup' || exit; "
    "while ! { rest=$(squeue -h -j \"$1\" -o %T) && [ -z \"$rest\" ]; }; do sleep 1; done "
    "2> /dev/null; echo over";

/// The controller may be away for a while, and is then queried repeatedly.
constexpr const char* kTell =
    "left=$(timeout 8 squeue -h -j \"$SLURM_JOB_ID\" -o %L); "
    "echo \"${SLURM_JOB_ID:-0}\" \"${left:-UNLIMITED}\" $(scontrol show hostnames)";

constexpr const char* kAndHold = "; exec cat > /dev/null";

constexpr const char* kAskAndHold =
    "exec 3<&0; salloc \"$@\" <&3 3<&- & held=$!; "
    "ended() { exec 3<&- < /dev/null > /dev/null; sleep 1; "
    "kill -TERM $held; sleep 2; kill -KILL $held; exit 1; }; "
    "trap ended TERM; exec < /dev/null 3<&-; wait $held";

}  // namespace

bool inside_slurm() { return sys::variable(kNodeList).has_value(); }

Result<run::GrantedNodes> slurm_nodes() {
  if (!inside_slurm()) {
    return std::unexpected(
        Error{fmt::format("'{}' means the nodes of a Slurm allocation, and trainyard runs in none; "
                          "to request one, type trainyard run --slurm '--nodes=2 --time=8:00:00' "
                          "..., or salloc -N2 trainyard run --on {} ...",
                          kSlurm, kSlurm)});
  }
  const Result<sys::HelperOutput> shown =
      sys::run_helper({.arguments = {"/bin/sh", "-c", kTell}, .directory = "/"});
  if (!shown) return std::unexpected(Error(shown.error()).in("the nodes of the allocation"));
  const std::size_t end = std::min(shown->text.find('\n'), shown->text.size());
  Result<run::GrantedNodes> nodes = run::granted_nodes(shown->text.substr(0, end));
  if (nodes) return nodes;
  return std::unexpected(Error{
      fmt::format("'scontrol show hostnames' printed no node of {}", *sys::variable(kNodeList))});
}

/// Without its own limit, so that the step has all that the allocation has there.
std::vector<std::string> words_of_srun(const std::string& node, const std::string& allocation) {
  std::vector<std::string> words{"srun",    "--overlap",       "--nodes=1",         "--ntasks=1",
                                 "--mem=0", "--cpu-bind=none", "--nodelist=" + node};
  if (!allocation.empty()) words.push_back("--jobid=" + allocation);
  return words;
}

/// A shell starts salloc: a salloc that gets SIGTERM while its program exits may loop for ever
/// without a pause (22.05). So the shell sends SIGTERM only a moment after the input of salloc has
/// ended, which is enough if salloc holds an allocation, and SIGKILL after that.
Result<std::vector<std::string>> words_of_salloc(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    if (std::ranges::find(kHoldNothing, option) != kHoldNothing.end()) {
      return std::unexpected(Error{fmt::format(
          "slurm.options: with '{}', salloc keeps no nodes; write a request, as in '--nodes=2 "
          "--time=8:00:00'",
          option)});
    }
    if (option.find_first_of("\"'") == std::string::npos) continue;
    return std::unexpected(Error{fmt::format(
        "slurm.options: {}: options are split at spaces, and cannot have quotes", option)});
  }
  std::vector<std::string> words{
      "/bin/sh", "-c", kAskAndHold, "sh", "--job-name=trainyard", "--kill-command=TERM"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"/bin/sh", "-c", std::string(kTell) + kAndHold});
  return words;
}

/// A command that prints "over" when the allocation has ended. An error of Slurm does not mean that
/// it has ended.
std::vector<std::string> words_that_see_its_end(const std::string& allocation) {
  return {"/bin/sh", "-c", kSeeItsEnd, "sh", allocation};
}

}  // namespace trainyard::cli
