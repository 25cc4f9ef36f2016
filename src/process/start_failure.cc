#include "process/start_failure.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "base/path_name.h"
#include "sys/descriptor.h"
#include "sys/files.h"
#include "sys/open_file.h"

namespace trainyard::process {
namespace {

constexpr Bytes kScriptMax = mib(1);
constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";
/// Programs that a mistyped name may mean. Many systems have no 'python', only 'python3'. Among all
/// programs on PATH one would be near to almost every name.
constexpr std::array<std::string_view, 6> kUsualPrograms{"python",   "python3",    "bash",
                                                         "torchrun", "accelerate", "deepspeed"};

bool is_program(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Words of a shell that a user may put first in a list. `module` is a function of the login shell.
constexpr std::array<std::string_view, 11> kShellWords{
    ".", "alias", "cd", "eval", "exec", "export", "if", "module", "set", "source", "ulimit"};

/// True if the first word of a list is one that only a shell understands: "python3 fit.py", "LR=1"
/// and "cd". A path may have blanks itself.
bool is_for_shell(std::string_view name, const std::string& directory) {
  // A file with the name of any other word may be meant.
  if (name != "." && is_there(absolute_path(std::string(name), directory))) return false;
  if (std::ranges::find(kShellWords, name) != kShellWords.end()) return true;
  constexpr std::string_view kOfVariables =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const std::size_t sign = name.find_first_not_of(kOfVariables);
  if (sign != std::string_view::npos && sign > 0 && name[sign] == '=') return true;
  const std::string program(name.substr(0, name.find(' ')));
  return program.size() < name.size() && !program.empty() &&
         (!program.contains('/') || is_there(absolute_path(program, directory)));
}

/// True if the first line of a script ends in CR LF: the kernel takes the CR for a part of the
/// interpreter's name.
bool has_windows_line_end(const std::string& path) {
  const auto text = sys::read_plain_file(path, kScriptMax);
  return text && *text && (**text).starts_with("#!") &&
         std::string_view(**text).substr(0, (**text).find('\n')).ends_with('\r');
}

/// The command that runs a file, which must exist, in the directory of the task.
std::string command_for(const std::string& name, const std::string& file) {
  const bool is_python = std::filesystem::path(name).extension() == ".py";
  const bool runs_alone = ::access(file.c_str(), X_OK) == 0 && !is_python_for_shell(file);
  return (is_python && !runs_alone ? "python3 " : "./") + name;
}

/// Suggests what would make an existing file run. Empty if it is executable.
std::string hint_for(const std::string& name, const std::string& file) {
  if (::access(file.c_str(), X_OK) == 0) return "";
  const std::string extension = std::filesystem::path(name).extension().string();
  // Made executable, such a script would run in bash.
  if (is_python_for_shell(file)) return fmt::format("; try 'python3 {}'", name);
  std::string hint = fmt::format("; is it executable? try 'chmod +x {}'", name);
  if (extension == ".py") hint += fmt::format(" or 'python3 {}'", name);
  if (extension == ".sh") hint += fmt::format(" or 'sh {}'", name);
  return hint;
}

Error no_process(const std::string& name, int error) {
  const std::string cannot = fmt::format("cannot run '{}'", name);
  if (error != EAGAIN) return sys::system_error(cannot, error);
  return Error{cannot +
               ": no more processes are allowed (see 'ulimit -u' and the cgroup's pids.max)"};
}

/// The kernel only says that something on the way to the program did not work.
Error explain_program(const model::Launch& launch, std::span<const std::string> places, int error) {
  const std::string& name = launch.arguments[0];
  const std::string& directory = launch.working_directory;
  const std::string cannot = fmt::format("cannot run '{}'", name);
  const auto seen = [&directory](const std::string& place) {
    return absolute_path(place, directory);
  };
  const auto found = std::ranges::find_if(
      places, [&](const std::string& place) { return is_program(seen(place)); });
  if (found == places.end() && is_for_shell(name, directory)) {
    return Error{cannot +
                 ": program not found; write the whole command as one string, which bash runs"};
  }
  if (name.starts_with('~') && !is_there(seen(name))) {
    return Error{fmt::format("{}: {}", cannot, kTildeWithoutShell)};
  }
  if (!name.contains('/') && found == places.end()) {
    std::vector<std::string_view> others;
    for (const std::string_view other : kUsualPrograms) {
      const bool is_on_path = std::ranges::any_of(places, [&](const std::string& place) {
        return is_program(seen(std::filesystem::path(place).replace_filename(other).string()));
      });
      if (is_on_path) others.push_back(other);
    }
    const std::string meant = is_there(seen(name))
                                  ? command_for(name, seen(name))
                                  : std::string(nearest(name, others).value_or(""));
    return Error{fmt::format("{}: program not found on PATH{}", cannot,
                             meant.empty() ? "; install it, or write its full path"
                                           : fmt::format(" (did you mean '{}'?)", meant))};
  }
  const std::string here = seen(found == places.end() ? name : *found);
  std::error_code ignored;
  if (std::filesystem::is_directory(here, ignored)) return Error{cannot + ": it is a directory"};
  switch (error) {
    case EACCES:
      return Error{fmt::format("{}: permission denied{}", cannot, hint_for(name, here))};
    case ENOENT:
      if (!is_there(here)) break;
      if (has_windows_line_end(here)) {
        return Error{fmt::format(
            "{}: its first line ends in CR (a Windows line end); try 'sed -i \"s/\\r$//\" {}'",
            cannot, here)};
      }
      return Error{cannot + ": the interpreter in its first line was not found"};
    case ENOEXEC:
      if (is_python_for_shell(here)) {
        return Error{
            fmt::format("{0}: its first line is not '#!/usr/bin/env python3'; try 'python3 {1}'",
                        cannot, name)};
      }
      return Error{cannot + ": exec format error; does it start with a line like '#!/bin/sh'?"};
    case E2BIG:
      return Error{cannot + ": its arguments and environment are too long for the system"};
    default:
      break;
  }
  return no_process(name, error);
}

/// True if the disk of a file, which need not exist, has no room for one more file.
bool has_no_inodes(const std::string& path) {
  std::string place = path;
  struct statvfs disk{};
  while (::statvfs(place.c_str(), &disk) != 0) {
    const std::size_t slash = place.rfind('/');
    if (slash == std::string::npos || slash == 0) return false;
    place.resize(slash);
  }
  // Some file systems do not count inodes, and report 0 of 0.
  return disk.f_files > 0 && disk.f_favail == 0;
}

Error with_file(std::string_view cannot, const std::string& path, int error) {
  if (error == StartFailure::kNotPlain) {
    return Error{fmt::format("{} '{}': a pipe, a link or a device is in its place; remove it",
                             cannot, path)};
  }
  if (error == StartFailure::kSecondName) {
    return Error{
        fmt::format("{} '{}': it has a second name (a hard link); remove it", cannot, path)};
  }
  // "No space left on device" alone would send the user to look for large files.
  if (error == ENOSPC && has_no_inodes(path)) {
    return Error{fmt::format("{} '{}': no inodes left on its disk", cannot, path)};
  }
  return sys::system_error(fmt::format("{} '{}'", cannot, path), error);
}

Error in_words(const model::Launch& launch, std::span<const std::string> places,
               const StartFailure& failure) {
  switch (failure.step) {
    case StartStep::Process:
      return no_process(launch.arguments[0], failure.error);
    case StartStep::Group:
      return with_file("cannot join the control group", launch.memory_group, failure.error);
    case StartStep::Directory:
      if (failure.error == StartFailure::kNotPlain) {
        // Its error names the link, unless that has just been removed.
        const auto directory =
            sys::open_directory(launch.task_directory, launch.followed_directory());
        if (!directory) return directory.error().error;
      }
      return with_file("cannot make the directory", launch.directory_to_make(), failure.error);
    case StartStep::OldResult:
      return with_file(
          "cannot remove the old",
          launch.result_copy_path.empty() ? launch.result_path : launch.result_copy_path,
          failure.error);
    case StartStep::Stdout:
      return with_file("cannot write", launch.stdout_path, failure.error);
    case StartStep::Stderr:
      return with_file("cannot write", launch.stderr_path, failure.error);
    case StartStep::WorkingDirectory:
      return with_file("cannot enter the directory",
                       launch.forked ? launch.task_directory : launch.working_directory,
                       failure.error);
    case StartStep::Program:
      break;
  }
  return explain_program(launch, places, failure.error);
}

}  // namespace

std::vector<std::string> places_of_program(const std::string& name,
                                           std::span<const char* const> environment) {
  if (name.contains('/')) return {name};
  std::string_view path = kUsualPath;
  for (const char* const entry : environment) {
    if (entry == nullptr) continue;
    const std::string_view text = entry;
    if (text.starts_with("PATH=")) path = text.substr(5);
  }
  std::vector<std::string> places;
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view place = path.substr(0, colon);
    places.push_back(fmt::format("{}/{}", place.empty() ? "." : place, name));
    if (colon == std::string_view::npos) return places;
    path.remove_prefix(colon + 1);
  }
}

bool is_python_for_shell(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".py") return false;
  const auto text = sys::read_plain_file(path, kScriptMax);
  return text && *text && !(*text)->starts_with("#!");
}

Error explain(const model::Launch& launch, std::span<const std::string> places,
              const StartFailure& failure) {
  Error error = in_words(launch, places, failure);
  error.of_machine = sys::is_of_machine(failure.error);
  return error;
}

model::NotStarted not_started(Error error) {
  return {.why = std::move(error.message), .of_machine = error.of_machine};
}

}  // namespace trainyard::process
