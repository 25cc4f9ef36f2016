#include "hardware/python_packages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <ranges>
#include <system_error>
#include <utility>

#include <sys/types.h>
#include <unistd.h>

#include "sys/descriptor.h"
#include "sys/open_file.h"

namespace trainyard::hardware {
namespace {

namespace dirs = std::filesystem;

/// The most that is read of a file: its first lines have all that matters.
constexpr std::size_t kStartMax = 4'096;
/// Links of a chain of scripts, each with a shebang.
constexpr int kShebangsMax = 4;
constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";

/// The start of a plain file; nothing if there is none.
std::optional<std::string> start_of(const dirs::path& path) {
  const auto file = sys::open_file(path.string(), {.links = sys::Links::Follow});
  if (!file) return std::nullopt;
  std::string text(kStartMax, '\0');
  const ssize_t got = ::read(file->descriptor.get(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

bool has_directory(const dirs::path& path) {
  std::error_code error;
  return dirs::is_directory(path, error);
}

std::vector<std::string> names_in(const dirs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (dirs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_named_python(std::string_view program) {
  return name_of(program).starts_with("python") || name_of(program).starts_with("pypy");
}

std::optional<std::string> find_program(std::string_view program,
                                        const PythonSurroundings& around) {
  const auto runs = [](const std::string& path) {
    std::error_code error;
    return dirs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (program.empty()) return std::nullopt;
  if (program.contains('/')) {
    std::string path = (dirs::path(around.working_directory) / program).string();
    return runs(path) ? std::optional(std::move(path)) : std::nullopt;
  }
  const std::string_view path = around.path.empty() ? kUsualPath : std::string_view(around.path);
  for (const auto& part : path | std::views::split(':')) {
    const dirs::path directory(std::string_view(part.begin(), part.end()));
    std::string found = (dirs::path(around.working_directory) / directory / program).string();
    if (runs(found)) return found;
  }
  return std::nullopt;
}

/// "#!/usr/bin/env -S python3 -u": python3.
std::string_view named_by_shebang(std::string_view script) {
  if (!script.starts_with("#!")) return {};
  script = script.substr(2, std::min(script.find('\n'), script.size()) - 2);
  bool after_env = false;
  for (const auto& part : script | std::views::split(' ')) {
    const std::string_view word(part.begin(), part.end());
    const bool of_env = word.starts_with('-') || word.contains('=');
    if (word.empty() || (after_env && of_env)) continue;
    if (name_of(word) != "env") return word;
    after_env = true;
  }
  return {};
}

/// lib/python3.11 and the like below a directory.
std::vector<dirs::path> libraries_of(const dirs::path& prefix) {
  std::vector<dirs::path> libraries;
  for (const char* const lib : {"lib", "lib64"}) {
    for (const std::string& name : names_in(prefix / lib)) {
      if (name.starts_with("python3.") || name.starts_with("pypy3.")) {
        libraries.push_back(prefix / lib / name);
      }
    }
  }
  return libraries;
}

/// The pyvenv.cfg of the virtual environment that the path of this Python is in.
std::optional<std::string> environment_of(const dirs::path& python) {
  return start_of(python.parent_path().parent_path() / "pyvenv.cfg");
}

/// The value of a line "name = value"; empty where there is none.
std::string_view line_value(std::string_view text, std::string_view name) {
  for (const auto& part : text | std::views::split('\n')) {
    std::string_view line(part.begin(), part.end());
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    const std::size_t start = line.find_first_not_of(" \t=");
    if (start == std::string_view::npos || !line.substr(0, start).contains('=')) continue;
    line.remove_prefix(start);
    return line.substr(0, line.find_last_not_of(" \t\r") + 1);
  }
  return {};
}

/// The package directories of a Python that is in no virtual environment. A name with a version, as
/// python3.11, has the packages of that version.
std::vector<std::string> packages_of_system(const dirs::path& python,
                                            const PythonSurroundings& around) {
  std::error_code error;
  const dirs::path real = dirs::canonical(python, error);
  const dirs::path prefix = (error ? python : real).parent_path().parent_path();
  const std::string release = real.filename().string();
  std::vector<dirs::path> roots{prefix};
  if (prefix == "/usr") roots.emplace_back("/usr/local");
  if (around.user_packages && !around.home.empty()) {
    roots.insert(roots.begin(), dirs::path(around.home) / ".local");
  }
  std::vector<std::string> found;
  for (const dirs::path& root : roots) {
    for (const dirs::path& library : libraries_of(root)) {
      const bool of_other = release.contains('.') && library.filename() != release;
      if (of_other) continue;
      found.push_back((library / "site-packages").string());
      found.push_back((library / "dist-packages").string());
    }
  }
  if (prefix == "/usr") found.emplace_back("/usr/lib/python3/dist-packages");
  return found;
}

}  // namespace

std::optional<std::string> find_python(std::string_view program, const PythonSurroundings& around) {
  std::string name(program);
  for (int i = 0; i < kShebangsMax; ++i) {
    std::optional<std::string> found = find_program(name, around);
    if (!found) return std::nullopt;
    const std::optional<std::string> start = start_of(*found);
    const std::string_view next = start ? named_by_shebang(*start) : std::string_view();
    if (next.empty()) return is_named_python(*found) ? found : std::nullopt;
    name = next;
  }
  return std::nullopt;
}

bool is_script(std::string_view program, const PythonSurroundings& around) {
  const std::optional<std::string> found = find_program(program, around);
  return found && start_of(*found).value_or(std::string()).starts_with("#!");
}

std::vector<std::string> package_directories(const std::string& python,
                                             const PythonSurroundings& around) {
  std::vector<std::string> found;
  for (const auto& part : around.python_path | std::views::split(':')) {
    const dirs::path directory(std::string_view(part.begin(), part.end()));
    if (!directory.empty()) {
      found.push_back((dirs::path(around.working_directory) / directory).string());
    }
  }
  std::vector<std::string> more;
  if (const std::optional<std::string> settings = environment_of(python)) {
    for (const dirs::path& library : libraries_of(dirs::path(python).parent_path().parent_path())) {
      found.push_back((library / "site-packages").string());
    }
    if (line_value(*settings, "include-system-site-packages") == "true") {
      more =
          packages_of_system(dirs::path(line_value(*settings, "home")) / name_of(python), around);
    }
  } else {
    more = packages_of_system(python, around);
  }
  std::ranges::move(more, std::back_inserter(found));
  std::erase_if(found, [](const std::string& path) { return !has_directory(path); });
  return found;
}

std::optional<std::string> release_of_torch(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const dirs::path package = dirs::path(directory) / "torch";
    if (!has_directory(package)) continue;
    const std::optional<std::string> text = start_of(package / "version.py");
    return text ? written_release(*text) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> release_of_jaxlib(const std::vector<std::string>& directories) {
  constexpr std::string_view kBefore = "jaxlib-";
  constexpr std::string_view kBehind = ".dist-info";
  for (const std::string& directory : directories) {
    if (!has_directory(dirs::path(directory) / "jaxlib")) continue;
    for (const std::string& name : names_in(directory)) {
      const bool is_it = name.starts_with(kBefore) && name.ends_with(kBehind) &&
                         name.size() > kBefore.size() + kBehind.size();
      if (is_it) {
        return name.substr(kBefore.size(), name.size() - kBefore.size() - kBehind.size());
      }
    }
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> written_release(std::string_view text) {
  constexpr std::size_t kReleaseMax = 64;
  const std::string_view value = line_value(text, "__version__");
  if (value.size() < 3 || (value.front() != '\'' && value.front() != '"')) return std::nullopt;
  const std::string_view release = value.substr(1, value.find(value.front(), 1) - 1);
  const bool plain = std::ranges::all_of(release, [](char byte) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    return letter || (byte >= '0' && byte <= '9') || byte == '.' || byte == '+' || byte == '-' ||
           byte == '_';
  });
  const bool ends = value.find(value.front(), 1) != std::string_view::npos;
  if (!plain || !ends || release.empty() || release.size() > kReleaseMax) return std::nullopt;
  return std::string(release);
}

bool is_at_least(std::string_view release, int major, int minor) {
  // The part after the plus names the build.
  release = release.substr(0, release.find('+'));
  std::array<int, 2> has{};
  for (int& number : has) {
    const auto read = std::from_chars(release.data(), release.data() + release.size(), number);
    if (read.ec != std::errc{} || number < 0) return false;
    release.remove_prefix(static_cast<std::size_t>(read.ptr - release.data()));
    if (release.starts_with('.')) release.remove_prefix(1);
  }
  int third = 0;
  static_cast<void>(std::from_chars(release.data(), release.data() + release.size(), third));
  const bool before_it = third <= 0 && !std::ranges::all_of(release, [](char byte) {
                           return byte == '.' || (byte >= '0' && byte <= '9');
                         });
  const std::array<int, 2> least{major, minor};
  return before_it ? has > least : has >= least;
}

}  // namespace trainyard::hardware
