#include "run/code_copy.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/path_name.h"
#include "process/work_tree.h"
#include "run/run_directory.h"
#include "sys/copy_file.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

constexpr Bytes kRecordMax = kib(64);

namespace stdfs = std::filesystem;

/// Repositories lie in each other so deep.
constexpr int kDepthMax = 8;

Error cannot(std::string_view what, const std::string& path, const std::error_code& why) {
  return Error{fmt::format("cannot {} '{}': {}", what, path, why.message())};
}

Result<void> make_directory(const std::string& path) {
  std::error_code error;
  stdfs::create_directories(path, error);
  if (error) return std::unexpected(cannot("make the directory", path, error));
  return {};
}

Result<void> make_link(const std::string& target, const std::string& path) {
  std::error_code error;
  stdfs::create_symlink(target, path, error);
  if (error) return std::unexpected(cannot("make the link", path, error));
  return {};
}

std::string parent_of(const std::string& path) { return stdfs::path(path).parent_path().string(); }

bool is_made_by_python(const std::string& path) {
  return stdfs::path(path).filename() == "__pycache__" || path.ends_with(".pyc");
}

/// The state of the whole copy, which the repositories in a work tree share.
struct CopyContext {
  const CodeCopying& copying;
  std::string run_directory;  ///< Without links on the way.
  std::string root;           ///< The root of the outermost work tree.
  std::size_t files = 0;      ///< Number of files that have been copied.
};

/// Copies one work tree, without the repositories in it.
class TreeCopier {
 public:
  TreeCopier(CopyContext& context, process::WorkTree tree, std::string target)
      : context_(context), tree_(std::move(tree)), target_(std::move(target)) {}

  Result<void> copy(int depth);

 private:
  [[nodiscard]] std::string source(const std::string& name) const {
    return tree_.root + "/" + name;
  }
  [[nodiscard]] std::string target(const std::string& name) const { return target_ + "/" + name; }
  enum class Kind : std::uint8_t { Known, Unknown };

  [[nodiscard]] Result<void> make_git_directory() const;
  Result<void> copy_entry(const std::string& name, Kind kind);
  Result<void> copy_link(const std::string& name, Kind kind);
  Result<void> copy_nested(const std::string& name, int depth);
  Result<void> link_original(const std::string& name);
  Result<void> make_parent(const std::string& name);
  bool has_real_parent(const std::string& name);
  std::optional<std::string> run_above(const std::string& name);
  [[nodiscard]] bool holds_copies(const std::string& path) const;

  CopyContext& context_;
  process::WorkTree tree_;
  std::string target_;
  std::set<std::string> made_;                 ///< Directories of the copy, by their names.
  std::map<std::string, bool> real_;           ///< Directories of the original, as they stand.
  std::map<std::string, bool> runs_;           ///< Those of runs among them.
  std::vector<std::string> links_made_whole_;  ///< Links that git knows, and that say another path.
};

/// Its commits are those of the original; what is checked out, and which files are known, is its
/// own. git takes it for one of several work trees, and no list of them has it.
Result<void> TreeCopier::make_git_directory() const {
  const std::string directory = target(".git");
  // Some programs look for these before they call it a repository.
  for (const std::string_view name : {"objects", "refs"}) {
    Result<void> made = make_directory(fmt::format("{}/{}", directory, name));
    if (!made) return made;
  }
  // A directory inside the work tree is moved with it.
  const bool near =
      lies_in(tree_.common_directory, context_.root) && lies_in(directory, context_.root);
  const std::string common =
      near ? stdfs::path(tree_.common_directory).lexically_relative(directory).string()
           : tree_.common_directory;
  for (const auto& [name, text] : {std::pair{"HEAD", &tree_.commit}, {"commondir", &common}}) {
    Result<void> written = sys::replace_file(fmt::format("{}/{}", directory, name), *text + "\n");
    if (!written) return written;
  }
  std::vector<sys::FileCopy> copies{{.from = tree_.index, .to = directory + "/index"}};
  for (const std::string& name : sys::names_in(tree_.git_directory)) {
    if (!name.starts_with("sharedindex.")) continue;
    copies.push_back({.from = fmt::format("{}/{}", tree_.git_directory, name),
                      .to = fmt::format("{}/{}", directory, name)});
  }
  for (const sys::FileCopy& copy : copies) {
    const Result<bool> copied = sys::copy_file(copy);
    if (!copied) return std::unexpected(copied.error());
  }
  return {};
}

Result<void> TreeCopier::copy(int depth) {
  Result<process::TreeFiles> files = process::files_of(tree_);
  if (!files) return std::unexpected(std::move(files.error()));
  if (Result<void> made = make_git_directory(); !made) return made;
  std::set<std::string> linked;
  for (const std::string& name : files->ignored) linked.insert(run_above(name).value_or(name));
  for (const std::string& name : files->unknown) {
    if (const auto run = run_above(name)) {
      linked.insert(*run);
      continue;
    }
    if (Result<void> copied = copy_entry(name, Kind::Unknown); !copied) return copied;
  }
  for (const std::string& name : files->known) {
    if (Result<void> copied = copy_entry(name, Kind::Known); !copied) return copied;
  }
  for (const std::string& name : files->nested) {
    if (const auto run = run_above(name)) {
      linked.insert(*run);
      continue;
    }
    if (Result<void> copied = copy_nested(name, depth); !copied) return copied;
  }
  for (const std::string& name : linked) {
    if (Result<void> made = link_original(name); !made) return made;
  }
  process::refresh_index(target_, links_made_whole_);
  return {};
}

