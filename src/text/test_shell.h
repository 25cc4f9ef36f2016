// For tests alone: commands run by the shells that are /bin/sh somewhere, and the values for which
// a careless way of handing them over is known to fail.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "sys/test_directory.h"
#include "text/placeholder.h"

namespace trainyard::text {

/// The shells here that are called sh somewhere: dash, and bash, which is another one by that name.
inline const std::vector<std::string>& shells() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> there;
    for (const char* const path : {"/bin/dash", "/bin/bash"}) {
      if (::access(path, X_OK) == 0) there.emplace_back(path);
    }
    if (there.empty()) there.emplace_back("/bin/sh");
    return there;
  }();
  return found;
}

/// A place to run a command: a dedicated directory with touch, cat, sh and `show`, and no other
/// program that it could find. `show` prints its number of arguments, and the first; it is a
/// program, since a function that a broken command defines may call itself without end.
class ShellRoom {
 public:
  ShellRoom() : directory_(sys::TemporaryDirectory::in_memory()) {
    directory_.make("bin");
    for (const std::string name : {"touch", "cat", "sh"}) {
      check(::symlink(("/bin/" + name).c_str(), (directory_ / ("bin/" + name)).c_str()) == 0,
            "a link");
    }
    directory_.write("bin/show", "#!/bin/sh\nprintf '<%s:%s>' \"$#\" \"$1\"\n");
    check(::chmod((directory_ / "bin/show").c_str(), 0700) == 0, "a program");
  }

  /// The standard output of the command, with "(failed)" after it unless it succeeded.
  std::string run(const std::string& shell, const Template::Command& command) const {
    const std::string output = directory_ / "output";
    const pid_t child = ::fork();
    check(child >= 0, "a process");
    if (child == 0) become(shell, command, output);
    int status = 0;
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
    // The child has not been reaped, so its group is still its own. Processes that it has left
    // behind are killed with it.
    ::kill(-child, SIGKILL);
    ::waitpid(child, &status, 0);
    std::string text = sys::content_of(output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) text += "(failed)";
    return text;
  }

  /// Whether a command has made the file HIT, as only values do; takes it away.
  [[nodiscard]] bool was_hit() const { return ::unlink((directory_ / "HIT").c_str()) == 0; }

 private:
  [[noreturn]] void become(const std::string& shell, const Template::Command& command,
                           const std::string& output) const {
    ::setsid();
    ::alarm(10);
    const rlimit bytes{.rlim_cur = 1U << 16U, .rlim_max = 1U << 16U};
    ::setrlimit(RLIMIT_FSIZE, &bytes);
    const int in = ::open("/dev/null", O_RDWR);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(in >= 0 && out >= 0, "files to read and to write");
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(in, 2);
    std::vector<std::string> variables{"PATH=" + (directory_ / "bin"), "HOME=/home"};
    for (const auto& [name, value] : command.variables) {
      variables.push_back(fmt::format("{}={}", name, value));
    }
    std::vector<char*> environment;
    environment.reserve(variables.size() + 1);
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::string name = "sh";
    std::string option = "-c";
    std::string text = command.text;
    const std::array<char*, 4> arguments{name.data(), option.data(), text.data(), nullptr};
    if (::chdir(directory_.path().c_str()) == 0) {
      ::execve(shell.c_str(), arguments.data(), environment.data());
    }
    ::_exit(127);
  }

  sys::TemporaryDirectory directory_;
};

/// All bytes that a value may have.
inline std::string every_byte() {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

/// Values that run something if they are read as a part of a command, or that change if they are
/// not quoted.
inline const std::vector<std::string>& nasty_values() {
  static const std::vector<std::string> values{"1e-3",
                                               "a b",
                                               "",
                                               "it's",
                                               "\"",
                                               "\\",
                                               "\\\\",
                                               "$HOME",
                                               "a\\",
                                               "*",
                                               "~",
                                               "-n",
                                               "--",
                                               "-c",
                                               "'\"'",
                                               "#x",
                                               "!",
                                               "{v}",
                                               "ä€",
                                               "\\'",
                                               "\\`",
                                               "\\$",
                                               "x\ty",
                                               "''",
                                               "a=b",
                                               "%s",
                                               "\\n",
                                               "[a]",
                                               "?",
                                               "$",
                                               "`",
                                               "a'b\"c\\d$e`f",
                                               "\n",
                                               " a  b ",
                                               "\t",
                                               "EOF",
                                               "E",
                                               "a\nE\nb",
                                               "\\\n",
                                               "if",
                                               "done",
                                               "$(touch HIT)",
                                               "`touch HIT`",
                                               ";touch HIT;",
                                               "\ntouch HIT\n",
                                               "& touch HIT &",
                                               "| touch HIT",
                                               "'; touch HIT; '",
                                               "\"; touch HIT; \"",
                                               "'\"; touch HIT; \"'",
                                               ")touch HIT",
                                               "}; touch HIT",
                                               "x[$(touch HIT)]",
                                               "a[`touch HIT`]=1",
                                               "$(($(touch HIT)))",
                                               "${x:-$(touch HIT)}",
                                               "E\ntouch HIT\nE",
                                               "EOF\ntouch HIT\nEOF\n",
                                               "touch HIT",
                                               "x=$(touch HIT)",
                                               ">HIT",
                                               "<(touch HIT)",
                                               "\\\n;touch HIT",
                                               "#\ntouch HIT",
                                               "*)touch HIT;;esac",
                                               "]] ; touch HIT ; [[ x",
                                               "$'\\'';touch HIT;'",
                                               "\"$(touch HIT)\"",
                                               "'$(touch HIT)'",
                                               "\xff\xfe",
                                               "\x81\x82\x88",
                                               "\x7f\x01",
                                               every_byte()};
  return values;
}

}  // namespace trainyard::text
