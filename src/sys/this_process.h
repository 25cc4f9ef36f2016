// This process: its number, its program, and changes to itself: its name, where it prints, when it
// ends, and which program it becomes.
//
// Functions that change it are for the main thread, while there is no other.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::sys {

std::int64_t own_pid();

/// The path of the program that runs, for starting it again as something else. If its file has been
/// replaced or removed, the path is /proc/<own pid>/exe, which works while this process runs.
Result<std::string> own_program();

/// Puts `name` (at most 15 bytes) in the place of the program's name and of its whole command line,
/// which `ps`, `top` and `pkill` show. For a fresh fork that is not the program any more. Returns
/// what the command line was.
std::string rename_process(const std::string& name);
/// Puts a command line back that rename_process() has returned, in that process or a fork of it.
void restore_command_line(const std::string& text);

/// The treatment of a log that is there already.
enum class IfThere : std::uint8_t { Empty, Refuse, Append };

/// A log to be added to. Closed when there is one already that is to be refused. An error where a
/// pipe, a link or a file with a second name is in its place.
Result<Descriptor> open_log(const std::string& path, IfThere if_there);

/// Standard output and standard error go there from now on.
void print_to(const Descriptor& log);

/// This process is killed when its parent has ended. Not when the parent has already.
void end_with_parent();

/// Allows at least `count` open descriptors here from now on. An error says how many the
/// administrator allows.
Result<void> allow_open_files(std::uint64_t count);

/// From now on a file that reaches the limit of its size ('ulimit -f') is an error for what writes
/// it, and no signal ends this process. Programs that it starts or becomes have the default again.
void survive_file_size_limit();

/// The same for what the calling thread writes while this exists, in a program that is not ours. A
/// signal that has come meanwhile is gone; threads that are started meanwhile hold it back as well.
class FileSizeLimitGuard {
 public:
  FileSizeLimitGuard();
  FileSizeLimitGuard(FileSizeLimitGuard&&) = delete;
  FileSizeLimitGuard& operator=(FileSizeLimitGuard&&) = delete;
  ~FileSizeLimitGuard();

 private:
  sigset_t before_{};
};

/// Writes the text to standard error and ends this process, without destructors and what is
/// buffered. For a handler of a signal: calls nothing that a handler may not.
[[noreturn]] void end_at_once(std::string_view text, int exit_code);

/// Kills this process by a signal that has killed a process which it stands for. No core dump is
/// written, which would be that of the wrong program. `signal` is one that kills by default.
[[noreturn]] void end_by_signal(int signal);

/// Becomes the program, looked up on PATH, with its arguments; keeps no descriptor that is closed
/// by exec. Returns only when it cannot, with the reason.
Error become(const std::vector<std::string>& command);

}  // namespace trainyard::sys