Result<void> TreeCopier::make_parent(const std::string& name) {
  const std::string parent = parent_of(name);
  if (parent.empty() || made_.contains(parent)) return {};
  Result<void> made = make_directory(target(parent));
  if (made) made_.insert(parent);
  return made;
}

/// True if no directory of the path is a link: a file that git knows below a link is gone.
bool TreeCopier::has_real_parent(const std::string& name) {
  const std::string parent = parent_of(name);
  if (parent.empty()) return true;
  const auto [known, is_new] = real_.emplace(parent, false);
  if (!is_new) return known->second;
  std::error_code error;
  const bool real =
      has_real_parent(parent) && stdfs::is_directory(stdfs::symlink_status(source(parent), error));
  return real_[parent] = real;
}

/// The directory of a run in which something lies that git does not know.
std::optional<std::string> TreeCopier::run_above(const std::string& name) {
  const std::string parent = parent_of(name);
  if (parent.empty()) return std::nullopt;
  if (auto above = run_above(parent)) return above;
  const auto [known, is_new] = runs_.emplace(parent, false);
  if (is_new) {
    const std::string path = source(parent);
    known->second = path == context_.run_directory || sys::exists(journal_path(path)) ||
                    sys::exists(submission_path(path));
  }
  return known->second ? std::optional(parent) : std::nullopt;
}

/// A file that does not exist has been deleted, or is a pipe, which git does not know either.
Result<void> TreeCopier::copy_entry(const std::string& name, Kind kind) {
  if (context_.copying.is_given_up()) return std::unexpected(Error{"given up"});
  if (!has_real_parent(name)) return {};
  std::error_code error;
  const stdfs::file_status status = stdfs::symlink_status(source(name), error);
  if (stdfs::is_symlink(status)) return copy_link(name, kind);
  if (!stdfs::is_regular_file(status)) return {};
  if (Result<void> made = make_parent(name); !made) return made;
  const Result<bool> copied = sys::copy_file({.from = source(name), .to = target(name)});
  if (!copied) return std::unexpected(copied.error());
  ++context_.files;
  context_.copying.tell(context_.files);
  return {};
}

/// A link within the work tree leads to the same place of the copy, and any other where it led.
/// A link that needs another path for that does not count as changed.
Result<void> TreeCopier::copy_link(const std::string& name, Kind kind) {
  std::error_code error;
  const stdfs::path led = stdfs::read_symlink(source(name), error);
  if (error) return std::unexpected(cannot("read the link", source(name), error));
  const stdfs::path from = stdfs::path(name).parent_path();
  const std::string whole =
      (stdfs::path(source(name)).parent_path() / led).lexically_normal().string();
  const bool stays = lies_in(whole, tree_.root);
  if (!stays && holds_copies(source(name))) return link_original(name);
  if (Result<void> made = make_parent(name); !made) return made;
  // By dots it may go out and come back.
  const stdfs::path within = (from / led).lexically_normal();
  const bool never_leaves = led.is_relative() && (within.empty() || *within.begin() != "..");
  if (never_leaves || (!stays && led.is_absolute())) return make_link(led.string(), target(name));
  if (kind == Kind::Known) links_made_whole_.push_back(name);
  if (!stays) return make_link(whole, target(name));
  const stdfs::path inside = stdfs::path(whole).lexically_relative(tree_.root);
  return make_link(inside.lexically_relative(from.empty() ? "." : from).string(), target(name));
}

Result<void> TreeCopier::copy_nested(const std::string& name, int depth) {
  if (context_.copying.is_given_up()) return std::unexpected(Error{"given up"});
  if (!has_real_parent(name)) return {};
  std::error_code error;
  const std::string path = source(name);
  if (!stdfs::is_directory(stdfs::symlink_status(path, error))) return {};
  if (Result<void> made = make_directory(target(name)); !made) return made;
  // A submodule that is not checked out.
  if (!sys::exists(path + "/.git")) return {};
  if (depth >= kDepthMax) {
    return std::unexpected(
        Error{fmt::format("'{}' is a repository within more than {} others", path, kDepthMax)});
  }
  Result<process::WorkTree> tree = process::find_work_tree(path);
  if (!tree) return std::unexpected(std::move(tree.error()));
  return TreeCopier(context_, *std::move(tree), target(name)).copy(depth + 1);
}

/// True if the path contains this copy or the copy of another run: following links would never end.
bool TreeCopier::holds_copies(const std::string& path) const {
  const std::string real = real_directory(path);
  return lies_in(context_.run_directory, real) || sys::exists(code_copy_path(real));
}

