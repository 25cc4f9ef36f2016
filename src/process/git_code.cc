#include "process/git_code.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/fingerprint.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/helper_command.h"

namespace trainyard::process {
namespace {

constexpr Bytes kLookedAtMax = mib(16);
constexpr std::size_t kDiffMax = std::size_t{1} << 20;
constexpr Duration kDeadline{5'000};

std::optional<std::string> git(std::vector<std::string> words, const std::string& directory) {
  // Git must not start a process that watches files, nor create lock files in the directory.
  std::vector<std::string> arguments{"git", "-c", "core.fsmonitor=false", "--no-optional-locks"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Result<sys::HelperOutput> output = sys::run_helper({.arguments = std::move(arguments),
                                                      .directory = directory,
                                                      .output_max = kLookedAtMax,
                                                      .deadline = kDeadline});
  // A diff that is too long is ended, and the first of it is kept.
  if (!output || (output->exit_code != 0 && !output->cut)) return std::nullopt;
  return std::move(output->text);
}

/// The difference between a commit and the work tree in the directory. Git makes the diff itself:
/// a configured diff or textconv program may print anything, start programs and wait for input.
std::optional<std::string> diff_from(const std::string& commit, const std::string& directory) {
  return git({"diff", "--no-ext-diff", "--no-textconv", "--no-color", commit, "--"}, directory);
}

/// The value of Code::changes for a diff: its fingerprint, or empty for an empty diff.
std::string hash_of(const std::string& diff) {
  if (diff.empty()) return {};
  Fingerprint changes;
  changes.add(diff);
  return fmt::format("{:016x}", changes.value());
}

}  // namespace

std::optional<FoundCode> find_code(const std::string& directory) {
  const std::optional<std::string> place = git({"rev-parse", "--show-toplevel", "HEAD"}, directory);
  if (!place || !place->ends_with('\n')) return std::nullopt;
  const std::string lines = place->substr(0, place->size() - 1);
  const std::size_t end_of_root = lines.rfind('\n');
  if (end_of_root == std::string::npos) return std::nullopt;
  std::optional<std::string> diff = diff_from("HEAD", directory);
  if (!diff) return std::nullopt;
  FoundCode found{.code = {.root = lines.substr(0, end_of_root),
                           .commit = lines.substr(end_of_root + 1),
                           .changes = hash_of(*diff)},
                  .diff = {}};
  diff->resize(std::min(diff->size(), kDiffMax));
  found.diff = std::move(*diff);
  return found;
}

std::optional<bool> has_changed(const model::Code& code) {
  const std::optional<std::string> diff = diff_from(code.commit, code.root);
  if (!diff) return std::nullopt;
  return hash_of(*diff) != code.changes;
}

}  // namespace trainyard::process
