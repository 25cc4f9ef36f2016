#include "process/work_tree.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/path_name.h"
#include "base/time.h"
#include "sys/files.h"
#include "sys/helper_command.h"

namespace trainyard::process {
namespace {

using Words = std::vector<std::string>;

constexpr Bytes kNamesMax = mib(256);
constexpr Duration kGitTakesMax{600'000};
constexpr std::string_view kSubmodule = "160000 ";

/// The words of a git command that must not start a process that watches files, nor create lock
/// files in the directory.
Words with_git(std::initializer_list<std::string_view> before, const Words& words) {
  Words arguments(before.begin(), before.end());
  arguments.insert(arguments.end(), {"-c", "core.fsmonitor=false", "--no-optional-locks"});
  arguments.insert(arguments.end(), words.begin(), words.end());
  return arguments;
}

/// The first line of what git says is wrong; empty: nothing of use.
std::string complaint_of(const Words& words, const std::string& directory) {
  const auto output = sys::run_helper(
      {.arguments = with_git({"sh", "-c", "exec git \"$@\" 2>&1 >/dev/null", "git"}, words),
       .directory = directory});
  if (!output || output->exit_code == 0) return {};
  return output->text.substr(0, output->text.find('\n'));
}

Result<std::string> ask_git(const Words& words, const std::string& directory) {
  auto output = sys::run_helper({.arguments = with_git({"git"}, words),
                                 .directory = directory,
                                 .output_max = kNamesMax,
                                 .deadline = kGitTakesMax});
  if (!output) return std::unexpected(std::move(output.error()));
  if (output->cut) {
    return std::unexpected(Error{fmt::format("'{}' has more than {} MB of names of files",
                                             directory, kNamesMax.count >> 20)});
  }
  if (output->exit_code == 0) return std::move(output->text);
  const std::string complaint = complaint_of(words, directory);
  return std::unexpected(
      Error{complaint.empty() ? fmt::format("git says nothing of '{}'", directory) : complaint});
}

/// A path that git prints, in a line of its own: it may have line ends itself.
Result<std::string> ask_path(const Words& words, const std::string& directory) {
  Result<std::string> text = ask_git(words, directory);
  if (!text) return text;
  if (text->ends_with('\n')) text->pop_back();
  std::error_code error;
  const std::string path = absolute_path(*text, directory);
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

/// The pieces of a text, each of which ends with a zero byte.
Words pieces_of(std::string_view text) {
  Words pieces;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\0'), text.size() - 1);
    pieces.emplace_back(text.substr(0, text[length] == '\0' ? length : length + 1));
    text.remove_prefix(length + 1);
  }
  return pieces;
}

/// Adds what git knows: "<mode> <hash> <stage>\t<name>", of a conflict once for each side.
void add_known(const std::string& listed, TreeFiles& files) {
  for (std::string& piece : pieces_of(listed)) {
    const std::size_t tab = piece.find('\t');
    if (tab == std::string::npos) continue;
    Words& list = piece.starts_with(kSubmodule) ? files.nested : files.known;
    std::string name = piece.substr(tab + 1);
    if (list.empty() || list.back() != name) list.push_back(std::move(name));
  }
}

}  // namespace

Result<WorkTree> find_work_tree(const std::string& directory) {
  WorkTree tree;
  const Result<std::string> root = ask_path({"rev-parse", "--show-toplevel"}, directory);
  if (!root) {
    return std::unexpected(Error{
        fmt::format("'{}' is not in a work tree of git: {}", directory, root.error().message)});
  }
  tree.root = *root;
  Result<std::string> commit =
      ask_git({"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}, tree.root);
  if (!commit) {
    return std::unexpected(Error{fmt::format(
        "the git repository in '{}' has no commit yet: 'git commit' makes its first", tree.root)});
  }
  tree.commit = commit->substr(0, commit->find('\n'));
  for (const auto& [member, words] :
       {std::pair{&tree.git_directory, Words{"rev-parse", "--git-dir"}},
        std::pair{&tree.common_directory, Words{"rev-parse", "--git-common-dir"}},
        std::pair{&tree.index, Words{"rev-parse", "--git-path", "index"}}}) {
    Result<std::string> path = ask_path(words, tree.root);
    if (!path) return std::unexpected(std::move(path.error()));
    *member = *std::move(path);
  }
  return tree;
}

Result<TreeFiles> files_of(const WorkTree& tree) {
  const Result<std::string> known = ask_git({"ls-files", "-z", "--stage"}, tree.root);
  if (!known) return std::unexpected(known.error());
  const Result<std::string> unknown =
      ask_git({"ls-files", "-z", "--others", "--exclude-standard"}, tree.root);
  if (!unknown) return std::unexpected(unknown.error());
  const Result<std::string> ignored = ask_git(
      {"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}, tree.root);
  if (!ignored) return std::unexpected(ignored.error());
  TreeFiles files;
  add_known(*known, files);
  for (std::string& name : pieces_of(*unknown)) {
    const bool is_repository = name.ends_with('/');
    if (is_repository) name.pop_back();
    (is_repository ? files.nested : files.unknown).push_back(std::move(name));
  }
  for (std::string& name : pieces_of(*ignored)) {
    if (name.ends_with('/')) name.pop_back();
    files.ignored.push_back(std::move(name));
  }
  return files;
}

void refresh_index(const std::string& root, const std::vector<std::string>& unchanged) {
  constexpr std::size_t kAtOnce = 500;
  for (std::size_t i = 0; i < unchanged.size(); i += kAtOnce) {
    Words words{"update-index", "--assume-unchanged", "--"};
    const std::size_t end = std::min(unchanged.size(), i + kAtOnce);
    std::copy(std::next(unchanged.begin(), static_cast<std::ptrdiff_t>(i)),
              std::next(unchanged.begin(), static_cast<std::ptrdiff_t>(end)),
              std::back_inserter(words));
    static_cast<void>(ask_git(words, root));
  }
  // Git reports by its exit code that something has changed.
  static_cast<void>(ask_git({"update-index", "-q", "--refresh"}, root));
}

}  // namespace trainyard::process