/// The original, in its place; of a directory that holds copies of code, or of which something has
/// been copied, what else is in it.
Result<void> TreeCopier::link_original(const std::string& name) {
  if (context_.copying.is_given_up()) return std::unexpected(Error{"given up"});
  const std::string path = source(name);
  if (is_made_by_python(name) || real_directory(path) == context_.run_directory) return {};
  if (Result<void> made = make_parent(name); !made) return made;
  std::error_code error;
  const stdfs::file_status there = stdfs::symlink_status(target(name), error);
  if (stdfs::exists(there) && !stdfs::is_directory(there)) return {};
  if (!stdfs::exists(there) && !holds_copies(path)) return make_link(path, target(name));
  if (Result<void> made = make_directory(target(name)); !made) return made;
  for (const std::string& below : sys::names_in(path)) {
    if (below == kCodeCopy) continue;
    if (Result<void> made = link_original(fmt::format("{}/{}", name, below)); !made) return made;
  }
  return {};
}

/// Records that there is a whole copy.
Result<void> keep_code_copy(const std::string& run_directory, const std::string& root) {
  const std::string real = real_directory(run_directory);
  const std::string said =
      lies_in(real, root) ? std::filesystem::path(root).lexically_relative(real).string() : root;
  return sys::write_file_atomically(code_record_path(real), said);
}

/// Whether there is a copy, whole or not. A task may put anything else at its path.
bool has_begun_copy(const std::string& path) {
  std::error_code ignored;
  return stdfs::is_directory(stdfs::symlink_status(path, ignored)) &&
         stdfs::is_directory(stdfs::symlink_status(path + "/.git", ignored));
}

}  // namespace

std::string code_copy_path(const std::string& run_directory) {
  return fmt::format("{}/{}", run_directory, kCodeCopy);
}

std::string code_record_path(const std::string& run_directory) {
  return run_directory + "/trainyard.code-of";
}

std::string CodeCopy::place_of(const std::string& directory) const {
  const std::string real = real_directory(directory);
  const std::string run_directory = std::filesystem::path(path).parent_path().string();
  if (!lies_in(real, root) || lies_in(real, run_directory)) return directory;
  return path + real.substr(root.size());
}

std::optional<std::string> CodeCopy::reason_to_refuse() const {
  std::error_code ignored;
  if (!stdfs::is_symlink(path, ignored)) return std::nullopt;
  return fmt::format(
      "the copy of the code that this run works in, '{}', was replaced by a symbolic link", path);
}

Result<std::optional<CodeCopy>> code_copy_of(const std::string& run_directory) {
  const std::string real = real_directory(run_directory);
  const std::string path = code_copy_path(real);
  const std::string record = code_record_path(real);
  const auto refused = [&record](std::string_view why) {
    return std::unexpected(Error{
        fmt::format("{}; to run the tasks in the work tree itself, remove '{}'", why, record)});
  };
  const Result<std::optional<std::string>> root =
      sys::read_plain_file(record, kRecordMax, sys::Links::Refuse);
  if (!root) return refused(root.error().message);
  if (!*root) {
    if (!has_begun_copy(path)) return std::nullopt;
    return std::unexpected(Error{
        fmt::format("the copy of the code in '{}' is incomplete: start a new run with --snapshot, "
                    "or remove it to run the tasks in the work tree itself",
                    path)});
  }
  // A run that lies in its work tree is moved with it.
  CodeCopy copy{.root = absolute_path(**root, real), .path = path};
  if (const auto reason = copy.reason_to_refuse()) return refused(*reason);
  if (!sys::exists(path)) {
    return refused(fmt::format("the copy of the code that this run works in, '{}', is gone", path));
  }
  return copy;
}

void drop_code_copy(const std::string& run_directory) {
  std::error_code ignored;
  std::filesystem::remove(code_record_path(run_directory), ignored);
  std::filesystem::remove_all(code_copy_path(run_directory), ignored);
}

Result<CodeCopy> copy_code(const CodeCopying& copying) {
  Result<process::WorkTree> tree = process::find_work_tree(copying.directory);
  if (!tree) return std::unexpected(std::move(tree.error()));
  const std::string run_directory = real_directory(copying.run_directory);
  CodeCopy copy{.root = tree->root, .path = code_copy_path(run_directory)};
  drop_code_copy(run_directory);
  CopyContext context{.copying = copying, .run_directory = run_directory, .root = tree->root};
  // An incomplete copy is known by its '.git', see has_begun_copy().
  Result<void> made = make_directory(copy.path + "/.git");
  if (made) made = TreeCopier(context, *std::move(tree), copy.path).copy(0);
  if (made && copying.is_given_up()) made = std::unexpected(Error{"given up"});
  if (made) made = keep_code_copy(run_directory, copy.root);
  if (made) return copy;
  drop_code_copy(run_directory);
  return std::unexpected(std::move(made.error()));
}

}  // namespace trainyard::run
