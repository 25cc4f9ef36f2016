// The frameworks that a command's Python would import, read from the files next to it: nothing is
// run, and nothing imported.
//
// Knows virtual environments, conda, Debian's Python and a user's own packages. A launcher that is
// no Python and whose shebang names none (uv, a pyenv shim) has none.
//
// Reads files. Any thread. About 20 system calls.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::hardware {

/// The surroundings in which a program and its packages are searched.
struct PythonSurroundings {
  std::string path;               ///< PATH; empty: where the system has its programs.
  std::string home;               ///< HOME; empty: there are no packages of the user's own.
  std::string python_path;        ///< PYTHONPATH
  bool user_packages = true;      ///< PYTHONNOUSERSITE is not set.
  std::string working_directory;  ///< Absolute: what a relative program means.
};

/// The Python that a program is, or that its shebang names, as a path that is not resolved: a
/// virtual environment is found by it. Nothing: it is none.
std::optional<std::string> find_python(std::string_view program, const PythonSurroundings& around);

/// Whether it is a script with a shebang, of whatever language.
bool is_script(std::string_view program, const PythonSurroundings& around);

/// Where it looks for packages, first those that count first.
std::vector<std::string> package_directories(const std::string& python,
                                             const PythonSurroundings& around);

/// The release of the first torch or jaxlib in these directories, from torch/version.py or jaxlib's
/// metadata. Nothing if no directory has it, or if no release is written there.
std::optional<std::string> release_of_torch(const std::vector<std::string>& directories);
std::optional<std::string> release_of_jaxlib(const std::vector<std::string>& directories);

/// The version in the text of a file: __version__ = '2.10.0+cu128'. Nothing unless the version is
/// one plain string.
std::optional<std::string> written_release(std::string_view text);

/// Whether a release is at least this one: "2.10.0+cu128" is at least 2.10. One from before a
/// release (2.10.0a0, 2.10.0rc1, 2.10.0.dev) is not at least that, but
/// one from before a later one is (2.10.1.dev).
bool is_at_least(std::string_view release, int major, int minor);

}  // namespace trainyard::hardware
