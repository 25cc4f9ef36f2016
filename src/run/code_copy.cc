#include "run/code_copy.h"

#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/path_name.h"
#include "run/run_directory.h"
#include "sys/files.h"

namespace trainyard::run {
namespace {

constexpr Bytes kRecordMax = kib(64);

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

Result<std::optional<CodeCopy>> code_copy_of(const std::string& run_directory) {
  const std::string real = real_directory(run_directory);
  const std::string path = code_copy_path(real);
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  Result<std::optional<std::string>> record =
      sys::read_plain_file(code_record_path(real), kRecordMax);
  if (!record) return std::unexpected(std::move(record.error()));
  const std::optional<std::string>& root = *record;
  if (!root) {
    if (!is_there) return std::nullopt;
    return std::unexpected(Error{fmt::format(
        "the copy of the code in '{}' is incomplete: start a new run with --snapshot", path)});
  }
  if (!is_there) {
    return std::unexpected(
        Error{fmt::format("the copy of the code that this run works in, '{}', is gone", path)});
  }
  // A run that lies in its work tree is moved with it.
  return CodeCopy{.root = absolute_path(*root, real), .path = path};
}

Result<void> keep_code_copy(const std::string& run_directory, const std::string& root) {
  const std::string real = real_directory(run_directory);
  const std::string said =
      lies_in(real, root) ? std::filesystem::path(root).lexically_relative(real).string() : root;
  return sys::write_file_atomically(code_record_path(real), said);
}

void drop_code_copy(const std::string& run_directory) {
  std::error_code ignored;
  std::filesystem::remove(code_record_path(run_directory), ignored);
  std::filesystem::remove_all(code_copy_path(run_directory), ignored);
}

}  // namespace trainyard::run
